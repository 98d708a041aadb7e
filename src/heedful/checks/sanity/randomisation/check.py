"""Does the explanation depend on the trained weights at all? (Adebayo et al., 2018)"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings, checks, measurement
from heedful.checks.faithfulness.word_removal import Words
from heedful.checks.faithfulness.word_scores import (
    USUAL,
    drawn_scores,
    scores_of_words,
    with_attention,
)
from heedful.checks.requested_methods import Asked, name_of
from heedful.core.errors import ConfigError, ModelError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.randomised_weights import Redrawn, redrawn
from heedful.numerics.tensor.ranking import spearman

MEASURE = "rank_correlation"
WAYS = ("cascade", "only")
EVEN = "equal scores rank nothing"


@checks.register("randomisation")
@dataclass(frozen=True)
class Randomisation:
    """Does the explanation depend on the trained weights at all?

    The model is copied and weights of the copy are drawn anew, as they were before any training.
    `rank_correlation_M` is Spearman's ρ of |M| on the model and |M| on the copy, for the class that
    the model predicts, over the words of a text: of the copy with all weights drawn anew, and under
    a setting of copies with some: `cascade`, one group more at a time from the output down, and
    `only` one group. Near 1, M shows the text or the architecture, not what was learned. That ρ is
    low does not make M faithful, so it bears on no claim. The control `random` is two random
    orders.
    """

    methods: tuple[Asked, ...] = USUAL
    ways: tuple[str, ...] = WAYS
    claim: ClassVar[Claim | None] = None
    usual: ClassVar[bool] = False  # it takes the methods' passes on many copies
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        if len({*self.ways} & {*WAYS}) < len(self.ways):
            raise ConfigError(f"ways must be {' or '.join(WAYS)}, both or none, not {self.ways}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(name_of, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """Those of the methods, then those of the controls."""
        return tuple(f"{MEASURE}_{name}" for name in (*self.names, "uniform", "random"))

    def __call__(self, sitting: Sitting) -> Findings:
        try:
            copies = redrawn(sitting.subject, seed=sitting.seed)
        except NotApplicable as reason:
            return Findings((), dict.fromkeys(self.measures, str(reason)))
        words = Words(sitting)
        own, refused = scores_of_words(words, self.methods, sitting.predicted)
        measured = [self._chance(words)]
        known: dict[tuple[str, ...], list[Tensor]] = {}  # some settings are one copy
        for setting, groups in self._copies(tuple(copies.groups)).items():
            if groups not in known:
                other, more = self._scores(words, copies, groups)
                refused = more | refused
                pairs = zip(own, other, strict=True)
                known[groups] = [correlated(*pair, words) for pair in pairs]
            for name, column in zip(self.names, known[groups], strict=True):
                measured.append(measurement(f"{MEASURE}_{name}", column, setting))
        missing = {f"{MEASURE}_{name}": why for name, why in refused.items()}
        return Findings(tuple(measured), missing | {f"{MEASURE}_uniform": EVEN})

    def _copies(self, groups: tuple[str, ...]) -> dict[str | None, tuple[str, ...]]:
        """What is drawn anew under each setting."""
        found: dict[str | None, tuple[str, ...]] = {None: groups}
        if "cascade" in self.ways:
            steps = enumerate(groups, start=1)
            found |= {f"cascade {count}: {name}": groups[:count] for count, name in steps}
        if "only" in self.ways:
            found |= {f"only {name}": (name,) for name in groups}
        return found

    def _scores(
        self, words: Words, copies: Redrawn, groups: Sequence[str]
    ) -> tuple[list[Float64[Tensor, "B W"]], dict[str, str]]:
        """The methods' scores on a copy, for the classes that the model itself predicts."""
        own = words.sitting
        subject = copies.of(own.subject, groups)
        other = Sitting(subject, own.batch, own.seed, own.max_batch_tokens, own.clock)
        if len(groups) == len(copies.groups) and torch.equal(other.logits, own.logits):
            raise ModelError(
                f"{own.subject.family} says exactly the same with all its weights drawn anew: it "
                "does not compute with the parameters it shows."
            )
        return scores_of_words(Words(other), self.methods, own.predicted)

    def _chance(self, words: Words) -> Measurement:
        """Two random orders."""
        one, other = drawn_scores(words, "two orders of randomisation", draws=2)
        return measurement(f"{MEASURE}_random", correlated(one, other, words))


def correlated(
    one: Float64[Tensor, "B W"], other: Float64[Tensor, "B W"], words: Words
) -> Float64[Tensor, "B"]:
    """ρ of the sizes; NaN where a method refuses a text, and where all its words are tied."""
    rho = spearman(one.nan_to_num(0.0).abs(), other.nan_to_num(0.0).abs(), words.real)
    return torch.where((one + other).isfinite().all(-1), rho, torch.nan)
