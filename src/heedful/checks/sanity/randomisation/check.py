"""Does the explanation depend on the trained weights? (Adebayo et al., 2018)"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings, require_ways, to_measurement
from heedful.checks.faithfulness.items import (
    DEFAULT_METHODS,
    ComparesMethods,
    ItemView,
    random_scores,
    score_items,
)
from heedful.checks.requested_methods import MethodOrName
from heedful.core.errors import ModelError, NotApplicable
from heedful.core.records import MissingMeasure
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.randomised_weights import RandomisableCopy, randomisable_copy
from heedful.numerics.tensor.ranking import spearman

RANK_CORRELATION = "rank_correlation"
RANDOMISATION_WAYS = ("cascade", "only")
UNIFORM_HAS_NO_RANKS = "equal scores rank nothing"


@dataclass(frozen=True)
class Randomisation(ComparesMethods):
    """Does the explanation depend on the trained weights?

    The model is copied and weights of the copy are re-initialised at random. `rank_correlation` is
    Spearman's ρ of the absolute scores of a method on the model and on the copy, for the class the
    model predicts, over the words of a text: with all weights random, and under settings with
    some: `cascade`, one group more at a time from the output down, and `only` one group. Near 1,
    the method shows the text or the architecture, not what was learned. A low ρ does not make a
    method faithful, so the check concerns no claim. The control `random` is two random orders.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    ways: tuple[str, ...] = RANDOMISATION_WAYS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_ways(self.ways, RANDOMISATION_WAYS)

    def __call__(self, context: BatchContext) -> Findings:
        try:
            copies = randomisable_copy(context.subject, seed=context.seed)
        except NotApplicable as reason:
            names = (*self.names, "uniform", "random")
            missing = (MissingMeasure(RANK_CORRELATION, str(reason), name) for name in names)
            return Findings((), tuple(missing))
        words = ItemView(context)
        own, refused = score_items(words, self.methods, context.predicted)
        one, another = random_scores(words, "two orders of randomisation", draws=2)
        chance = score_correlation(one, another, words)
        measured = [to_measurement(RANK_CORRELATION, chance, method="random")]
        known: dict[tuple[str, ...], list[Tensor]] = {}  # several settings may be one copy
        for setting, groups in self._copies(tuple(copies.groups)).items():
            if groups not in known:
                other, more = self._scores(words, copies, groups)
                refused = more | refused
                pairs = zip(own, other, strict=True)
                known[groups] = [score_correlation(*pair, words) for pair in pairs]
            for name, column in zip(self.names, known[groups], strict=True):
                measured.append(to_measurement(RANK_CORRELATION, column, setting, method=name))
        refused["uniform"] = UNIFORM_HAS_NO_RANKS
        missing = (MissingMeasure(RANK_CORRELATION, why, name) for name, why in refused.items())
        return Findings(tuple(measured), tuple(missing))

    def _copies(self, groups: tuple[str, ...]) -> dict[str | None, tuple[str, ...]]:
        """The groups of weights that are random under each setting."""
        found: dict[str | None, tuple[str, ...]] = {None: groups}
        if "cascade" in self.ways:
            steps = enumerate(groups, start=1)
            found |= {f"cascade {count}: {name}": groups[:count] for count, name in steps}
        if "only" in self.ways:
            found |= {f"only {name}": (name,) for name in groups}
        return found

    def _scores(
        self, words: ItemView, copies: RandomisableCopy, groups: Sequence[str]
    ) -> tuple[list[Float64[Tensor, "B W"]], dict[str, str]]:
        """The methods' scores on a copy, for the classes that the model itself predicts."""
        own = words.context
        subject = copies.randomise(own.subject, groups)
        other = BatchContext(subject, own.batch, own.seed, own.max_batch_tokens, own.clock)
        if len(groups) == len(copies.groups) and torch.equal(other.logits, own.logits):
            raise ModelError(
                f"{own.subject.family} gives exactly the same output with all its weights random: "
                "it does not compute with the parameters it exposes."
            )
        return score_items(ItemView(other), self.methods, own.predicted)


def score_correlation(
    one: Float64[Tensor, "B W"], other: Float64[Tensor, "B W"], words: ItemView
) -> Float64[Tensor, "B"]:
    """ρ of absolute scores; NaN where a method refuses a text or ties all its words."""
    rho = spearman(one.nan_to_num(0.0).abs(), other.nan_to_num(0.0).abs(), words.real)
    return torch.where((one + other).isfinite().all(-1), rho, torch.nan)
