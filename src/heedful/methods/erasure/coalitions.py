"""Coalitions of a text's players: the model's outputs with some visible and the others masked.

A player is a token or a whole word. Coalitions are sampled by size, so that every method can
weight sizes as it needs; methods with the same settings share the passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Bool, Float64, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.rng import TextKey, generator
from heedful.core.settings import MOST_REPEATS, Ceiling
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import logits_with_masked_tokens
from heedful.numerics.tensor.target import TargetValue, target_value

Players = Literal["tokens", "words"]
# at least the whole text, nothing of it, and one pair between
Samples = Annotated[int, Ge(4), Le(MOST_REPEATS), Ceiling()]
CoalitionMasks = NDArray[np.bool_]

MAX_NUMBERS_PER_PASS = 2**22  # logits or masked tokens: large where the classes are a vocabulary
MAX_LISTED = 5_000  # sizes with at most so many coalitions are sampled without replacement


def player_index(batch: Batch, players: Players) -> Int[Tensor, "B T"]:
    """The index of each token's player, in the order of the text; −1 for none."""
    if players == "tokens":
        return torch.where(batch.mask, batch.mask.cumsum(-1) - 1, -1)
    return batch.item_index


def player_counts(token_player: Int[Tensor, "B T"]) -> list[int]:
    """The number of players of each text."""
    counts: list[int] = (token_player.amax(-1) + 1).tolist()
    return counts


def spread_scores(
    name: str,
    context: BatchContext,
    token_player: Int[Tensor, "B T"],
    scores: Sequence[Float64[Tensor, "_"]],
) -> Explanation:
    """Spread each player's score equally over its tokens."""
    spread = torch.zeros(token_player.shape, dtype=torch.float64)
    for row, own in enumerate(scores):
        player = token_player[row][token_player[row] >= 0]
        spread[row, token_player[row] >= 0] = (own / player.bincount(minlength=len(own)))[player]
    return explanation_from_scores(name, context, spread)


def target_and_rest_logits(
    context: BatchContext,
    target: Int[Tensor, "B"],
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
) -> Float64[Tensor, "N 2"]:
    """The target's logit and the log-sum-exp of all other logits, with tokens masked.

    Nothing else of an output is explained; all logits of all variants would take gigabytes where
    the classes are a vocabulary.
    """
    size = max(1, MAX_NUMBERS_PER_PASS // max(len(context.subject.labels), hidden.shape[1]))
    pairs = []
    for some, hide in zip(torch.split(rows, size), torch.split(hidden, size), strict=True):
        logits = logits_with_masked_tokens(context, some, hide).cpu().double()
        own = target_value(logits, target[some], "logit")
        pairs.append(torch.stack([own, own - target_value(logits, target[some], "log_odds")], -1))
    return torch.cat(pairs)


def target_value_of_pairs(
    target_and_rest: Float64[Tensor, "N 2"], of: TargetValue
) -> Float64[Tensor, "N"]:
    """The target's value from its logit and that of all other classes together."""
    return target_value(target_and_rest, torch.zeros(len(target_and_rest), dtype=torch.long), of)


@dataclass(frozen=True, slots=True, eq=False)
class CoalitionValues:
    """The coalitions of one text, and the outputs of the model with each of them visible.

    The whole text comes first, the empty coalition last. If all coalitions are there, they count
    down as binary numbers in which the first player is the lowest digit.
    """

    visible: Bool[Tensor, "N M"]
    target_and_rest: Float64[Tensor, "N 2"]

    @property
    def players(self) -> int:
        """The number of players of the text."""
        return self.visible.shape[1]

    def values(self, of: TargetValue) -> Float64[Tensor, "N"]:
        """The target's value under each coalition."""
        return target_value_of_pairs(self.target_and_rest, of)

    def weights(self, mass: Float64[Tensor, "K"]) -> Float64[Tensor, "N"]:
        """The weight of each coalition if those of size k share mass[k], k = 0 … players.

        The mass of a size without sampled coalitions goes to the nearest size that has some.
        """
        sizes, nearest = self.visible.sum(-1), torch.arange(self.players + 1)
        drawn = torch.unique(sizes[(sizes > 0) & (sizes < self.players)])
        if len(drawn):
            nearest[1:-1] = drawn[(drawn[:, None] - nearest[1:-1]).abs().argmin(0)]
        gathered = torch.zeros_like(mass).index_add(0, nearest, mass)
        return gathered[sizes] / sizes.bincount()[sizes]


@dataclass(frozen=True)
class Coalitions:
    """The coalition values of a batch, for one target class per text; `cached` by the context."""

    target: tuple[int, ...]
    samples: int
    players: Players

    def __call__(self, context: BatchContext) -> tuple[CoalitionValues, ...]:
        token_player, texts = player_index(context.batch, self.players), context.batch.content
        with context.clock("coalitions"):
            visible = [
                torch.from_numpy(sample_coalitions(count, self.samples, context.seed, text))
                for count, text in zip(player_counts(token_player), texts, strict=True)
            ]
            # token_player is −1 outside of players, which takes the added last column
            hidden = [
                torch.nn.functional.pad(~each, (0, 1))[:, player]
                for each, player in zip(visible, token_player, strict=True)
            ]
            lengths = list(map(len, visible))
            rows = torch.arange(len(token_player)).repeat_interleave(torch.tensor(lengths))
            target_and_rest = target_and_rest_logits(
                context, torch.tensor(self.target), rows, torch.cat(hidden)
            )
        return tuple(map(CoalitionValues, visible, torch.split(target_and_rest, lengths)))


def explain_by_coalitions(
    name: str,
    context: BatchContext,
    coalitions: Coalitions,
    solve: Callable[[CoalitionValues], Tensor],
) -> Explanation:
    """Compute scores by `solve` from coalition values, which are computed once for all methods."""
    texts, empty = context.cached(coalitions), torch.zeros(0, dtype=torch.float64)
    scores = [solve(values) if values.players else empty for values in texts]
    return spread_scores(name, context, player_index(context.batch, coalitions.players), scores)


def sample_coalitions(players: int, samples: int, seed: int, text: TextKey) -> CoalitionMasks:
    """All coalitions of the players if there are at most `samples`, else a stratified sample.

    The sample is the full coalition, then pairs of a coalition and its complement, then the empty
    coalition.
    """
    if players < 63 and 2**players <= samples:
        numbers = np.arange(2**players)[::-1]
        every: CoalitionMasks = (numbers[:, None] >> np.arange(players)) % 2 == 1
        return every
    draw = generator(seed, "coalitions", text)
    parts = [np.ones((1, players), dtype=bool)]
    for size, pairs in pairs_by_size(players, (samples - 2) // 2).items():
        some = _draw_coalitions(players, size, pairs, draw)
        parts += [some, ~some]
    return np.concatenate([*parts, np.zeros((1, players), dtype=bool)])


def pairs_by_size(players: int, pairs: int) -> dict[int, int]:
    """The number of pairs (a coalition of size 1 … players/2 and its complement) to sample by size.

    Half of them follow the Shapley kernel, half are uniform over sizes, as in LIME; what exceeds
    the pairs of a size goes to the others. Size 1 is complete if that takes at most half of the
    pairs: then every regression has a unique solution.

    >>> pairs_by_size(12, 499)
    {1: 12, 2: 66, 3: 131, 4: 119, 5: 115, 6: 56}
    """
    sizes = range(1, players // 2 + 1)
    complete = {1: players} if 2 * players <= pairs else {}
    while True:
        left = [size for size in sizes if size not in complete]
        given = _allot_pairs(players, left, pairs - sum(complete.values()))
        full = {s: _all_pairs(players, s) for s in left if given[s] >= _all_pairs(players, s)}
        if not full:
            return {**complete, **{size: count for size, count in given.items() if count}}
        complete |= full


def _allot_pairs(players: int, sizes: Sequence[int], pairs: int) -> dict[int, int]:
    """Distribute the pairs over sizes, rounded so that they add up."""
    size = np.array(sizes, dtype=float)
    even = np.where(2 * size == players, 0.5, 1.0)  # the middle size is its own partner
    kernel = even / (size * (players - size))
    share = np.cumsum(kernel / kernel.sum() + even / even.sum()) / 2
    ends = np.floor(share * pairs + 0.5).astype(int)
    return dict(zip(sizes, np.diff(ends, prepend=0).tolist(), strict=True))


def _all_pairs(players: int, size: int) -> int:
    return comb(players, size) // (2 if 2 * size == players else 1)


def _draw_coalitions(
    players: int, size: int, pairs: int, draw: np.random.Generator
) -> CoalitionMasks:
    """Coalitions of one size; no two of them are a pair if there are few enough to list."""
    if (every := _all_pairs(players, size)) <= max(MAX_LISTED, pairs):
        # of the middle size the first half, those with the first player, has one of each pair
        listed = islice(combinations(range(players), size), every)
        members = np.array(list(listed))[np.sort(draw.choice(every, pairs, replace=False))]
    else:
        members = draw.random((pairs, players)).argsort(1)[:, :size]
    some = np.zeros((pairs, players), dtype=bool)
    np.put_along_axis(some, members, True, axis=1)
    return some
