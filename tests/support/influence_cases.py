"""Cases of kinds whose truth is known by sets of words, as they are and under a wrong truth."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from heedful.planted.influence import kind as kinds
from heedful.planted.influence.kind import InfluenceCase, InfluenceTruth, KnownText, Mixture
from heedful.planted.influence.proof import ProvedBound, prove, prove_attention, prove_sets

TEXTS = 8


@dataclass(frozen=True)
class ClaimedCase(InfluenceCase):
    """A case under another truth than its own."""

    claimed: InfluenceTruth

    @property
    def truth(self) -> InfluenceTruth:
        return self.claimed


def kinds_of(family: str) -> list[str]:
    return [name for name, one in kinds.influence_kinds().items() if one.family == family]


def shortest_case(name: str, seed: int = 0) -> InfluenceCase:
    return InfluenceCase(name, min(kinds.influence_kinds()[name].lengths), seed)


def failures(case: InfluenceCase) -> list[str]:
    return _failed(prove(case, count=TEXTS))


def failures_of_truth(case: InfluenceCase, truth: InfluenceTruth) -> list[str]:
    """Bounds of attention that fail if this is said to be the truth of the case."""
    claimed = ClaimedCase(case.kind, case.length, case.seed, truth)
    return _failed(prove_attention(claimed, case.known(TEXTS)))


def failures_of_texts(case: InfluenceCase, change: Callable[[KnownText], KnownText]) -> list[str]:
    """Bounds on sets that fail if this is said to be the truth of the texts."""
    return _failed(prove_sets(case, [change(one) for one in case.known(TEXTS)]))


def wrong_truths(truth: InfluenceTruth) -> list[InfluenceTruth]:
    """Each claim negated in turn; of a mixed truth, also the two parts swapped."""
    wrong = [replace(truth, used=not truth.used)] if truth.used is not None else []
    wrong += [replace(truth, ranks=not truth.ranks)] if truth.ranks is not None else []
    if truth.mixture is not None:
        one = truth.mixture
        wrong.append(
            replace(truth, mixture=Mixture(one.claim, one.split, holds=one.fails, fails=one.holds))
        )
    return wrong


def say_none_matters_first(known: KnownText) -> KnownText:
    """The words of the first tier are said never to matter."""
    return replace(known, tiers=known.tiers[1:])


def say_all_matter(known: KnownText) -> KnownText:
    """All words that never matter are said to matter a little."""
    never = set(range(len(known.text.split()))) - known.decisive
    return replace(known, tiers=(*known.tiers, tuple(sorted(never))))


def reverse_tiers(known: KnownText) -> KnownText:
    return replace(known, tiers=known.tiers[::-1])


def _failed(bounds: list[ProvedBound]) -> list[str]:
    return [str(one) for one in bounds if not one.holds]
