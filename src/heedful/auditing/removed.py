"""What faithfulness found, in two sentences."""

from collections.abc import Mapping

from heedful.core.records import Estimate

BEYOND, TESTED = "beyond_random_", "p_beyond_random_"
OFF = "off_distribution_"
LEVEL, HALF = 0.05, 0.5


def faithfulness_told(found: Mapping[str, Estimate]) -> str:
    """How far attention's words move the output beyond chance, and which method does best."""
    beyond = {
        name.removeprefix(BEYOND): one
        for name, one in found.items()
        if name.startswith(BEYOND) and one.n
    }
    if not beyond:
        return "No text has two words, so there is nothing to rank."
    told = ""
    if own := beyond.pop("attention", None):
        told = (
            "Deleting the words that attention names takes "
            f"{own} more of the probability than deleting as many at random: "
            f"{_beside(own, found.get(f'{TESTED}attention'))}. "
        )
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        told += f"Of the other methods {best} does most, {beyond[best]}. "
    unsure = "Whether this can tell honest attention from inert has not been measured."
    return f"{told}{strange_told(found)}{unsure}"


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
