"""What removals found, of the model and of a copy of it, in a few sentences."""

from collections.abc import Mapping

from heedful.core.records import Estimate

BEYOND, TESTED = "beyond_random_", "p_beyond_random_"
OFF = "off_distribution_"
LEVEL, HALF = 0.05, 0.5
ALIKE = 0.8  # a copy that predicts the same on fewer texts tells little of the model
NOTHING = "No text has two words, so there is nothing to rank."


UNSURE = "Whether this can tell honest attention from inert has not been measured."


def describe_faithfulness(found: Mapping[str, Estimate]) -> str:
    """How far attention's words move the output beyond chance, and which method does best."""
    ways = {"deleting": "deletion", "masking": "masking"}  # the first that was asked for counts
    doing = next((word for word, way in ways.items() if f"{OFF}{way}" in found), "removing")
    if not (told := _words_told(found, doing.capitalize(), f"of the probability than {doing}")):
        return NOTHING
    return f"{told}{strange_told(found)}".strip()


def describe_masked_copy(found: Mapping[str, Estimate]) -> str:
    """The same of a copy that knows texts with holes, and whether it still is a copy."""
    alike = found.get("same_prediction")
    told = _words_told(found, "There masking", "of the copy's probability than masking")
    if alike is None or not told:
        return NOTHING
    first = (
        "A copy of the model that has learnt to read texts with holes predicts the same as the "
        f"model on {alike.value:.1%} of whole texts"
    )
    first += "" if alike.low >= ALIKE else ", so few that it is hardly a copy"
    return f"{first}. {told}{UNSURE}"


def _words_told(found: Mapping[str, Estimate], doing: str, than: str) -> str:
    beyond = {
        name.removeprefix(BEYOND): one
        for name, one in found.items()
        if name.startswith(BEYOND) and one.n
    }
    told = ""
    if own := beyond.pop("attention", None):
        told = (
            f"{doing} the words that attention names takes {own} more {than} as many at random: "
            f"{_beside(own, found.get(f'{TESTED}attention'))}. "
        )
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        told += f"Of the other methods {best} does most, {beyond[best]}. "
    return told


def strange_told(found: Mapping[str, Estimate]) -> str:
    """How far texts without the words lie from whole ones, by each way; nothing where unknown."""
    ways = {
        name.removeprefix(OFF): one
        for name, one in found.items()
        if name.startswith(OFF) and name != f"{OFF}whole" and one.n
    }
    if not ways:
        return ""
    each = " and ".join(f"{one.value:.0%} ({way})" for way, one in ways.items())
    return (
        f"Texts without them lie farther from whole texts than {each} of whole texts do from each "
        f"other, where 50% is usual: {_strangest(max(ways.values(), key=lambda one: one.value))}. "
    )


def _strangest(most: Estimate) -> str:
    if most.low > HALF:
        return "strange to the model, so that part of the loss may be theirs"
    return (
        "no stranger to the model than whole texts" if most.high < HALF else "about as whole ones"
    )


def _beside(own: Estimate, tested: Estimate | None) -> str:
    """In words, by the p-value that is corrected for the number of methods."""
    p = f" (p {tested.value:.2g}, corrected for the methods tried)" if tested else ""
    if tested and tested.value <= LEVEL:
        return f"beyond chance{p}"
    return f"less than chance{p}" if own.high < 0 else f"not beyond chance{p}"
