"""From values per text to estimates with intervals: every number that a run reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.checks.base import (
    Check,
    HasSignificanceTests,
    MakesEstimates,
    NeedsAllTexts,
    TextGroup,
)
from heedful.checks.registry import checks
from heedful.checks.retraining_base import RetrainingCheck
from heedful.checks.spec import CheckSpec, Evidence
from heedful.core.records import (
    ROW_KEYS,
    CheckResult,
    Estimate,
    EstimateRow,
    MeasureKey,
    MissingMeasure,
    Series,
)
from heedful.numerics.stats.bootstrap import Place, estimate_means, estimate_place
from heedful.numerics.stats.clusters import count_clusters, sum_values
from heedful.numerics.stats.crossed_bootstrap import (
    below_margin_p,
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)
from heedful.pipeline.plan.plan import Plan
from heedful.results.tables import MeasurementColumns, SeedTable, TextValues
from heedful.results.text_ids import TextIds

Columns = Mapping[MeasureKey, TextValues]
Estimates = dict[MeasureKey, Estimate]
TextMask = NDArray[np.bool_]
CENTRES = {"mean": mean_over_seeds, "median": median_over_seeds}
MOST_SLICED_CLASSES = 12
NAN = float("nan")


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: the number of resamples, their seed, and the level.

    Texts with one id in `clusters` are drawn together; without ids each is drawn on its own. Those
    with one id in `copies` have the same content.
    """

    resamples: int
    seed: int
    level: float
    clusters: NDArray[Any] | None = None
    copies: NDArray[Any] | None = None

    @classmethod
    def of(cls, plan: Plan, ids: TextIds | None = None) -> "Bootstrap":
        """The bootstrap of a plan."""
        together = (None, None) if ids is None else (ids.drawn_together, ids.content)
        return cls(plan.resamples, plan.seed, plan.level, *together)

    def on(self, texts: TextMask) -> "Bootstrap":
        """The bootstrap of some of the texts."""
        clusters, copies = (
            None if ids is None else ids[texts] for ids in (self.clusters, self.copies)
        )
        return replace(self, clusters=clusters, copies=copies)

    def count(self, known: TextMask) -> int:
        """The number of clusters that some of its texts are in."""
        return count_clusters(self.clusters, known)

    def means(self, columns: Columns, shares: frozenset[str] = frozenset()) -> Estimates:
        """The mean of each column; measures named in `shares` are shares of texts."""
        named = {key for key in columns if key.measure in shares}
        how = {"resamples": self.resamples, "seed": self.seed}
        return estimate_means(columns, self.clusters, **how, level=self.level, shares=named)

    def place(self, own: TextValues, control: TextValues, reference: TextValues) -> Place:
        """Where the mean of `own` stands between those of control (0) and reference (1)."""
        how = {"resamples": self.resamples, "seed": self.seed}
        return estimate_place(own, control, reference, self.clusters, **how, level=self.level)


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
    bootstrap: Bootstrap | None = None,
) -> Evidence:
    """Estimate everything that was measured.

    Args:
        columns: The values of all texts.
        missing: By check, the measures that it could not take.
        labels: The class names of the model.
        lengths: The number of words of each text, for slices by length.
        bootstrap: How intervals are made; by default as in the plan, each text on its own.
    """
    groups = [TextGroup(np.ones(len(columns.instances), dtype=bool))]
    groups += [TextGroup(columns.predicted == label, predicted=label) for label in labels]
    groups += _slices(columns, lengths)
    how = bootstrap or Bootstrap.of(plan)
    parts = {
        name: _CheckEstimates(
            checks.spec(name), check, columns, how, missing.get(name, ()), plan.epsilon
        )
        for name, check in plan.build_checks().items()
    }
    places = {name: part.place() for name, part in parts.items()}
    return Evidence(
        {name: part.result(groups) for name, part in parts.items()},
        {name: plan.settings_of(name) for name in plan.checks},
        {name: place for name, place in places.items() if place is not None},
        plan.epsilon,
    )


def _series(columns: MeasurementColumns, check: str) -> dict[Series, TextValues]:
    """The columns of a check that have at most a method as key."""
    found = columns.of_check(check).items()
    return {Series(key.measure, key.method): one for key, one in found if _by_method_only(key)}


def _by_method_only(key: MeasureKey) -> bool:
    return key._replace(method=None).plain


@dataclass(frozen=True)
class _CheckEstimates:
    """All estimates of one check."""

    spec: CheckSpec
    check: Check | RetrainingCheck
    columns: MeasurementColumns
    bootstrap: Bootstrap
    missing: tuple[MissingMeasure, ...]
    epsilon: float

    def result(self, groups: Sequence[TextGroup]) -> CheckResult:
        chosen = self._averaged()
        rows = [row for group in groups for row in self._rows(chosen, group)]
        if isinstance(self.check, MakesEstimates):
            rows += self.check.estimate(self.columns, self.bootstrap, groups, epsilon=self.epsilon)
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

    def _rows(self, chosen: Columns, group: TextGroup) -> Iterator[EstimateRow]:
        """The estimates of a group of texts.

        Slices are described, not tested: nothing is corrected for their number.
        """
        here = {key: chosen[key][group.texts] for key in self._keys(chosen, group)}
        whole = group.predicted is None and group.slice is None
        found = self._estimate(here, group.texts) | (self._p_values() if whole else {})
        for key, one in found.items():
            if group.predicted is not None and not _by_method_only(key):
                continue
            counted = key in here and group.predicted is None
            undefined = int(np.isnan(here[key]).sum()) if counted else 0
            yield EstimateRow(key.measure, one, *key[2:], group.predicted, group.slice, undefined)
        if group.slice is not None and self.spec.sliced and (ends := self._place_columns()):
            place = self.bootstrap.on(group.texts).place(*(one[group.texts] for one in ends))
            yield EstimateRow("degree", place.place, slice=group.slice)

    def _keys(self, chosen: Columns, group: TextGroup) -> list[MeasureKey]:
        """The columns to estimate: all; of a slice, those that the check's description names."""
        if group.slice is not None:
            wanted = [MeasureKey(self.spec.name, name) for name in self.spec.sliced]
            return [key for key in wanted if key in chosen]
        if group.predicted is None:
            return list(chosen)
        simple = [key for key in chosen if _by_method_only(key)]
        if not simple or not group.texts.any():
            return []
        if not self.spec.retrains:
            return simple
        # differences and seeds need the keys they are made of
        return [key for key in chosen if key.seed is None and key.setting is None]

    def _estimate(self, here: dict[MeasureKey, TextValues], texts: TextMask) -> Estimates:
        """Means over some texts; intervals over seeds and texts where there are seeds."""
        shares = frozenset(one.name for one in self.spec.measures if one.kind == "share")
        bootstrap = self.bootstrap.on(texts)
        found = bootstrap.means(here, shares)
        if not self.spec.over_seeds or not self.columns.seeds:
            return found
        draws = self._draws(here, texts)
        for key, values in here.items():
            if key in draws and key.seed is None:
                one, units = found[key], bootstrap.count(~np.isnan(values))
                found[key] = estimate_from_draws(
                    one.value, draws[key], n=one.n, units=units, level=bootstrap.level
                )
        gain, margin = MeasureKey(self.spec.name, "gain"), getattr(self.check, "margin", None)
        if margin is not None and gain in draws:
            n, units = found[gain].n, bootstrap.count(~np.isnan(here[gain]))
            gains = draws[gain], -draws[gain]
            p, p_other = (below_margin_p(one, margin, n=units) for one in gains)
            found[gain._replace(measure="p_not_worse")] = Estimate(p, NAN, NAN, n)
            found[gain._replace(measure="p_equivalent")] = Estimate(max(p, p_other), NAN, NAN, n)
        return found

    def _draws(self, here: Columns, texts: TextMask) -> dict[MeasureKey, Any]:
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
        for kind in CENTRES:
            some = {key: table for key, table in tables.items() if self._centre(key) == kind}
            if some:  # texts are drawn alike in every call, so that all stay paired
                draws |= self._resample(some, kind, self.bootstrap.on(texts))
        return draws | {key: draws[one] - draws[other] for key, (one, other) in pairs.items()}

    def _centre(self, key: MeasureKey) -> str:
        return self.spec.over_seeds.get(key.measure, "mean")

    def _resample(
        self, tables: Mapping[MeasureKey, SeedTable], kind: str, bootstrap: Bootstrap
    ) -> dict[MeasureKey, Any]:
        """Resampled means over texts and seeds."""
        drawn = resample_crossed(
            {_resampling_name(key): table for key, table in tables.items()},
            bootstrap.clusters,
            centre=CENTRES[kind],
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
        )
        return {key: drawn[_resampling_name(key)] for key in tables}

    def _differences(
        self, here: Columns
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

    def _p_values(self) -> Estimates:
        """The p-values of a check that tests hypotheses; they have no interval."""
        columns = _series(self.columns, self.spec.name)
        if not isinstance(self.check, HasSignificanceTests) or not columns:
            return {}
        texts, clusters = len(self.columns.instances), self.bootstrap.clusters
        if clusters is not None:  # copies are no further evidence: signs flip by cluster
            columns = {key: sum_values(values, clusters) for key, values in columns.items()}
        how = {"resamples": self.bootstrap.resamples, "seed": self.bootstrap.seed}
        return {
            MeasureKey(self.spec.name, *one): Estimate(p, NAN, NAN, texts)
            for one, p in self.check.test(columns, **how).items()
            if p == p
        }

    def place(self) -> Place | None:
        """Attention's place, if the check describes one and measured its ends."""
        spec, ends = self.spec.place, self._place_columns()
        if spec is None or ends is None:
            return None
        own, reference = (MeasureKey(self.spec.name, *one) for one in (spec.own, spec.reference))
        if own in self.columns.seeds:
            return self._place_over_seeds(own, reference)
        return self.bootstrap.place(*ends)

    def _place_columns(self) -> tuple[TextValues, TextValues, TextValues] | None:
        """Attention's values, the control's and the reference's; None where one is missing."""
        if (place := self.spec.place) is None:
            return None
        zero = np.zeros(len(self.columns.instances))
        own, control, reference = (
            zero if one is None else self.columns.values.get(MeasureKey(self.spec.name, *one))
            for one in (place.own, place.control, place.reference)
        )
        if own is None or control is None or reference is None:
            return None
        return own, control, reference

    def _place_over_seeds(self, own: MeasureKey, end: MeasureKey) -> Place:
        """The place from 0 to the reference, with intervals over seeds and texts."""
        tables = {own: self.columns.by_seed(own), end: self.columns.values[end][None]}
        draws = self._resample(tables, self._centre(own), self.bootstrap)
        known = np.ones(len(self.columns.instances), dtype=bool)
        value, gap = (self._mean(key) for key in (own, end))
        how: Any = {"n": len(known), "units": self.bootstrap.count(known)}
        how["level"] = self.bootstrap.level
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = draws[own] / draws[end]
        return Place(
            estimate_from_draws(value / gap if gap else NAN, shares, **how),
            estimate_from_draws(gap, draws[end], **how),
        )

    def _mean(self, key: MeasureKey) -> float:
        """The mean of a column, whatever the order of its texts."""
        values, clusters = self.columns.values[key], self.bootstrap.clusters
        ordered = values if clusters is None else sum_values(values, clusters)
        return float(ordered.sum() / max(1, len(values)))


def _is_plain(row: EstimateRow) -> bool:
    return all(getattr(row, name) is None for name in ROW_KEYS)


def _resampling_name(key: MeasureKey) -> str:
    """The name that keys the draws of seeds; it must not change, or intervals would."""
    name = f"{key.measure}_{key.method}" if key.method else key.measure
    return f"{name} {key.setting}" if key.setting else name


def _slices(columns: MeasurementColumns, lengths: TextValues | None) -> Iterator[TextGroup]:
    """Parts of the texts: by predicted class, by correctness, by length."""
    predicted = columns.predicted
    classes, counts = np.unique(predicted.astype(str), return_counts=True)
    for name in sorted(classes[np.argsort(-counts, kind="stable")][:MOST_SLICED_CLASSES]):
        yield TextGroup(predicted == name, slice=f"Predicted class: {name}")
    if columns.label.astype(bool).any():  # texts without labels are neither right nor wrong
        right = predicted == columns.label
        for name, texts in (("correct", right), ("wrong", ~right)):
            if texts.any():
                yield TextGroup(texts, slice=f"Prediction: {name}")
    if lengths is not None and not np.isnan(lengths).all():
        yield from _slices_by_length(lengths)


def _slices_by_length(lengths: TextValues) -> Iterator[TextGroup]:
    known = ~np.isnan(lengths)
    # equal lengths stay together, so quarters of short texts may be uneven, or fewer than four
    edges = np.unique(np.quantile(lengths[known], (0.25, 0.5, 0.75), method="inverted_cdf"))
    quarter = np.searchsorted(edges, lengths)
    for which in range(len(edges) + 1):
        texts = (quarter == which) & known
        if texts.any():
            least, most = int(lengths[texts].min()), int(lengths[texts].max())
            words = f"{least}–{most} words" if least < most else f"{least} words"
            yield TextGroup(texts, slice=f"Length: {words}")
