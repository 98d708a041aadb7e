"""What `erasure` asks, measures and concludes."""

from heedful.checks.attention.erasure.figures import build_figures
from heedful.checks.spec import (
    JSD_DIFFERENCE,
    CheckSpec,
    Measure,
    PlaceSpec,
    rules_by_place,
)
from heedful.core.records import CheckResult, Estimate, Series

NAME = "erasure"
OWN, CONTROL, BEST = (f"fraction_to_flip_{one}" for one in ("attention", "random", "optimal"))


def describe(result: CheckResult) -> str:
    """Where attention's order stands between random and optimal, and what the top weight does."""
    can, top = result.of("can_flip"), result.of("flip_top")
    if not can.n:
        return "No text has two words, so no weight can be removed."
    if not result.of(OWN).n:
        tried = "no set of words" if BEST in result.estimates else "none of the orders"
        return f"Removing weights changes no decision: {tried} flips any of {can.n} texts."
    sentence = _describe_orders(result)
    if top.n:
        sentence += (
            f" Without the top weight {top.value:.1%} of decisions flip, without the weight of "
            f"another random word {result.of('flip_random').value:.1%}."
        )
    return sentence


def _describe_orders(result: CheckResult) -> str:
    own, chance = result.of(OWN), result.of(CONTROL)
    sentence = f"To flip a decision, {own} of the words must go in the order of attention, {chance}"
    if BEST not in result.estimates:
        return f"{sentence} in random order: {_compare(own, chance)}."
    least = result.of(BEST)
    return f"{sentence} in random order and at least {least}: {_place(own, chance, least)}."


def _compare(own: Estimate, chance: Estimate) -> str:
    if own.high < chance.low:
        return "fewer than by chance"
    return "more than by chance" if own.low > chance.high else "about as many as by chance"


def _place(own: Estimate, chance: Estimate, least: Estimate) -> str:
    """In words, by the middle between the two; both ends are means over the same texts."""
    gap = chance.value - least.value
    if not gap > 0:
        return "random order needs no more, so there is no scale for attention"
    share = f"{(chance.value - own.value) / gap:.2f} of the way from random to optimal"
    middle = (chance.value + least.value) / 2
    if own.n < 2 or own.low <= middle <= own.high:
        return share
    if own.high < middle:
        return f"{share}, nearer to optimal"
    return f"{share}, {'no better than' if own.high >= chance.low else 'nearer to'} random"


RULES = rules_by_place(NAME, describe)
SPEC = CheckSpec(
    NAME,
    "Do the highest attention weights decide the prediction?",
    (
        Measure("flip_top", "decisions that flip without the top weight", "up", kind="share"),
        Measure("flip_random", "the same without another random word's weight", role="control"),
        Measure(
            "js_top_minus_random",
            "how much farther the first moves the output, JSD",
            "up",
            range=JSD_DIFFERENCE,
        ),
        Measure("can_flip", "texts whose decision some removal flips", kind="share"),
        Measure(OWN, "words to remove until the decision flips, by attention", "down"),
        Measure("fraction_to_flip_gradient", "the same by the gradient at the weights"),
        Measure("fraction_to_flip_attention_x_gradient", "the same by attention × gradient"),
        Measure(CONTROL, "the same in random order", role="control"),
        Measure(BEST, "the same for the smallest set there is", role="reference"),
        Measure("attention_gap", "top weight minus that of the random word", averaged=False),
    ),
    "heedful.checks.attention.erasure.check:Erasure",
    claim="ranks",
    source="Serrano & Smith, 2019",
    leading=("flip_top", "flip_random"),
    rules=RULES,
    place=PlaceSpec(Series(OWN), Series(CONTROL), Series(BEST), lower_is_better=True),
    figures=build_figures,
)
