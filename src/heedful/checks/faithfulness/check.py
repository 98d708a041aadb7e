"""Does removing the top-ranked words change the output more than random words do? (ERASER)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import torch
from annotated_types import MinLen
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, require_ways, to_measurement
from heedful.checks.faithfulness import spec
from heedful.checks.faithfulness.infilling import (
    INFILLED,
    LOG_PERPLEXITY,
    InfilledRemoval,
    measure_perplexity,
    require_texts,
)
from heedful.checks.faithfulness.items import (
    DEFAULT_METHODS,
    ComparesMethods,
    ItemView,
    random_scores,
    score_items,
)
from heedful.checks.faithfulness.off_distribution import OFF_DISTRIBUTION, measure_off_distribution
from heedful.checks.faithfulness.removal import (
    REMOVAL_WAYS,
    MetricColumns,
    RemovalMetrics,
    Removals,
    beyond_random_p_values,
)
from heedful.checks.faithfulness.sensitivity import SENSITIVITY, measure_sensitivity
from heedful.checks.faithfulness.soft_erasure import MIN_DRAWS, SOFT_MEASURES, SoftErasureMetrics
from heedful.checks.requested_methods import MethodOrName, build_method, method_name
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Measurement, MissingMeasure, Series
from heedful.core.settings import (
    AnyRepeats,
    NoneOrRepeats,
    PositiveFloat,
    PositiveFraction,
    Repeats,
    check_on_init,
)
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.infiller import Infiller, require_model_folder
from heedful.numerics.tensor import erasure_metrics
from heedful.results.tables import TextValues

REMOVAL_MEASURES = tuple(one.name for one in spec.REMOVAL_MEASURES)
METHOD_MEASURES = REMOVAL_MEASURES[:-1]  # of every method; the last is of signed methods only
# always measured; in the order of the rows after those of the methods
_OF_BOTH = ("comprehensiveness", "sufficiency", *SOFT_MEASURES[:2])
CONTROL_MEASURES = {
    "uniform": (*_OF_BOTH, "infidelity", "infidelity_scaled"),
    "random": (*_OF_BOTH, "flip"),
}
MissingReasons = dict[Series, str]


@check_on_init
@dataclass(frozen=True)
class Faithfulness(ComparesMethods):
    """Does removing the top-ranked words change the output more than random words do?

    Items (words; in a transformer all pieces of a word) are removed in a method's order, the
    highest signed score first. `comprehensiveness` is p(x) − p(x without the top items),
    `sufficiency` p(x) − p(only the top items), for the class predicted on x, averaged over `bins`,
    shares of the items (DeYoung et al., 2020). Since any removal harms, the evidence is
    `beyond_random`: comprehensiveness minus its mean over random `orders` of the same sizes.
    `worst` is comprehensiveness in the reverse order. All are by method, attention always among
    them. Items are deleted, and masked (the setting "masking"), and where `infill` is the folder of
    a masked language model, replaced by `samples` of its draws (the setting "infilled"). `soft_…`
    zeroes elements of the vectors at random according to the scores, in `draws` draws (0: not at
    all). `sensitivity` is the change of scores when vectors change by up to `radius`, in
    `perturbations` draws.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    bins: Annotated[tuple[PositiveFraction, ...], MinLen(1)] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: Repeats = 5
    steps: Repeats = 20
    ways: tuple[str, ...] = tuple(REMOVAL_WAYS)
    draws: AnyRepeats = MIN_DRAWS
    infill: str = ""
    samples: Repeats = 3
    perturbations: NoneOrRepeats = 4
    radius: PositiveFloat = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.infill:
            require_model_folder(self.infill)
        if self.draws != 0 and self.draws < MIN_DRAWS:
            raise ConfigError(
                f"draws must be at least {MIN_DRAWS}, or 0 for none, not {self.draws}."
            )
        require_ways(self.ways, REMOVAL_WAYS, least=1)

    @cached_property
    def infiller(self) -> Infiller:
        """The language model, loaded once."""
        return Infiller.load(self.infill)

    def __call__(self, context: BatchContext) -> Findings:
        items = ItemView(context)
        scores, missing = self.scores(items)
        removals = [Removals(items, way) for way in self.ways]
        if self.infill:
            missing |= self._add_infilling(items, removals)
        chance = self.chance(items)
        metrics = [RemovalMetrics(one, scores, chance, self.bins, self.steps) for one in removals]
        measured = list[Measurement]()
        for metric in metrics:
            way = metric.removals.way
            setting = None if way == self.ways[0] else way
            measured += self.to_measurements(REMOVAL_MEASURES, metric.columns(), setting)
        missing |= self._add_naturalness(metrics, measured, missing)
        if self.perturbations:
            found, refused = measure_sensitivity(
                items, self.methods, scores, radius=self.radius, draws=self.perturbations
            )
            measured += found
            missing |= refused
        if self.draws:
            soft = SoftErasureMetrics(items, scores, self.draws)
            measured += self.to_measurements(SOFT_MEASURES, soft.columns())
        return Findings(tuple(measured), to_missing_measures(missing))

    def scores(self, items: ItemView) -> tuple[Float64[Tensor, "K B I"], MissingReasons]:
        """Every method's scores, uniform ones last, and what is missing where a method refuses."""
        rows, reasons = score_items(items, self.methods, items.context.predicted)
        even = items.real / items.counts.clamp(min=1)[:, None].double()
        soft = SOFT_MEASURES if self.draws else ()
        sensitivity = (SENSITIVITY,) if self.perturbations else ()
        return torch.stack([*rows, even]), {
            one: reasons[one.method]
            for one in self._series((*REMOVAL_MEASURES, *soft, *sensitivity))
            if one.method in reasons
        }

    def chance(self, items: ItemView) -> Int[Tensor, "R B I"]:
        """The items' places in random orders."""
        drawn = random_scores(items, "orders of faithfulness", draws=self.orders)
        return erasure_metrics.removal_ranks(drawn, items.real.expand_as(drawn))

    def to_measurements(
        self, measures: Sequence[str], columns: MetricColumns, setting: str | None = None
    ) -> Iterator[Measurement]:
        """The measurements of every method and control from columns with one row for each."""
        rows = (*self.names, *CONTROL_MEASURES)
        for measure, name in self._series(measures):
            column = columns[measure][rows.index(str(name))]
            yield to_measurement(measure, column, setting, method=name)

    def test(
        self, columns: Mapping[Series, TextValues], *, resamples: int, seed: int
    ) -> dict[Series, float]:
        """p-values of "removes no more than random removal", Holm's over the methods."""
        return beyond_random_p_values(self.names, columns, resamples=resamples, seed=seed)

    def _series(self, measures: Sequence[str]) -> Iterator[Series]:
        """Each measure for the methods and controls that have it."""
        signed = [method_name(one) for one in self.methods if build_method(one).signed]
        for measure in measures:
            named = signed if measure == "violation" else self.names
            controls = [one for one, own in CONTROL_MEASURES.items() if measure in own]
            yield from (Series(measure, name) for name in (*named, *controls))

    def _add_infilling(self, items: ItemView, removals: list[Removals]) -> MissingReasons:
        """Add infilling to the ways of removing items; or give the reason why it is impossible."""
        try:
            require_texts(items.context)
        except NotApplicable as reason:
            perplexities = (f"{LOG_PERPLEXITY}_{one}" for one in ("whole", *self.ways, INFILLED))
            names = (f"{OFF_DISTRIBUTION}_{INFILLED}", "not_infilled", *perplexities)
            return {Series(name): str(reason) for name in names}
        by = InfilledRemoval(self.infiller, self.samples)
        removals.append(Removals(items, INFILLED, by=by))
        return {}

    def _add_naturalness(
        self,
        metrics: Sequence[RemovalMetrics],
        measured: list[Measurement],
        known: Mapping[Series, str],
    ) -> MissingReasons:
        """Add how far texts without attention's top items are from whole texts."""
        missing: MissingReasons = {}
        row, removals = self.names.index("attention"), metrics[-1].removals
        try:
            measured += [*measure_off_distribution(metrics, row)]
        except NotApplicable as reason:
            ways = ("whole", *self.ways, *((INFILLED,) if self.infill else ()))
            every = (Series(f"{OFF_DISTRIBUTION}_{way}") for way in ways)
            missing = {one: str(reason) for one in every if one not in known}
        if isinstance(by := removals.by, InfilledRemoval):
            place, ways = metrics[0].place[row], (*self.ways, INFILLED)
            share = max(self.bins)
            measured += measure_perplexity(removals.items, by, place, share=share, ways=ways)
        return missing


def to_missing_measures(reasons: Mapping[Series, str]) -> tuple[MissingMeasure, ...]:
    """The measures of some methods that are missing, with the reasons."""
    return tuple(MissingMeasure(one.measure, why, one.method) for one, why in reasons.items())
