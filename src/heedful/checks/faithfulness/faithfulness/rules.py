"""Sentences about removing top-ranked words, for the model and for a copy of it."""

from heedful.core.records import CheckResult, Estimate

LEVEL, HALF = 0.05, 0.5
SIMILAR = 0.8  # a copy that predicts the same on fewer texts says little about the model
NOTHING = "No text has two words, so there is nothing to rank."
NOT_MEASURED = "Whether this separates faithful from inert attention has not been measured."
WAYS = ("deletion", "masking", "infilled")


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
    beyond = {name: one for name, one in result.by_method("beyond_random").items() if one.n}
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
