"""The influence of words, alone and together: sets of words, and what each word adds to them.

Words are added to a text in random orders π. The influence of word t is

    m_t = mean over π of |p(π_<t ∪ {t}) − p(π_<t)|,

where p(S) is the probability of the class predicted on the whole text, given only the words S. It
is 0 exactly where a word never matters. Words that each suffice share it, and words that act only
together have it. p(S) has no noise, so m is unbiased. The empty text is left out.

Orders come in pairs that nearly reverse each other; halves of the orders hold whole pairs. The
draws are keyed by the seed and the words of the text.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import comb

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from heedful.core.rng import generator

MOST_ENUMERATED = 6  # texts of at most so many words: every set of words instead of drawn orders
NEAR_FULL = 0.7  # of the words are left in the sets of the near-full reading, at least
TOP_SHARES = (0.1, 0.2, 0.3, 0.5)  # of the words, whose removal is judged
FLIP_SHARE = 0.2
SEARCH_STEPS = 10  # most, of the search for a set of words that flips the prediction
COVERAGES = 2  # how often the near-full reading adds each word
Sets = Bool[np.ndarray, "S I"]
Order = Int64[np.ndarray, "I"]
Amounts = Float64[np.ndarray, "I"]
Draws = Float64[np.ndarray, "R"]


WHOLE = -1  # the number of the whole text among sets of words
Numbers = Int64[np.ndarray, "A"]


@dataclass(frozen=True, eq=False)
class Additions:
    """Words added to sets: word `added[a]` turns set number `before[a]` into number `after[a]`.

    The whole text is not among the sets. `half` is the half of the draws that an addition belongs
    to, 0 or 1.
    """

    sets: Sets
    before: Numbers
    after: Numbers
    added: Numbers
    half: Numbers

    def changes(self, p: Float64[np.ndarray, "S"], whole: float) -> Float64[np.ndarray, "A"]:
        """What each addition changes, from p of the sets and of the whole text."""
        every = np.append(p, whole)
        changes: Amounts = np.abs(every[self.after] - every[self.before])
        return changes

    def mean_changes(self, changes: Float64[np.ndarray, "A"], half: int | None = None) -> Amounts:
        """The mean change by each word, over all additions or those of one half."""
        chosen = np.ones(len(changes), dtype=bool) if half is None else self.half == half
        words = self.sets.shape[1]
        total = np.bincount(self.added[chosen], changes[chosen], minlength=words)
        count = np.bincount(self.added[chosen], minlength=words)
        mean: Amounts = total / np.where(count, count, np.nan)
        return mean


def draw_orders(words: int, orders: int, seed: int, text: str) -> Int64[np.ndarray, "K I"]:
    """Random orders of the words of a text, in pairs that nearly reverse each other.

    A word that comes first in an order has no change there, since the empty text is left out. In
    the mere reverse of that order it would come last, so that the change of the whole text would
    count too often. So the first word of each order of a pair is put at a random place of the
    other, which keeps m unbiased. The first orders do not depend on their number.

    >>> draw_orders(4, 2, 0, "a fine film indeed").tolist()
    [[3, 0, 2, 1], [0, 2, 3, 1]]
    """
    draw = generator(seed, f"orders of influence {text}")
    drawn = [_nearly_reversed(draw.permutation(words), draw) for _ in range(orders // 2)]
    return np.array([one for pair in drawn for one in pair])


def _nearly_reversed(order: Order, draw: np.random.Generator) -> tuple[Order, Order]:
    """An order, and its reverse with the first word of each at a random place of the other."""
    other = order[::-1].copy()
    last, place = len(order) - 1, int(draw.integers(1, len(order)))
    other[[last, place]] = other[[place, last]]
    first = int(draw.integers(last))
    first += first >= place  # anywhere but where the first word has been put
    other[[0, first]] = other[[first, 0]]
    return order, other


def additions_in_orders(orders: Int64[np.ndarray, "K I"]) -> Additions:
    """Every word added in every order; the first of an order has no text before it."""
    count, words = orders.shape
    place = orders.argsort(1)  # place[k, t] of word t
    sets = place[:, None, :] < np.arange(1, words)[None, :, None]
    before = np.arange(count * (words - 1))
    after = np.where((before + 1) % (words - 1), before + 1, WHOLE)
    half = np.repeat(np.arange(count) // 2 % 2, words - 1)
    return Additions(sets.reshape(-1, words), before, after, orders[:, 1:].reshape(-1), half)


def additions_near_full(words: int, seed: int, text: str) -> Additions:
    """Each word added `COVERAGES` times to sets of at least `NEAR_FULL` of the words.

    Every coverage cuts a random order into blocks and adds the words of each block last.
    """
    draw = generator(seed, f"near-full sets of influence {text}")
    ends = np.cumsum(near_full_blocks(words))[:-1]
    sets, after, added, half = [], [], [], []
    for coverage in range(COVERAGES):
        for block in np.split(draw.permutation(words), ends):
            left = np.ones(words, dtype=bool)
            left[block] = False
            for word in block.tolist():
                sets.append(left.copy())
                added.append(word)
                half.append(coverage % 2)
                left[word] = True
                after.append(WHOLE if left.all() else len(sets))
    before = np.arange(len(sets))
    return Additions(np.array(sets), before, np.array(after), np.array(added), np.array(half))


def near_full_blocks(words: int) -> list[int]:
    """The sizes of the blocks of words that the near-full reading adds last; as equal as can be.

    >>> near_full_blocks(20)
    [5, 5, 5, 5]
    """
    most = max(1, int(words - np.ceil(NEAR_FULL * words - 1e-9)))
    return [len(block) for block in np.array_split(np.arange(words), -(-words // most))]


def every_set(words: int) -> Sets:
    """All sets of words but the empty one; the whole text is last."""
    numbers = np.arange(1, 2**words)
    sets: Sets = (numbers[:, None] >> np.arange(words)) % 2 == 1
    return sets


def exact_influence(p: Float64[np.ndarray, "S"], words: int) -> Amounts:
    """m over all orders, from p of every set of words, in the order of `every_set`.

    A word comes to a set of k other words with probability 1 / (n − 1) for each k from 1 to n − 1,
    and each set of that size is as likely.
    """
    sets = every_set(words)
    numbers, sizes = np.arange(1, 2**words), sets.sum(1)
    shares = np.array([1 / ((words - 1) * comb(words - 1, size)) for size in range(words)])
    result = np.zeros(words)
    for word in range(words):
        before = ~sets[:, word]
        after = (numbers[before] | 1 << word) - 1
        result[word] = (shares[sizes[before]] * np.abs(p[after] - p[before])).sum()
    return result


@dataclass(frozen=True, eq=False)
class Influence:
    """The influence of the words of one text, from all draws and from each half of them."""

    whole: Amounts
    halves: tuple[Amounts, Amounts]
    exact: bool = False

    @classmethod
    def of(cls, additions: Additions, p: Float64[np.ndarray, "S"], whole: float) -> "Influence":
        """From words added in orders, or to near-full sets, and p of the sets and of all words."""
        changes = additions.changes(p, whole)
        first, second = (additions.mean_changes(changes, half) for half in (0, 1))
        return cls(additions.mean_changes(changes), (first, second))


def pair_agreement(ranked: Amounts, m: Amounts) -> float:
    """Σ_{i<j} sign(a_i − a_j)(m_i − m_j): pairs in the order of m, each weighted by its stake.

    `ranked` are ranks, equal for ties.

    >>> pair_agreement(np.array([2.0, 1.0, 1.0]), np.array([0.5, 0.2, 0.1])).__round__(3)
    0.7
    """
    signs = np.sign(ranked[:, None] - ranked)
    return float((signs * (m[:, None] - m)).sum() / 2)


def chance_variance(ranked: Amounts, m: Amounts) -> float:
    """The variance of `pair_agreement` where the ranks are shuffled among the words.

    The agreement is Σ c_i m_i, c_i being the words ranked below word i less those above it.

    >>> chance_variance(np.array([1.0, 0.0]), np.array([0.3, 0.1])).__round__(3)
    0.04
    """
    below = np.sign(ranked[:, None] - ranked).sum(1)
    return float(((m - m.mean()) ** 2).sum() * (below**2).sum() / (len(m) - 1))


def pair_stakes(m: Amounts) -> float:
    """Σ_{i<j} |m_i − m_j|: what all pairs have at stake.

    >>> pair_stakes(np.array([0.5, 0.2, 0.1])).__round__(3)
    0.8
    """
    ordered = np.sort(m)
    count = len(m)
    return float((ordered * (2 * np.arange(count) - count + 1)).sum())


def tied_ranks(scores: Amounts, *, relative: float = 1e-6, floor: float = 1e-12) -> Amounts:
    """Ranks from 0, smallest first; neighbours within `relative` of the largest score are tied.

    >>> tied_ranks(np.array([0.5, 0.1, 0.5000001]))
    array([1., 0., 1.])
    """
    order = np.argsort(scores, kind="stable")
    steps = np.diff(scores[order]) > relative * np.abs(scores).max() + floor
    ranks = np.empty(len(scores))
    ranks[order] = np.concatenate([[0], np.cumsum(steps)])
    return ranks


def mean_of_top(ranks: Amounts, m: Amounts) -> float:
    """The influence of the top word; the mean over all that are tied for it."""
    return float(m[ranks == ranks.max()].mean())


def share_size(words: int, share: float) -> int:
    """How many of the words a share is: rounded up, at least one, never all."""
    return min(words - 1, max(1, int(np.ceil(share * words - 1e-9))))


def search_steps(words: int) -> list[int]:
    """How many words the search removes in each of its steps: a fifth of them, in ten at most.

    >>> search_steps(20), sum(search_steps(150)), max(search_steps(150))
    ([1, 1, 1, 1], 30, 3)
    """
    most = share_size(words, FLIP_SHARE)
    ends = [step * most // SEARCH_STEPS for step in range(SEARCH_STEPS + 1)]
    return [end - start for start, end in pairwise(ends) if end > start]


def top_set(ranks: Amounts, size: int, ties: Amounts) -> NDArray[np.bool_]:
    """The words of the highest ranks; `ties`, drawn at random, decide among equal ranks."""
    chosen = np.zeros(len(ranks), dtype=bool)
    chosen[np.lexsort((ties, -ranks))[:size]] = True
    return chosen


def remove_noise(drawn: Draws, half: Draws) -> Draws:
    """√(2 D² − H²): a sum without noise, from all orders (D) and from half of them (H).

    For normal m and noise D² = c (τ² + σ²) and H² = c (τ² + 2σ²), whether the sum is of |m_i − m_j|
    over pairs or of the largest m above the mean, so that what is left is c τ². 0 where nothing
    was drawn; NaN where the sums are noise.

    >>> remove_noise(np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.1, 0.0])).round(3)
    array([1.   , 0.889, 0.   ])
    """
    left = 2 * drawn**2 - half**2
    with np.errstate(invalid="ignore"):
        found: Draws = np.where(drawn > 0, np.sqrt(np.where(left > 0, left, np.nan)), 0.0)
    return found
