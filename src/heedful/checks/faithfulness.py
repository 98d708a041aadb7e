"""Does removing, or keeping, what a method names move the output more than chance? (ERASER)"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.asked import Asked, built, name_of
from heedful.checks.base import Column, Findings, checks, measurement
from heedful.checks.removals import WAYS, Removals, Words
from heedful.checks.removing import Trial
from heedful.checks.scored import USUAL, drawn_scores, scores_of_words, with_attention
from heedful.core.errors import ConfigError
from heedful.core.records import Claim
from heedful.models.sitting import Sitting
from heedful.stats.correction import holm_adjusted
from heedful.stats.signs import sign_flip_p
from heedful.tensor import faithful

OF_EACH = (
    *("comprehensiveness", "sufficiency", "beyond_random", "diagnosticity", "worst", "flip"),
    *("infidelity", "infidelity_scaled"),
    *("normalised_comprehensiveness", "normalised_sufficiency"),
)
OF_CONTROLS = {
    "uniform": ("comprehensiveness", "sufficiency", "infidelity", "infidelity_scaled"),
    "random": ("comprehensiveness", "sufficiency", "flip"),
}  # always there, so never asked for; in the order of the rows behind the methods'


@checks.register("faithfulness")
@dataclass(frozen=True)
class Faithfulness:
    """Does removing, or keeping, what a method names move the output more than chance?

    Words go in a method's order, the highest score first and with its sign; in a transformer all
    pieces of a word. `comprehensiveness_M` is p(x) − p(x without the top words), `sufficiency_M`
    p(x) − p(the top words alone), of the class predicted on x, averaged over `bins`, shares of the
    words (DeYoung et al., 2020). Since any removal harms, `beyond_random_M` is what stands:
    comprehensiveness less its mean over random `orders` of the same sizes. `worst_M` is that of
    the same order from its end. Words are deleted, and hidden (the setting "masking"). Attention is
    always among the methods. It has no vote: its power to tell honest attention from inert has not
    been measured.
    """

    methods: tuple[Asked, ...] = USUAL
    bins: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: int = 5
    steps: int = 20
    ways: tuple[str, ...] = tuple(WAYS)
    claim: ClassVar[Claim | None] = "ranks"
    votes: ClassVar[bool] = False
    usual: ClassVar[bool] = False  # it takes many times the passes of all other checks together
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        for name in ("orders", "steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
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
        return tuple(f"{measure}_{name}" for measure, name in self._promised())

    def _promised(self) -> Iterator[tuple[str, str]]:
        signed = [name_of(one) for one in self.methods if built(one).signed]
        for measure in (*OF_EACH, "violation"):
            named = self.names if measure in OF_EACH else signed
            controls = [one for one, own in OF_CONTROLS.items() if measure in own]
            yield from ((measure, name) for name in (*named, *controls))

    def __call__(self, sitting: Sitting) -> Findings:
        words = Words(sitting)
        scores, missing = self._scores(words)
        chance = self._chance(words)
        measured = []
        for way in self.ways:
            trial = Trial(Removals(words, way), scores, chance, self.bins, self.steps)
            columns = trial.columns()
            setting = None if way == self.ways[0] else way
            for measure, name in self._promised():
                row = (*self.names, *OF_CONTROLS).index(name)
                measured.append(measurement(f"{measure}_{name}", columns[measure][row], setting))
        return Findings(tuple(measured), missing)

    def tested(
        self, columns: Mapping[str, Column], *, resamples: int, seed: int
    ) -> dict[str, float]:
        """p-values of "no more than random removal does", Holm's over the methods."""
        p = [
            sign_flip_p(columns[f"beyond_random_{name}"], resamples=resamples, seed=seed)
            for name in self.names
        ]
        adjusted = holm_adjusted(p)
        return {
            f"p_beyond_random_{name}": one for name, one in zip(self.names, adjusted, strict=True)
        }

    def _scores(self, words: Words) -> tuple[Float64[Tensor, "K B W"], dict[str, str]]:
        """Every method's scores of the words, and equal ones last; NaN where a method refuses."""
        rows, reasons = scores_of_words(words, self.methods, words.sitting.predicted)
        even = words.real / words.counts.clamp(min=1)[:, None].double()
        return torch.stack([*rows, even]), {
            f"{measure}_{name}": reasons[name]
            for measure, name in self._promised()
            if name in reasons
        }

    def _chance(self, words: Words) -> Int[Tensor, "R B W"]:
        """The words' places in random orders."""
        drawn = drawn_scores(words, "orders of faithfulness", draws=self.orders)
        return faithful.places(drawn, words.real.expand_as(drawn))
