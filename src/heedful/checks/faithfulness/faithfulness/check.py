"""Does removing, or keeping, what a method names move the output more than chance? (ERASER)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import Column, Findings, checks, measurement
from heedful.checks.faithfulness.faithfulness.off_distribution import OFF, strange
from heedful.checks.faithfulness.faithfulness.perplexity import PERPLEXITY, Surprise, surprising
from heedful.checks.faithfulness.faithfulness.sensitivity import SENSITIVITY, Sensitivity
from heedful.checks.faithfulness.faithfulness.soft_erasure import FEWEST, OF_SOFT, SoftTrial
from heedful.checks.faithfulness.infilling import WAY as INFILLED
from heedful.checks.faithfulness.infilling import Infilled, texts_of
from heedful.checks.faithfulness.removal_metrics import Columns, Trial, beyond_chance
from heedful.checks.faithfulness.word_removal import WAYS, Removals, Words
from heedful.checks.faithfulness.word_scores import (
    USUAL,
    drawn_scores,
    scores_of_words,
    with_attention,
)
from heedful.checks.requested_methods import Asked, built, name_of
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.models.batch_context import Sitting
from heedful.models.transformer.infiller import Infiller, require_folder
from heedful.numerics.tensor import erasure_metrics

OF_EACH = (
    *("comprehensiveness", "sufficiency", "beyond_random", "diagnosticity", "worst", "flip"),
    *("infidelity", "infidelity_scaled"),
    *("normalised_comprehensiveness", "normalised_sufficiency"),
)
OF_CONTROLS = {
    "uniform": (
        "comprehensiveness",
        "sufficiency",
        "infidelity",
        "infidelity_scaled",
        *OF_SOFT[:2],
    ),
    "random": ("comprehensiveness", "sufficiency", "flip", *OF_SOFT[:2]),
}  # always there, so never asked for; in the order of the rows behind the methods'
BY_WAY = (*OF_EACH, "violation")


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

    methods: tuple[Asked, ...] = USUAL
    bins: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: int = 5
    steps: int = 20
    ways: tuple[str, ...] = tuple(WAYS)
    draws: int = FEWEST
    infill: str = ""
    samples: int = 3
    perturbations: int = 4
    radius: float = 0.05
    claim: ClassVar[Claim | None] = "ranks"
    usual: ClassVar[bool] = False  # it takes many times the passes of all other checks together
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        if self.infill:
            require_folder(self.infill)
        for name in ("orders", "steps", "samples"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.draws != 0 and self.draws < FEWEST:
            raise ConfigError(f"draws must be at least {FEWEST}, or 0 for none, not {self.draws}.")
        if self.perturbations < 0 or not self.radius > 0:
            raise ConfigError("perturbations start at 0, and radius must be above 0.")
        if not self.bins or not all(0.0 < share <= 1.0 for share in self.bins):
            raise ConfigError(f"bins must be shares of the words in (0, 1], not {self.bins}.")
        if not self.ways or len({*self.ways} & {*WAYS}) < len(self.ways):
            raise ConfigError(f"ways must be {' or '.join(WAYS)} or both, not {self.ways}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(name_of, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """For each measure those of all methods, then those of the controls."""
        of_methods = self._promised((*BY_WAY, *self._soft))
        each = (f"{measure}_{name}" for measure, name in of_methods)
        return (*each, *self._off, *self._filled)

    @property
    def _off(self) -> tuple[str, ...]:
        return tuple(f"{OFF}_{one}" for one in ("whole", *self.ways))

    @property
    def _filled(self) -> tuple[str, ...]:
        """What is measured only where words are infilled."""
        if not self.infill:
            return ()
        ways = ("whole", *self.ways, INFILLED)
        return (f"{OFF}_{INFILLED}", "not_infilled", *(f"{PERPLEXITY}_{one}" for one in ways))

    @cached_property
    def infiller(self) -> Infiller:
        """The language model, loaded once."""
        return Infiller.load(self.infill)

    @property
    def _soft(self) -> tuple[str, ...]:
        return (*(OF_SOFT if self.draws else ()), *((SENSITIVITY,) if self.perturbations else ()))

    def _promised(self, measures: Sequence[str]) -> Iterator[tuple[str, str]]:
        signed = [name_of(one) for one in self.methods if built(one).signed]
        for measure in measures:
            named = signed if measure == "violation" else self.names
            controls = [one for one, own in OF_CONTROLS.items() if measure in own]
            yield from ((measure, name) for name in (*named, *controls))

    def __call__(self, sitting: Sitting) -> Findings:
        words = Words(sitting)
        scores, missing = self.scores(words)
        chance = self.chance(words)
        measured, removals = list[Measurement](), [Removals(words, way) for way in self.ways]
        if self.infill:
            missing |= self._infilled(words, removals)
        trials = [Trial(one, scores, chance, self.bins, self.steps) for one in removals]
        for trial in trials:
            way = trial.removals.way
            setting = None if way == self.ways[0] else way
            measured += self.measured(BY_WAY, trial.columns(), setting)
        try:
            measured += [*strange(trials, self.names.index("attention"), self.bins)]
        except NotApplicable as reason:
            names = (name for name in self.measures if name.startswith(OFF))
            missing |= {name: missing.get(name, str(reason)) for name in names}
        if isinstance(by := removals[-1].by, Infilled):
            place, ways = trials[0].place[self.names.index("attention")], (*self.ways, INFILLED)
            measured += surprising(Surprise(words, by, max(self.bins)), ways, place)
        missing |= self._sensitive(words, scores, measured)
        if self.draws:
            measured += self.measured(OF_SOFT, SoftTrial(words, scores, self.draws).columns())
        return Findings(tuple(measured), missing)

    def measured(
        self, measures: Sequence[str], columns: Columns, setting: str | None = None
    ) -> Iterator[Measurement]:
        rows = (*self.names, *OF_CONTROLS)
        for measure, name in self._promised(measures):
            yield measurement(f"{measure}_{name}", columns[measure][rows.index(name)], setting)

    def _infilled(self, words: Words, removals: list[Removals]) -> dict[str, str]:
        """Add the way that puts other words in the place of those removed; or say why not."""
        try:
            texts_of(words.sitting)
        except NotApplicable as reason:
            return dict.fromkeys(self._filled, str(reason))
        by = Infilled(self.infiller, self.samples)
        removals.append(Removals(words, INFILLED, by=by))
        return {}

    def _sensitive(
        self, words: Words, scores: Float64[Tensor, "K B W"], measured: list[Measurement]
    ) -> dict[str, str]:
        """Add how far scores move with the vectors; of whom that cannot be asked, why."""
        if not self.perturbations:
            return {}
        sensitivity = Sensitivity(words, self.radius, self.perturbations)
        columns, refused = sensitivity.columns(self.methods, scores[:-1])
        for name, column in zip(self.names, columns, strict=True):
            measured.append(measurement(f"{SENSITIVITY}_{name}", column))
        return {f"{SENSITIVITY}_{self.names[row]}": why for row, why in refused.items()}

    def tested(
        self, columns: Mapping[str, Column], *, resamples: int, seed: int
    ) -> dict[str, float]:
        """p-values of "no more than random removal does", Holm's over the methods."""
        return beyond_chance(self.names, columns, resamples=resamples, seed=seed)

    def scores(self, words: Words) -> tuple[Float64[Tensor, "K B W"], dict[str, str]]:
        """Every method's scores of the words, and equal ones last; NaN where a method refuses."""
        rows, reasons = scores_of_words(words, self.methods, words.sitting.predicted)
        even = words.real / words.counts.clamp(min=1)[:, None].double()
        return torch.stack([*rows, even]), {
            f"{measure}_{name}": reasons[name]
            for measure, name in self._promised((*BY_WAY, *self._soft))
            if name in reasons
        }

    def chance(self, words: Words) -> Int[Tensor, "R B W"]:
        """The words' places in random orders."""
        drawn = drawn_scores(words, "orders of faithfulness", draws=self.orders)
        return erasure_metrics.places(drawn, words.real.expand_as(drawn))
