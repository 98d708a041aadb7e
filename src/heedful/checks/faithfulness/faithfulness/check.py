"""Does removing, or keeping, what a method names move the output more than chance? (ERASER)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, TextValues, checks, to_measurement
from heedful.checks.faithfulness.faithfulness.off_distribution import (
    OFF_DISTRIBUTION,
    measure_off_distribution,
)
from heedful.checks.faithfulness.faithfulness.perplexity import (
    LOG_PERPLEXITY,
    PerplexityMetric,
    measure_perplexity,
)
from heedful.checks.faithfulness.faithfulness.sensitivity import SENSITIVITY, SensitivityMetric
from heedful.checks.faithfulness.faithfulness.soft_erasure import (
    MIN_DRAWS,
    SOFT_MEASURES,
    SoftErasureMetrics,
)
from heedful.checks.faithfulness.infilling import INFILLED, InfilledRemoval, require_texts
from heedful.checks.faithfulness.removal_metrics import (
    MetricColumns,
    RemovalMetrics,
    beyond_random_p_values,
)
from heedful.checks.faithfulness.word_removal import REMOVAL_WAYS, Removals, WordView
from heedful.checks.faithfulness.word_scores import (
    DEFAULT_METHODS,
    random_scores,
    score_words,
    with_attention,
)
from heedful.checks.requested_methods import MethodOrName, build_method, method_name
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.infiller import Infiller, require_model_folder
from heedful.numerics.tensor import erasure_metrics

METHOD_MEASURES = (
    *("comprehensiveness", "sufficiency", "beyond_random", "diagnosticity", "worst", "flip"),
    *("infidelity", "infidelity_scaled"),
    *("normalised_comprehensiveness", "normalised_sufficiency"),
)
CONTROL_MEASURES = {
    "uniform": (
        "comprehensiveness",
        "sufficiency",
        "infidelity",
        "infidelity_scaled",
        *SOFT_MEASURES[:2],
    ),
    "random": ("comprehensiveness", "sufficiency", "flip", *SOFT_MEASURES[:2]),
}  # always there, so never asked for; in the order of the rows behind the methods'
REMOVAL_MEASURES = (*METHOD_MEASURES, "violation")


@checks.register("faithfulness")
@dataclass(frozen=True)
class Faithfulness:
    """Does removing, or keeping, what a method names move the output more than chance?

    Words go in a method's order, the highest score first and with its sign; in a transformer all
    pieces of a word. `comprehensiveness_M` is p(x) − p(x without the top words), `sufficiency_M`
    p(x) − p(the top words alone), of the class predicted on x, averaged over `bins`, shares of the
    words (DeYoung et al., 2020). Since any removal harms, `beyond_random_M` is what stands:
    comprehensiveness less its mean over random `orders` of the same sizes. `worst_M` is that of
    the same order from its end. Words are deleted, and hidden (the setting "masking"), and where
    `infill` is the folder of a masked language model replaced by `samples` draws of what it puts in
    their place (the setting "infilled"). Attention is always among the methods. `soft_…` dim words
    instead, as far as they are scored, in `draws` (0: not at all). `sensitivity_M` is how far
    scores move when vectors move by up to `radius` in `perturbations` draws.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    bins: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: int = 5
    steps: int = 20
    ways: tuple[str, ...] = tuple(REMOVAL_WAYS)
    draws: int = MIN_DRAWS
    infill: str = ""
    samples: int = 3
    perturbations: int = 4
    radius: float = 0.05
    claim: ClassVar[Claim | None] = "ranks"
    usual: ClassVar[bool] = False  # it takes many times the passes of all other checks together
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        if self.infill:
            require_model_folder(self.infill)
        for name in ("orders", "steps", "samples"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.draws != 0 and self.draws < MIN_DRAWS:
            raise ConfigError(
                f"draws must be at least {MIN_DRAWS}, or 0 for none, not {self.draws}."
            )
        if self.perturbations < 0 or not self.radius > 0:
            raise ConfigError("perturbations start at 0, and radius must be above 0.")
        if not self.bins or not all(0.0 < share <= 1.0 for share in self.bins):
            raise ConfigError(f"bins must be shares of the words in (0, 1], not {self.bins}.")
        if not self.ways or len({*self.ways} & {*REMOVAL_WAYS}) < len(self.ways):
            raise ConfigError(f"ways must be {' or '.join(REMOVAL_WAYS)} or both, not {self.ways}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """For each measure those of all methods, then those of the controls."""
        of_methods = self._promised((*REMOVAL_MEASURES, *self._soft))
        each = (f"{measure}_{name}" for measure, name in of_methods)
        return (*each, *self._off, *self._filled)

    @property
    def _off(self) -> tuple[str, ...]:
        return tuple(f"{OFF_DISTRIBUTION}_{one}" for one in ("whole", *self.ways))

    @property
    def _filled(self) -> tuple[str, ...]:
        """What is measured only where words are infilled."""
        if not self.infill:
            return ()
        ways = ("whole", *self.ways, INFILLED)
        return (
            f"{OFF_DISTRIBUTION}_{INFILLED}",
            "not_infilled",
            *(f"{LOG_PERPLEXITY}_{one}" for one in ways),
        )

    @cached_property
    def infiller(self) -> Infiller:
        """The language model, loaded once."""
        return Infiller.load(self.infill)

    @property
    def _soft(self) -> tuple[str, ...]:
        return (
            *(SOFT_MEASURES if self.draws else ()),
            *((SENSITIVITY,) if self.perturbations else ()),
        )

    def _promised(self, measures: Sequence[str]) -> Iterator[tuple[str, str]]:
        signed = [method_name(one) for one in self.methods if build_method(one).signed]
        for measure in measures:
            named = signed if measure == "violation" else self.names
            controls = [one for one, own in CONTROL_MEASURES.items() if measure in own]
            yield from ((measure, name) for name in (*named, *controls))

    def __call__(self, context: BatchContext) -> Findings:
        words = WordView(context)
        scores, missing = self.scores(words)
        chance = self.chance(words)
        measured, removals = list[Measurement](), [Removals(words, way) for way in self.ways]
        if self.infill:
            missing |= self._infilled(words, removals)
        trials = [RemovalMetrics(one, scores, chance, self.bins, self.steps) for one in removals]
        for trial in trials:
            way = trial.removals.way
            setting = None if way == self.ways[0] else way
            measured += self.measured(REMOVAL_MEASURES, trial.columns(), setting)
        try:
            measured += [
                *measure_off_distribution(trials, self.names.index("attention"), self.bins)
            ]
        except NotApplicable as reason:
            names = (name for name in self.measures if name.startswith(OFF_DISTRIBUTION))
            missing |= {name: missing.get(name, str(reason)) for name in names}
        if isinstance(by := removals[-1].by, InfilledRemoval):
            place, ways = trials[0].place[self.names.index("attention")], (*self.ways, INFILLED)
            measured += measure_perplexity(PerplexityMetric(words, by, max(self.bins)), ways, place)
        missing |= self._sensitive(words, scores, measured)
        if self.draws:
            measured += self.measured(
                SOFT_MEASURES, SoftErasureMetrics(words, scores, self.draws).columns()
            )
        return Findings(tuple(measured), missing)

    def measured(
        self, measures: Sequence[str], columns: MetricColumns, setting: str | None = None
    ) -> Iterator[Measurement]:
        rows = (*self.names, *CONTROL_MEASURES)
        for measure, name in self._promised(measures):
            yield to_measurement(f"{measure}_{name}", columns[measure][rows.index(name)], setting)

    def _infilled(self, words: WordView, removals: list[Removals]) -> dict[str, str]:
        """Add the way that puts other words in the place of those removed; or say why not."""
        try:
            require_texts(words.context)
        except NotApplicable as reason:
            return dict.fromkeys(self._filled, str(reason))
        by = InfilledRemoval(self.infiller, self.samples)
        removals.append(Removals(words, INFILLED, by=by))
        return {}

    def _sensitive(
        self, words: WordView, scores: Float64[Tensor, "K B W"], measured: list[Measurement]
    ) -> dict[str, str]:
        """Add how far scores move with the vectors; of whom that cannot be asked, why."""
        if not self.perturbations:
            return {}
        sensitivity = SensitivityMetric(words, self.radius, self.perturbations)
        columns, refused = sensitivity.columns(self.methods, scores[:-1])
        for name, column in zip(self.names, columns, strict=True):
            measured.append(to_measurement(f"{SENSITIVITY}_{name}", column))
        return {f"{SENSITIVITY}_{self.names[row]}": why for row, why in refused.items()}

    def tested(
        self, columns: Mapping[str, TextValues], *, resamples: int, seed: int
    ) -> dict[str, float]:
        """p-values of "no more than random removal does", Holm's over the methods."""
        return beyond_random_p_values(self.names, columns, resamples=resamples, seed=seed)

    def scores(self, words: WordView) -> tuple[Float64[Tensor, "K B W"], dict[str, str]]:
        """Every method's scores of the words, and equal ones last; NaN where a method refuses."""
        rows, reasons = score_words(words, self.methods, words.context.predicted)
        even = words.real / words.counts.clamp(min=1)[:, None].double()
        return torch.stack([*rows, even]), {
            f"{measure}_{name}": reasons[name]
            for measure, name in self._promised((*REMOVAL_MEASURES, *self._soft))
            if name in reasons
        }

    def chance(self, words: WordView) -> Int[Tensor, "R B W"]:
        """The words' places in random orders."""
        drawn = random_scores(words, "orders of faithfulness", draws=self.orders)
        return erasure_metrics.removal_ranks(drawn, words.real.expand_as(drawn))
