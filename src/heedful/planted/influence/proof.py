"""Test the truth of a planted case on sets of words, without any check, method or deletion score.

Short texts are proved on every set of their words; longer ones on sets drawn uniformly in size,
and on sets without any word that matters, where weak words have most effect. In texts of more than
100 words every word is added to four sets, two of them of the latter kind; to the others only words
that matter and 24 drawn ones are. Each set is encoded anew as a text of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.planted.influence.kind import InfluenceCase, KnownText

ENUMERATED_WORDS = 9  # texts of at most so many words are proved on every set of words
DRAWN_SETS = 48  # sets of words of longer texts
LONG_TEXT = 100  # words; in longer texts not every word is added to every set
WHOLE_SETS, ADDED_WORDS = 4, 24  # sets to which every word is, and words that are to every set
BATCH_TOKENS = 8_000
Sets = NDArray[np.bool_]


@dataclass(frozen=True)
class ProofLines:
    """The lines of the bounds; changes of the output are total variation distances.

    Args:
        never: Largest change by a word that never matters.
        slack: How much more than a word of an earlier tier one of a later tier may change a set
            that counts as in order.
        matters: Smallest largest change by a word that matters.
        in_order: Smallest share of sets that order two words as their tiers.
        unused: Largest effect of other weights where attention is not used.
        used: Smallest effect of other weights where it is.
    """

    never: float
    slack: float
    matters: float
    in_order: float
    unused: float
    used: float


EXACT_LINES = ProofLines(never=0.02, slack=0.02, matters=0.1, in_order=0.99, unused=0.02, used=0.15)
# learnt weights are not exact: small changes are larger, and the gap to true effects wider
TRAINED_LINES = ProofLines(
    never=0.09, slack=0.03, matters=0.15, in_order=0.98, unused=0.07, used=0.24
)


@dataclass(frozen=True)
class ProvedBound:
    """A quantity of a case, and the line that it must be above or below."""

    what: str
    value: float
    line: float
    above: bool

    @property
    def holds(self) -> bool:
        """Whether the value lies on the right side of the line; False for NaN."""
        return bool(self.value >= self.line if self.above else self.value <= self.line)

    def __str__(self) -> str:
        side = "at least" if self.above else "at most"
        return f"{self.what}: {self.value:.3g}, must be {side} {self.line:g}"


@dataclass(frozen=True, eq=False)
class SetChanges:
    """What adding each word to each set of the other words changes in the output of a text.

    `changes[s, t]` is the total variation distance, NaN where the set is empty or has the word,
    or the word was not added to it.
    """

    known: KnownText
    changes: Float64[Tensor, "S T"]

    @property
    def largest(self) -> Float64[Tensor, "T"]:
        """The largest change of each word."""
        return self.changes.nan_to_num(0.0).amax(0)

    def count_in_order(self, tolerance: float) -> tuple[int, int]:
        """Of all sets and pairs of words of two tiers: how many agree with the tiers, of how many.

        A pair agrees where adding the word of the earlier tier changes the output at least as much,
        or less by no more than `tolerance`.
        """
        right = count = 0
        for higher, lower in pairs_of_tiers(self.known):
            both = self.changes[:, higher] - self.changes[:, lower]
            both = both[~both.isnan()]
            right += int((both >= -tolerance).sum())
            count += len(both)
        return right, count


def pairs_of_tiers(known: KnownText) -> list[tuple[int, int]]:
    """All pairs of words of which the first has more influence, those that never matter last."""
    words = len(known.text.split())
    never = tuple(position for position in range(words) if position not in known.decisive)
    tiers = (*known.tiers, never)
    return [
        (a, b)
        for i, tier in enumerate(tiers)
        for later in tiers[i + 1 :]
        for a in tier
        for b in later
    ]


def prove(
    case: InfluenceCase, count: int = 24, *, lines: ProofLines | None = None
) -> list[ProvedBound]:
    """Every bound of the truth of a case, on `count` of its texts and as many short ones.

    By default the lines are wider for trained subjects, whose weights are not exact.
    """
    lines = lines or (TRAINED_LINES if case.about.trained else EXACT_LINES)
    texts = case.known(count)
    short = case.known(count, length=case.about.short) if case.about.short else []
    return [*prove_sets(case, [*texts, *short], lines), *prove_attention(case, texts, lines)]


def prove_sets(
    case: InfluenceCase, texts: Sequence[KnownText], lines: ProofLines = EXACT_LINES
) -> list[ProvedBound]:
    """Words said never to matter do not, the others do, and tiers are in order."""
    found = [measure_sets(case.subject, one, seed=case.seed) for one in texts]
    never, matter, right, pairs = 0.0, float("inf"), 0, 0
    for one in found:
        decisive = torch.zeros(len(one.largest), dtype=torch.bool)
        decisive[list(one.known.decisive)] = True
        never = max(never, float(one.largest[~decisive].max()) if (~decisive).any() else 0.0)
        matter = min(matter, float(one.largest[decisive].min()) if decisive.any() else matter)
        counted = one.count_in_order(lines.slack)
        right, pairs = (a + b for a, b in zip((right, pairs), counted, strict=True))
    share = right / max(1, pairs)
    return [
        ProvedBound("largest change by a word that never matters", never, lines.never, above=False),
        ProvedBound(
            "smallest largest change by a word that matters", matter, lines.matters, above=True
        ),
        ProvedBound("sets that order words as their tiers", share, lines.in_order, above=True),
    ]


def measure_sets(subject: Subject, known: KnownText, *, seed: int) -> SetChanges:
    """Encode every set as a text; the empty text is left out."""
    words = known.text.split()
    sets = _all_sets(len(words)) if len(words) <= ENUMERATED_WORDS else _draw_sets(known, seed)
    rows, added = _additions(known, sets, seed)
    base = sets[rows]
    more = base.copy()
    more[np.arange(len(more)), added] = True
    known_sets, place = np.unique(np.concatenate([base, more]), axis=0, return_inverse=True)
    outputs = run_sets(subject, known, known_sets)[torch.from_numpy(place.reshape(-1))]
    before, after = torch.split(outputs, len(base))
    changes = torch.full((len(sets), len(words)), torch.nan, dtype=torch.float64)
    changes[torch.from_numpy(rows), torch.from_numpy(added)] = 0.5 * (after - before).abs().sum(-1)
    return SetChanges(known, changes)


def run_sets(subject: Subject, known: KnownText, sets: Sets) -> Float64[Tensor, "S C"]:
    """The output for the words of each set, in their order; NaN for the empty set."""
    words = np.array(known.text.split(), dtype=object)
    sizes = sets.sum(1)
    order = np.argsort(sizes, kind="stable")
    result = torch.full((len(sets), len(subject.labels)), torch.nan, dtype=torch.float64)
    order = order[sizes[order] > 0]
    step = max(1, BATCH_TOKENS // (len(words) + 2))
    for start in range(0, len(order), step):
        some = order[start : start + step]
        encoded = [
            subject.encode(Example(i, " ".join(words[sets[row]]), -1, pair=known.question))
            for i, row in enumerate(some.tolist())
        ]
        with torch.no_grad():
            logits = subject.forward(subject.batch(encoded)).logits
        result[torch.from_numpy(some)] = logits.double().softmax(-1)
    return result


def _additions(
    known: KnownText, sets: Sets, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a set and a word to add to it: the word is not in the set, which is not empty."""
    count = sets.shape[1]
    added = ~sets & sets.any(1, keepdims=True)
    if count > LONG_TEXT:
        order = generator(seed, f"added {known.text}").permutation(count).tolist()
        others = [place for place in order if place not in known.decisive]
        added[WHOLE_SETS:, others[ADDED_WORDS:]] = False
    rows, words = np.nonzero(added)
    return rows, words


def _all_sets(count: int) -> Sets:
    every: Sets = (np.arange(2**count)[:, None] >> np.arange(count)) % 2 == 1
    return every


def _draw_sets(known: KnownText, seed: int) -> Sets:
    """Half of the sets are drawn uniformly in size from all words.

    The other half have few words that never matter, and of those that do: every set where they are
    at most four, else none or one of them in a quarter each, and any number in the rest. A word
    that matters only in the absence of others would hardly ever show in sets of uniform size.
    The last two of them have no word that matters: all others, and one of them.
    """
    count = len(known.text.split())
    draw = generator(seed, f"sets {known.text}")
    keys, sizes = draw.random((DRAWN_SETS, count)), draw.integers(1, count, DRAWN_SETS)
    sets: Sets = keys.argsort(1).argsort(1) < sizes[:, None]
    matter = sorted(known.decisive)
    never = np.setdiff1d(np.arange(count), matter)
    half = DRAWN_SETS // 2
    some = sets[:half]
    some[:] = draw.random((half, count)) < 3.0 / count
    some[:, matter] = _draw_inside(draw, half, len(matter))
    if len(never):
        some[np.arange(half), draw.choice(never, half)] = True
        sets[half - 2] = ~np.isin(np.arange(count), matter)
        sets[half - 1] = np.arange(count) == never[0]
    return sets


def _draw_inside(draw: np.random.Generator, rows: int, count: int) -> Sets:
    """Sets of the words that matter; each size is as likely as any other where they are drawn."""
    drawn: Sets = draw.random((rows, count)) < draw.random((rows, 1))
    if 2**count <= rows:
        drawn[: 2**count] = _all_sets(count)
    elif count:
        quarter = rows // 4
        drawn[: 2 * quarter] = False
        drawn[np.arange(quarter), draw.integers(count, size=quarter)] = True
    return drawn


def prove_attention(
    case: InfluenceCase, texts: Sequence[KnownText], lines: ProofLines = EXACT_LINES
) -> list[ProvedBound]:
    """Attention orders words as the truth says, and has an effect or none, as it says."""
    mixture, truth = case.truth.mixture, case.truth
    parts: list[tuple[bool | None, bool | None, str]] = [(truth.used, truth.ranks, "")]
    if mixture is not None:
        changed = {mixture.claim: True}, {mixture.claim: False}
        parts = [
            (one.get("used", truth.used), one.get("ranks", truth.ranks), part)
            for one, part in zip(changed, (mixture.holds, mixture.fails), strict=True)
        ]
    bounds: list[ProvedBound] = []
    for used, ranks, part in parts:
        own = [one for one in texts if not part or one.part == part]
        found = _attention_bounds(case, own, lines, used=used, ranks=ranks)
        bounds += [replace(one, what=f"{part}: {one.what}" if part else one.what) for one in found]
    return bounds


def _attention_bounds(
    case: InfluenceCase,
    texts: Sequence[KnownText],
    lines: ProofLines,
    *,
    used: bool | None,
    ranks: bool | None,
) -> list[ProvedBound]:
    measured = [measure_attention(case.subject, one, seed=case.seed) for one in texts]
    if not measured:
        return [ProvedBound("texts", 0, 1, above=True)]
    pairs, tops, effects = (np.array(one, dtype=float) for one in zip(*measured, strict=True))
    pairs = pairs[~np.isnan(pairs)]
    bounds = []
    if ranks is True:
        bounds = [
            ProvedBound("pairs of words in order, mean", float(pairs.mean()), 0.95, above=True),
            ProvedBound(
                "texts whose top word is of the first tier", float(tops.mean()), 0.95, above=True
            ),
        ]
    elif ranks is False:
        bounds = [
            ProvedBound("pairs of words in order, mean", float(pairs.mean()), 0.6, above=False),
            ProvedBound(
                "texts whose top word is of the first tier", float(tops.mean()), 0.3, above=False
            ),
        ]
    if used is True:
        bounds.append(
            ProvedBound(
                "effect of other weights, least", float(effects.min()), lines.used, above=True
            )
        )
    elif used is False:
        bounds.append(
            ProvedBound(
                "effect of other weights, most", float(effects.max()), lines.unused, above=False
            )
        )
    return bounds


def measure_attention(
    subject: Subject, known: KnownText, *, seed: int
) -> tuple[float, bool, float]:
    """Share of pairs in order by attention; top word of the first tier; largest effect of weights.

    Ties count half. The weights tried give everything to one word, or are drawn at random.
    """
    batch = subject.batch([subject.encode(known.example(0))])
    context = BatchContext(subject, batch)
    with torch.no_grad():
        forward = context.forward
        weights = forward.attention[0][batch.mask[0]].double()
        pairs = pairs_of_tiers(known)
        signs = [float(torch.sign(weights[a] - weights[b])) for a, b in pairs]
        share = float(np.mean(signs)) / 2 + 0.5 if signs else float("nan")
        first = bool(known.tiers) and int(weights.argmax()) in known.tiers[0]
        count = len(weights)
        draw = generator(seed, f"weights {known.text}")
        tried = torch.cat([torch.eye(count), torch.from_numpy(draw.dirichlet([0.3] * count, 32))])
        full = torch.zeros(len(tried), 1, batch.ids.shape[1], dtype=weights.dtype)
        full[:, 0, batch.mask[0]] = tried.to(weights)
        if forward.rows is not None:
            full = full[:, :, None].expand(-1, -1, forward.rows.shape[1], -1)
        logits = context.decode(context.place_on_words(full.to(forward.attention)))
        change = 0.5 * (logits.softmax(-1) - forward.probabilities).abs().sum(-1)
    return share, first, float(change.max())
