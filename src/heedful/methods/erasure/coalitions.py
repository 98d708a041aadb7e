"""Coalitions of a text's players: some stay visible, the others are hidden, the model is asked.

A player is a token or a whole word. Coalitions are drawn by their size, so that every method can
give each size the mass it wants; methods that ask together share the passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.delete_words import same_word_mask
from heedful.models.perturbed.mask_words import logits_with_masked_tokens
from heedful.numerics.tensor.target import TargetValue, target_value

Players = Literal["tokens", "words"]
CoalitionMasks = NDArray[np.bool_]

MAX_NUMBERS_PER_PASS = (
    2**22
)  # logits or hidden tokens: a vocabulary as output makes everything large
MAX_LISTED = 5_000  # strata up to this size are drawn from without replacement
MIN_SAMPLES = 4  # the whole text, nothing of it, and one pair between


def require_coalition_settings(of: str, players: str, samples: int = MIN_SAMPLES) -> None:
    """Refuse what no method that hides players can do."""
    require_one_of("of", of, ("probability", "log_odds", "logit"))
    require_one_of("players", players, ("tokens", "words"))
    if samples < MIN_SAMPLES:
        raise ConfigError(f"samples must be at least {MIN_SAMPLES}, not {samples}.")


def player_index(batch: Batch, players: Players) -> Int[Tensor, "B T"]:
    """The number of the player that each token belongs to, in the order of the text; −1 for none.

    Words without any token, such as those cut off, are no players.
    """
    if players == "tokens":
        return torch.where(batch.mask, batch.mask.cumsum(-1) - 1, -1)
    first = same_word_mask(batch).byte().argmax(-1)
    heads = batch.mask & (first == torch.arange(batch.ids.shape[1]))
    return torch.where(batch.mask, (heads.cumsum(-1) - 1).gather(1, first), -1)


def player_counts(token_player: Int[Tensor, "B T"]) -> list[int]:
    """How many players each text has."""
    found: list[int] = (token_player.amax(-1) + 1).tolist()
    return found


def spread_scores(
    name: str,
    context: BatchContext,
    token_player: Int[Tensor, "B T"],
    scores: Sequence[Float64[Tensor, "_"]],
) -> Explanation:
    """Each player's score on its tokens, in equal parts."""
    found = torch.zeros(token_player.shape, dtype=torch.float64)
    for row, one in enumerate(scores):
        mine = token_player[row][token_player[row] >= 0]
        found[row, token_player[row] >= 0] = (one / mine.bincount(minlength=len(one)))[mine]
    return explanation_from_scores(name, context, found)


def target_and_rest_logits(
    context: BatchContext,
    target: Int[Tensor, "B"],
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
) -> Float64[Tensor, "N 2"]:
    """The target's logit and that of all its rivals together, with the tokens hidden.

    These two are all that is explained of an output; to keep every logit of every variant would
    take gigabytes where the classes are a vocabulary.
    """
    size = max(1, MAX_NUMBERS_PER_PASS // max(len(context.subject.labels), hidden.shape[1]))
    found = []
    for some, hide in zip(torch.split(rows, size), torch.split(hidden, size), strict=True):
        logits = logits_with_masked_tokens(context, some, hide).cpu().double()
        chosen = target_value(logits, target[some], "logit")
        found.append(
            torch.stack([chosen, chosen - target_value(logits, target[some], "log_odds")], -1)
        )
    return torch.cat(found)


def target_value_of_pairs(
    target_and_rest: Float64[Tensor, "N 2"], of: TargetValue
) -> Float64[Tensor, "N"]:
    """The target's value where it has one rival that stands for all."""
    return target_value(target_and_rest, torch.zeros(len(target_and_rest), dtype=torch.long), of)


@dataclass(frozen=True, slots=True, eq=False)
class CoalitionValues:
    """One text: the coalitions that were visible, and what the model said to each.

    The whole text comes first, nothing of it last. Where all coalitions are there they count down
    as binary numbers, the first player their lowest digit.
    """

    visible: Bool[Tensor, "N M"]
    target_and_rest: Float64[Tensor, "N 2"]

    @property
    def players(self) -> int:
        """How many players the text has."""
        return self.visible.shape[1]

    def values(self, of: TargetValue) -> Float64[Tensor, "N"]:
        """The target's value under each coalition."""
        return target_value_of_pairs(self.target_and_rest, of)

    def weights(self, mass: Float64[Tensor, "K"]) -> Float64[Tensor, "N"]:
        """Each coalition's weight where those of size k have mass[k] together, k = 0 … players.

        The mass of a size that nobody was drawn of goes to the nearest size that has coalitions.
        """
        sizes, home = self.visible.sum(-1), torch.arange(self.players + 1)
        drawn = torch.unique(sizes[(sizes > 0) & (sizes < self.players)])
        if len(drawn):
            home[1:-1] = drawn[(drawn[:, None] - home[1:-1]).abs().argmin(0)]
        gathered = torch.zeros_like(mass).index_add(0, home, mass)
        return gathered[sizes] / sizes.bincount()[sizes]


@dataclass(frozen=True)
class Coalitions:
    """The games of a batch, for one target class per text; asked of a sitting `once`."""

    target: tuple[int, ...]
    samples: int
    players: Players

    def __call__(self, context: BatchContext) -> tuple[CoalitionValues, ...]:
        token_player, instances = player_index(context.batch, self.players), context.batch.instances
        with context.clock("coalitions"):
            visible = [
                torch.from_numpy(sample_coalitions(count, self.samples, context.seed, instance))
                for count, instance in zip(player_counts(token_player), instances, strict=True)
            ]
            hidden = [
                _hidden(one, places) for one, places in zip(visible, token_player, strict=True)
            ]
            lengths = [len(one) for one in visible]
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
    """Scores by a method's own way to solve a game; the games are played once for all methods."""
    games, nobody = context.cached(coalitions), torch.zeros(0, dtype=torch.float64)
    scores = [solve(game) if game.players else nobody for game in games]
    return spread_scores(name, context, player_index(context.batch, coalitions.players), scores)


def _hidden(visible: Bool[Tensor, "N M"], places: Int[Tensor, "T"]) -> Bool[Tensor, "N T"]:
    """The tokens of the players that are not visible."""
    hidden = torch.zeros(len(visible), len(places), dtype=torch.bool)
    hidden[:, places >= 0] = ~visible[:, places[places >= 0]]
    return hidden


def sample_coalitions(players: int, samples: int, seed: int, instance: int) -> CoalitionMasks:
    """Coalitions of so many players: all where they fit into `samples`, else a stratified draw.

    The draw is everybody, then pairs of a coalition and its complement, then nobody.
    """
    if players < 63 and 2**players <= samples:
        numbers = np.arange(2**players)[::-1]
        every: CoalitionMasks = (numbers[:, None] >> np.arange(players)) % 2 == 1
        return every
    draw = generator(seed, "coalitions", instance)
    parts = [np.ones((1, players), dtype=bool)]
    for size, pairs in pairs_by_size(players, (samples - 2) // 2).items():
        some = _draw_coalitions(players, size, pairs, draw)
        parts += [some, ~some]
    return np.concatenate([*parts, np.zeros((1, players), dtype=bool)])


def pairs_by_size(players: int, pairs: int) -> dict[int, int]:
    """How many pairs are drawn of a coalition of size 1 … players/2 and its complement.

    Half go by the Shapley kernel, half evenly over the sizes, as LIME has it; what is more than a
    size has goes to the others. Single players are complete where they take no more than half:
    with them every regression has an answer.

    >>> pairs_by_size(12, 499)
    {1: 12, 2: 66, 3: 131, 4: 119, 5: 115, 6: 56}
    """
    sizes = range(1, players // 2 + 1)
    found = {1: players} if 2 * players <= pairs else {}
    while True:
        left = [size for size in sizes if size not in found]
        given = _allot_pairs(players, left, pairs - sum(found.values()))
        full = {s: _all_pairs(players, s) for s in left if given[s] >= _all_pairs(players, s)}
        if not full:
            return {**found, **{size: count for size, count in given.items() if count}}
        found |= full


def _allot_pairs(players: int, sizes: Sequence[int], pairs: int) -> dict[int, int]:
    """The pairs by size, each share rounded up or down so that all are given."""
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
    """Coalitions of one size, no two of them a pair where their number allows to list them."""
    if (every := _all_pairs(players, size)) <= max(MAX_LISTED, pairs):
        # in this order one of each pair of the middle size comes first: those of the first player
        listed = islice(combinations(range(players), size), every)
        members = np.array(list(listed))[np.sort(draw.choice(every, pairs, replace=False))]
    else:
        members = draw.random((pairs, players)).argsort(1)[:, :size]
    some = np.zeros((pairs, players), dtype=bool)
    np.put_along_axis(some, members, True, axis=1)
    return some
