"""What erasure found, in one or two sentences."""

from collections.abc import Mapping

from heedful.core.records import Estimate

NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0)
FRACTION = "fraction_to_flip_"


def describe_erasure(found: Mapping[str, Estimate]) -> str:
    """Where attention's order stands between random and optimal, and what the top weight does."""
    can, top = (found.get(name, NOTHING) for name in ("can_flip", "flip_top"))
    if not can.n:
        return "No text has two words, so no weight can be removed."
    if not found.get(f"{FRACTION}attention", NOTHING).n:
        whatever = "no set of words" if f"{FRACTION}optimal" in found else "none of the orders"
        return f"Removing weights changes no decision: {whatever} flips any of {can.n} texts."
    told = _sets(found)
    if top.n:
        told += (
            f" Without the top weight {top.value:.1%} of decisions flip, without another word's, "
            f"drawn at random, {found['flip_random'].value:.1%}."
        )
    return told


def _sets(found: Mapping[str, Estimate]) -> str:
    own, chance = found[f"{FRACTION}attention"], found[f"{FRACTION}random"]
    told = f"To flip a decision {own} of the words must go in the order of attention, {chance} in "
    if f"{FRACTION}optimal" not in found:
        return f"{told}a random one: {_beside(own, chance)}."
    least = found[f"{FRACTION}optimal"]
    return f"{told}a random one and {least} at the least: {_place(own, chance, least)}."


def _beside(own: Estimate, chance: Estimate) -> str:
    if own.high < chance.low:
        return "fewer than by chance"
    return "more than by chance" if own.low > chance.high else "about as many as by chance"


def _place(own: Estimate, chance: Estimate, least: Estimate) -> str:
    """In words, by the middle between the two; both ends are means over the same texts."""
    gap = chance.value - least.value
    if not gap > 0:
        return "random order needs no more, so there is nothing to hold attention against"
    share = f"{(chance.value - own.value) / gap:.2f} of the way from random to optimal"
    middle = (chance.value + least.value) / 2
    if own.n < 2 or own.low <= middle <= own.high:
        return share
    if own.high < middle:
        return f"{share}, nearer to optimal"
    return f"{share}, {'no better than' if own.high >= chance.low else 'nearer to'} random"
