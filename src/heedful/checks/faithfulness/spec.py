"""What `faithfulness` asks, measures and concludes."""

from functools import partial

from heedful.checks.faithfulness.figures import WAYS, build_figures
from heedful.checks.spec import (
    RANK,
    CheckSpec,
    Measure,
    PlaceSpec,
    defined_by_method,
    rules_by_place,
)
from heedful.core.records import CheckResult, Estimate, Series

NAME = "faithfulness"
ATTENTION, RANDOM, LEAVE_ONE_OUT = (
    Series("comprehensiveness", name) for name in ("attention", "random", "leave_one_out")
)
LEVEL, HALF = 0.05, 0.5
SIMILAR = 0.8  # a copy that predicts the same on fewer texts says little about the model
NOTHING = "No text has two words, so there is nothing to rank."
NOT_MEASURED = "Whether this separates faithful from inert attention has not been measured."
_by_method = partial(Measure, by=("method",))
# the setting is the way of removing words, where not the first
_by_way = partial(Measure, by=("method", "setting"))

REMOVAL_MEASURES = (  # of every method, by each way of removing words
    _by_way(
        "comprehensiveness", "probability lost without the top words of {method}", "up", range=RANK
    ),
    _by_way(
        "sufficiency", "probability lost with only the top words of {method}", "down", range=RANK
    ),
    _by_way("beyond_random", "lost beyond random removal: {method}", "up", range=RANK),
    _by_way("diagnosticity", "random orders that {method} beats", "up"),
    _by_way("worst", "lost in the reverse order of {method}", role="control", range=RANK),
    _by_way("flip", "words to remove until the decision flips, by {method}", "down"),
    _by_way("infidelity", "squared distance of scores and losses: {method}", "down"),
    _by_way("infidelity_scaled", "the same, scores of {method} optimally scaled", "down"),
    _by_way(
        "normalised_comprehensiveness", "share of the text’s total effect lost: {method}", "up"
    ),
    _by_way("normalised_sufficiency", "share of the text’s total effect kept: {method}", "up"),
    _by_way("violation", "words whose sign contradicts their effect: {method}", "down"),
)
P_BEYOND_RANDOM = _by_method(
    "p_beyond_random", "p-value of “no more than random removal”, corrected: {method}", kind="p"
)
SOFT_MEASURES = (
    _by_method("soft_sufficiency", "effect kept, elements zeroed where {method} scores low", "up"),
    _by_method(
        "soft_comprehensiveness", "effect lost, elements zeroed where {method} scores high", "up"
    ),
    _by_method(
        "soft_beyond_random", "lost beyond the same scores shuffled: {method}", "up", range=RANK
    ),
    _by_method("sensitivity", "change of scores of {method} with the vectors", "down"),
)
NATURALNESS_MEASURES = (
    Measure(
        "off_distribution_whole",
        "whole texts with nearer neighbours than the text itself",
        role="control",
    ),
    *(
        Measure(
            f"off_distribution_{way}",
            f"whole texts with nearer neighbours than these: {way}",
            by=("setting",),
        )
        for way in WAYS
    ),
    Measure("not_infilled", "removed words that the language model could not replace"),
    *(
        Measure(
            f"log_perplexity_{way}",
            f"log-perplexity of a token under the language model: {way}",
            range=(0.0, 10.0),
        )
        for way in ("whole", *WAYS)
    ),
)


def describe_faithfulness(result: CheckResult) -> str:
    """How much removing attention's top words changes the output beyond chance."""
    verbs = {"deleting": "deletion", "masking": "masking"}  # the first way that was measured counts
    doing = next((verb for verb, way in verbs.items() if _off(way) in result.estimates), "removing")
    found = _describe_methods(result, doing.capitalize(), f"of the probability than {doing}")
    return f"{found}{_describe_off_distribution(result)}".strip() if found else NOTHING


def describe_masked_copy(result: CheckResult) -> str:
    """The same for a copy trained on masked texts, and how similar the copy is."""
    similar = result.estimates.get("same_prediction")
    found = _describe_methods(
        result, "In the copy, masking", "of the copy's probability than masking"
    )
    if similar is None or not found:
        return NOTHING
    first = (
        "A copy of the model trained on texts with masked words makes the same prediction as the "
        f"model on {similar.value:.1%} of whole texts"
    )
    first += "" if similar.low >= SIMILAR else ", too few for a good copy"
    return f"{first}. {found}{NOT_MEASURED}"


def _describe_methods(result: CheckResult, doing: str, than: str) -> str:
    beyond = defined_by_method(result, "beyond_random")
    tested = result.by_method("p_beyond_random").get("attention")
    found = ""
    if own := beyond.pop("attention", None):
        found = (
            f"{doing} the words that attention ranks highest takes {own} more {than} as many "
            f"random words: {_compare_with_chance(own, tested)}. "
        )
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        found += f"Of the other methods {best} has the largest effect, {beyond[best]}. "
    return found


def _compare_with_chance(own: Estimate, tested: Estimate | None) -> str:
    """In words, by the p-value that is corrected for the number of methods."""
    p = f" (p {tested.value:.2g}, corrected for the number of methods)" if tested else ""
    if tested and tested.value <= LEVEL:
        return f"beyond chance{p}"
    return f"less than chance{p}" if own.high < 0 else f"not beyond chance{p}"


def _off(way: str) -> str:
    return f"off_distribution_{way}"


def _describe_off_distribution(result: CheckResult) -> str:
    """How far texts without the words are from whole texts, by each way; empty where unknown."""
    found = {way: result.of(_off(way)) for way in WAYS if result.of(_off(way)).n}
    if not found:
        return ""
    each = " and ".join(f"{one.value:.0%} ({way})" for way, one in found.items())
    farthest = max(found.values(), key=lambda one: one.value)
    return (
        f"Texts without them are farther from whole texts than {each} of whole texts are from each "
        f"other, where 50% is usual: {_compare_with_whole(farthest)}. "
    )


def _compare_with_whole(most: Estimate) -> str:
    if most.low > HALF:
        return "off distribution for the model, which may cause part of the loss"
    return "no farther than whole texts" if most.high < HALF else "about as far as whole texts"


RULES = rules_by_place(NAME, describe_faithfulness)
SPEC = CheckSpec(
    NAME,
    "Does removing (or keeping only) the words a method ranks highest change the output more than "
    "random words do?",
    (*REMOVAL_MEASURES, *SOFT_MEASURES, *NATURALNESS_MEASURES, P_BEYOND_RANDOM),
    "heedful.checks.faithfulness.check:Faithfulness",
    claim="ranks",
    source="ERASER; DeYoung et al., 2020",
    title="Removing the top-ranked words",
    leading=("beyond_random", "comprehensiveness"),
    rules=RULES,
    place=PlaceSpec(ATTENTION, RANDOM, LEAVE_ONE_OUT),
    by_default=False,
    takes_methods="always",
    figures=build_figures,
)
