"""From values per text to estimates with intervals: every number that a run reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.checks.base import Check, HasSignificanceTests, NeedsAllTexts
from heedful.checks.registry import checks
from heedful.checks.retraining_base import RetrainingCheck
from heedful.checks.spec import CheckSpec, Evidence, PlaceSpec
from heedful.core.records import (
    CheckResult,
    Estimate,
    EstimateRow,
    MeasureKey,
    MissingMeasure,
    Series,
)
from heedful.numerics.stats.bootstrap import Place, estimate_means, estimate_place
from heedful.numerics.stats.crossed_bootstrap import (
    below_margin_p,
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)
from heedful.pipeline.plan.plan import Plan
from heedful.results.tables import MeasurementColumns, TextValues

AnyCheck = Check | RetrainingCheck
CENTRES = {"mean": mean_over_seeds, "median": median_over_seeds}
MOST_SLICED_CLASSES = 12
NAN = float("nan")


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: the number of resamples, their seed, and the level."""

    resamples: int
    seed: int
    level: float

    @classmethod
    def of(cls, plan: Plan) -> "Bootstrap":
        """As the plan says."""
        return cls(plan.resamples, plan.seed, plan.level)

    def means(
        self, columns: Mapping[MeasureKey, TextValues], shares: frozenset[str] = frozenset()
    ) -> dict[MeasureKey, Estimate]:
        """The mean of each column; measures named in `shares` are shares of texts."""
        named = {key for key in columns if key.measure in shares}
        return estimate_means(
            columns, resamples=self.resamples, seed=self.seed, level=self.level, shares=named
        )

    def place(self, own: TextValues, control: TextValues, reference: TextValues) -> Place:
        """Where the mean of `own` stands between those of control (0) and reference (1)."""
        return estimate_place(
            own, control, reference, resamples=self.resamples, seed=self.seed, level=self.level
        )


class Slice(NamedTuple):
    """A part of the texts: its name and which texts belong to it."""

    name: str
    texts: NDArray[np.bool_]


def measure_dataset(plan: Plan, columns: MeasurementColumns) -> dict[MeasureKey, TextValues]:
    """The measures that need all texts at once."""
    return {
        MeasureKey(name, measure): values
        for name, check in plan.build_checks().items()
        if isinstance(check, NeedsAllTexts)
        for measure, values in check.measure_all(_series(columns, name)).items()
    }


def estimate_all(
    plan: Plan,
    columns: MeasurementColumns,
    *,
    missing: Mapping[str, tuple[MissingMeasure, ...]],
    labels: Sequence[str],
    lengths: TextValues | None = None,
) -> Evidence:
    """Estimate everything that was measured.

    Args:
        columns: The values of all texts.
        missing: By check, the measures that it could not take.
        labels: The class names of the model.
        lengths: The number of words of each text, for slices by length.
    """
    bootstrap, parts = Bootstrap.of(plan), plan.build_checks()
    slices = tuple(_slices(columns, lengths))
    results = {
        name: _CheckEstimates(
            checks.spec(name), check, columns, bootstrap, missing.get(name, ())
        ).result(labels, slices)
        for name, check in parts.items()
    }
    return Evidence(
        results,
        {name: plan.settings_of(name) for name in plan.checks},
        dict(_places(parts, columns, bootstrap)),
        plan.epsilon,
    )


def _series(columns: MeasurementColumns, check: str) -> dict[Series, TextValues]:
    """The columns of a check that only a method tells apart."""
    return {
        Series(key.measure, key.method): values
        for key, values in columns.of_check(check).items()
        if key._replace(method=None).plain
    }


@dataclass(frozen=True)
class _CheckEstimates:
    """All estimates of one check."""

    spec: CheckSpec
    check: AnyCheck
    columns: MeasurementColumns
    bootstrap: Bootstrap
    missing: tuple[MissingMeasure, ...]

    def result(self, labels: Sequence[str], slices: Sequence[Slice]) -> CheckResult:
        chosen = self._averaged()
        every = np.ones(len(self.columns.instances), dtype=bool)
        estimates = self._estimate(chosen, every) | self._p_values()
        rows = [_row(key, one, _undefined(chosen, key)) for key, one in estimates.items()]
        rows += self._by_class(chosen, labels)
        rows += self._by_slice(chosen, slices)
        plain = {row.measure: row for row in rows if _is_plain(row)}
        known = {(key.measure, key.method) for key in chosen}
        return CheckResult(
            "undecided",
            "",
            {name: row.estimate for name, row in plain.items()},
            tuple(row for row in rows if not _is_plain(row)),
            {name: row.undefined for name, row in plain.items() if row.undefined},
            tuple(one for one in self.missing if (one.measure, one.method) not in known),
        )

    def _averaged(self) -> dict[MeasureKey, TextValues]:
        """The columns with a mean, in the order the measures are described in.

        A measure that was refused is left out where no text has a value; where some texts have
        one, the others are counted as undefined.
        """
        refused = {(one.measure, one.method) for one in self.missing}
        order = {one.name: place for place, one in enumerate(self.spec.measures)}
        found = {
            key: values
            for key, values in self.columns.of_check(self.spec.name).items()
            if self.spec.measure(key.measure).averaged
            and not ((key.measure, key.method) in refused and np.isnan(values).all())
        }
        for name, pair in self.spec.differences.items():  # those that are not measured per text
            one, other = (MeasureKey(self.spec.name, *side) for side in pair)
            if one in found and other in found and all(key.measure != name for key in found):
                found[MeasureKey(self.spec.name, name)] = found[one] - found[other]
        return dict(sorted(found.items(), key=lambda item: order.get(item[0].measure, len(order))))

    def _estimate(
        self, chosen: Mapping[MeasureKey, TextValues], texts: NDArray[np.bool_]
    ) -> dict[MeasureKey, Estimate]:
        """Means over some texts; intervals over seeds and texts where there are seeds."""
        shares = frozenset(one.name for one in self.spec.measures if one.kind == "share")
        here = {key: values[texts] for key, values in chosen.items()}
        found = self.bootstrap.means(here, shares)
        if self.spec.over_seeds and self.columns.seeds:
            found |= self._over_seeds(here, texts)
        return found

    def _over_seeds(
        self,
        here: Mapping[MeasureKey, TextValues],
        texts: NDArray[np.bool_],
    ) -> dict[MeasureKey, Estimate]:
        draws = self._draws(here, texts)
        found = {}
        for key, values in here.items():
            if key in draws and key.seed is None:
                known = values[~np.isnan(values)]
                value = float(known.mean()) if len(known) else NAN
                found[key] = estimate_from_draws(
                    value, draws[key], n=len(known), level=self.bootstrap.level
                )
        gain, margin = MeasureKey(self.spec.name, "gain"), getattr(self.check, "margin", None)
        if margin is not None and gain in draws:
            n = found[gain].n
            gains = draws[gain], -draws[gain]
            p, p_other = (below_margin_p(one, margin, n=n) for one in gains)
            found[gain._replace(measure="p_not_worse")] = Estimate(p, NAN, NAN, n)
            found[gain._replace(measure="p_equivalent")] = Estimate(max(p, p_other), NAN, NAN, n)
        return found

    def _draws(
        self,
        here: Mapping[MeasureKey, TextValues],
        texts: NDArray[np.bool_],
    ) -> dict[MeasureKey, Any]:
        """Resampled means: of the measures over seeds, and of the differences between them."""
        tables = {
            key: self.columns.by_seed(key)[:, texts]
            for key in here
            if key.measure in self.spec.over_seeds and key in self.columns.seeds
        }
        pairs = dict(self._differences(here))
        for pair in pairs.values():
            for key in pair:  # a measure without seeds that is compared with one that has seeds
                tables.setdefault(key, here[key][None])
        draws: dict[MeasureKey, Any] = {}
        for kind, centre in CENTRES.items():
            some = {
                key: table
                for key, table in tables.items()
                if self.spec.over_seeds.get(key.measure, "mean") == kind
            }
            if some:  # texts are drawn alike in every call, so that all stay paired
                named = {_resampling_name(key): table for key, table in some.items()}
                drawn = resample_crossed(
                    named,
                    centre=centre,
                    resamples=self.bootstrap.resamples,
                    seed=self.bootstrap.seed,
                )
                draws |= {key: drawn[_resampling_name(key)] for key in some}
        return draws | {key: draws[one] - draws[other] for key, (one, other) in pairs.items()}

    def _differences(
        self, here: Mapping[MeasureKey, TextValues]
    ) -> Iterator[tuple[MeasureKey, tuple[MeasureKey, MeasureKey]]]:
        """The differences whose two sides were measured, under each setting."""
        for key in here:
            pair = self.spec.differences.get(key.measure)
            if pair and key.seed is None:
                one, other = (
                    key._replace(measure=side.measure, method=side.method or key.method)
                    for side in pair
                )
                if one in here and other in here:
                    yield key, (one, other)

    def _p_values(self) -> dict[MeasureKey, Estimate]:
        """The p-values of a check that tests hypotheses; they have no interval."""
        columns = _series(self.columns, self.spec.name)
        if not isinstance(self.check, HasSignificanceTests) or not columns:
            return {}
        texts = len(self.columns.instances)
        found = self.check.test(
            columns, resamples=self.bootstrap.resamples, seed=self.bootstrap.seed
        )
        return {
            MeasureKey(self.spec.name, one.measure, one.method): Estimate(p, NAN, NAN, texts)
            for one, p in found.items()
            if p == p
        }

    def _by_class(
        self, chosen: Mapping[MeasureKey, TextValues], labels: Sequence[str]
    ) -> Iterator[EstimateRow]:
        """The estimates of plain measures and of methods, for each predicted class."""
        simple = {key: one for key, one in chosen.items() if key._replace(method=None).plain}
        for label in labels:
            here = self.columns.predicted == label
            if not here.any() or not simple:
                continue
            # differences and seeds need the keys they are made of, so all columns are estimated
            seeds = {k: v for k, v in chosen.items() if k.seed is None and k.setting is None}
            for key, one in self._estimate(seeds if self.spec.retrains else simple, here).items():
                if key._replace(method=None).plain:
                    yield _row(key, one, 0, predicted=label)

    def _by_slice(
        self, chosen: Mapping[MeasureKey, TextValues], slices: Sequence[Slice]
    ) -> Iterator[EstimateRow]:
        """The measures that the check's description names, for each part of the texts.

        Slices are described, not tested: nothing is corrected for their number.
        """
        wanted = [MeasureKey(self.spec.name, name) for name in self.spec.sliced]
        for name, texts in slices:
            here = {key: chosen[key][texts] for key in wanted if key in chosen}
            for key, one in self.bootstrap.means(here).items():
                undefined = _undefined(here, key)
                yield EstimateRow(key.measure, one, slice=name, undefined=undefined)
            if self.spec.place and self.spec.sliced:
                ends = _place_columns(self.spec, self.columns)
                if ends is not None:
                    place = self.bootstrap.place(*(values[texts] for values in ends)).place
                    yield EstimateRow("degree", place, slice=name)


def _row(
    key: MeasureKey, estimate: Estimate, undefined: int, predicted: str | None = None
) -> EstimateRow:
    keys = (key.method, key.layer, key.head, key.seed, key.setting)
    return EstimateRow(key.measure, estimate, *keys, predicted=predicted, undefined=undefined)


def _is_plain(row: EstimateRow) -> bool:
    keys = (row.method, row.layer, row.head, row.seed, row.setting, row.predicted, row.slice)
    return all(one is None for one in keys)


def _undefined(chosen: Mapping[MeasureKey, TextValues], key: MeasureKey) -> int:
    return int(np.isnan(chosen[key]).sum()) if key in chosen else 0


def _resampling_name(key: MeasureKey) -> str:
    """The name that keys the draws of seeds; it must not change, or intervals would."""
    name = f"{key.measure}_{key.method}" if key.method else key.measure
    return f"{name} {key.setting}" if key.setting else name


def _places(
    parts: Mapping[str, AnyCheck], columns: MeasurementColumns, bootstrap: Bootstrap
) -> Iterator[tuple[str, Place]]:
    """Attention's place by each check that describes one and measured its ends."""
    for name in parts:
        spec = checks.spec(name)
        ends = _place_columns(spec, columns)
        if spec.place is None or ends is None:
            continue
        own = MeasureKey(name, *spec.place.own)
        if own in columns.seeds:
            yield name, _place_over_seeds(spec, columns, bootstrap)
        else:
            yield name, bootstrap.place(*ends)


def _place_columns(
    spec: CheckSpec, columns: MeasurementColumns
) -> tuple[TextValues, TextValues, TextValues] | None:
    """The values of the three ends, higher nearer to the reference; None where one is missing."""
    place = spec.place
    if place is None:
        return None
    sign = -1.0 if place.lower_is_better else 1.0
    ends = [_end(spec.name, one, columns) for one in (place.own, place.control, place.reference)]
    if any(one is None for one in ends):
        return None
    own, control, reference = (sign * one for one in ends if one is not None)
    return own, control, reference


def _end(check: str, series: Series | None, columns: MeasurementColumns) -> TextValues | None:
    if series is None:
        return np.zeros(len(columns.instances))
    return columns.values.get(MeasureKey(check, *series))


def _place_over_seeds(spec: CheckSpec, columns: MeasurementColumns, bootstrap: Bootstrap) -> Place:
    """The place from 0 to the reference, with intervals over seeds and texts."""
    place: PlaceSpec | None = spec.place
    assert place is not None  # noqa: S101 - the caller checks
    own, end = (MeasureKey(spec.name, *one) for one in (place.own, place.reference))
    tables = {own.measure: columns.by_seed(own), end.measure: columns.values[end][None]}
    centre = CENTRES[spec.over_seeds.get(own.measure, "mean")]
    draws = resample_crossed(
        tables, centre=centre, resamples=bootstrap.resamples, seed=bootstrap.seed
    )
    value, gap = (float(columns.values[key].mean()) for key in (own, end))
    n, level = len(columns.instances), bootstrap.level
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = draws[own.measure] / draws[end.measure]
    return Place(
        estimate_from_draws(value / gap if gap else NAN, shares, n=n, level=level),
        estimate_from_draws(gap, draws[end.measure], n=n, level=level),
    )


def _slices(columns: MeasurementColumns, lengths: TextValues | None) -> Iterator[Slice]:
    """Parts of the texts: by predicted class, by correctness, by length."""
    predicted = columns.predicted
    classes, counts = np.unique(predicted.astype(str), return_counts=True)
    for name in sorted(classes[np.argsort(-counts, kind="stable")][:MOST_SLICED_CLASSES]):
        yield Slice(f"Predicted class: {name}", predicted == name)
    if columns.label.astype(bool).any():  # texts without labels are neither right nor wrong
        right = predicted == columns.label
        for name, texts in (("correct", right), ("wrong", ~right)):
            if texts.any():
                yield Slice(f"Prediction: {name}", texts)
    if lengths is not None:
        yield from _by_length(lengths)


def _by_length(lengths: TextValues) -> Iterator[Slice]:
    known = lengths[~np.isnan(lengths)]
    if not len(known):
        return
    # equal lengths stay together, so quarters of short texts may be uneven, or fewer than four
    edges = np.unique(np.quantile(known, (0.25, 0.5, 0.75), method="inverted_cdf"))
    quarter = np.searchsorted(edges, lengths)
    for which in range(len(edges) + 1):
        texts = (quarter == which) & ~np.isnan(lengths)
        if texts.any():
            least, most = int(lengths[texts].min()), int(lengths[texts].max())
            words = f"{least}–{most} words" if least < most else f"{least} words"
            yield Slice(f"Length: {words}", texts)
