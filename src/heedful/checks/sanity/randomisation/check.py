"""Does the explanation depend on the trained weights at all? (Adebayo et al., 2018)"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings, checks, to_measurement
from heedful.checks.faithfulness.word_removal import WordView
from heedful.checks.faithfulness.word_scores import (
    DEFAULT_METHODS,
    random_scores,
    score_words,
    with_attention,
)
from heedful.checks.requested_methods import MethodOrName, method_name
from heedful.core.errors import ConfigError, ModelError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.randomised_weights import RandomisableCopy, randomisable_copy
from heedful.numerics.tensor.ranking import spearman

RANK_CORRELATION = "rank_correlation"
RANDOMISATION_WAYS = ("cascade", "only")
UNIFORM_HAS_NO_RANKS = "equal scores rank nothing"


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

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    ways: tuple[str, ...] = RANDOMISATION_WAYS
    claim: ClassVar[Claim | None] = None
    usual: ClassVar[bool] = False  # it takes the methods' passes on many copies
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        if len({*self.ways} & {*RANDOMISATION_WAYS}) < len(self.ways):
            raise ConfigError(
                f"ways must be {' or '.join(RANDOMISATION_WAYS)}, both or none, not {self.ways}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """Those of the methods, then those of the controls."""
        return tuple(f"{RANK_CORRELATION}_{name}" for name in (*self.names, "uniform", "random"))

    def __call__(self, context: BatchContext) -> Findings:
        try:
            copies = randomisable_copy(context.subject, seed=context.seed)
        except NotApplicable as reason:
            return Findings((), dict.fromkeys(self.measures, str(reason)))
        words = WordView(context)
        own, refused = score_words(words, self.methods, context.predicted)
        measured = [self._chance(words)]
        known: dict[tuple[str, ...], list[Tensor]] = {}  # some settings are one copy
        for setting, groups in self._copies(tuple(copies.groups)).items():
            if groups not in known:
                other, more = self._scores(words, copies, groups)
                refused = more | refused
                pairs = zip(own, other, strict=True)
                known[groups] = [score_correlation(*pair, words) for pair in pairs]
            for name, column in zip(self.names, known[groups], strict=True):
                measured.append(to_measurement(f"{RANK_CORRELATION}_{name}", column, setting))
        missing = {f"{RANK_CORRELATION}_{name}": why for name, why in refused.items()}
        return Findings(
            tuple(measured), missing | {f"{RANK_CORRELATION}_uniform": UNIFORM_HAS_NO_RANKS}
        )

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
        self, words: WordView, copies: RandomisableCopy, groups: Sequence[str]
    ) -> tuple[list[Float64[Tensor, "B W"]], dict[str, str]]:
        """The methods' scores on a copy, for the classes that the model itself predicts."""
        own = words.context
        subject = copies.randomise(own.subject, groups)
        other = BatchContext(subject, own.batch, own.seed, own.max_batch_tokens, own.clock)
        if len(groups) == len(copies.groups) and torch.equal(other.logits, own.logits):
            raise ModelError(
                f"{own.subject.family} says exactly the same with all its weights drawn anew: it "
                "does not compute with the parameters it shows."
            )
        return score_words(WordView(other), self.methods, own.predicted)

    def _chance(self, words: WordView) -> Measurement:
        """Two random orders."""
        one, other = random_scores(words, "two orders of randomisation", draws=2)
        return to_measurement(f"{RANK_CORRELATION}_random", score_correlation(one, other, words))


def score_correlation(
    one: Float64[Tensor, "B W"], other: Float64[Tensor, "B W"], words: WordView
) -> Float64[Tensor, "B"]:
    """ρ of the sizes; NaN where a method refuses a text, and where all its words are tied."""
    rho = spearman(one.nan_to_num(0.0).abs(), other.nan_to_num(0.0).abs(), words.real)
    return torch.where((one + other).isfinite().all(-1), rho, torch.nan)
