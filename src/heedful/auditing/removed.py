"""What faithfulness found, in two sentences."""

from collections.abc import Mapping

from heedful.core.records import Estimate

BEYOND, TESTED = "beyond_random_", "p_beyond_random_"
LEVEL = 0.05


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
    return f"{told}Whether this can tell honest attention from inert has not been measured."


def _beside(own: Estimate, tested: Estimate | None) -> str:
    """In words, by the p-value that is corrected for the number of methods."""
    p = f" (p {tested.value:.2g}, corrected for the methods tried)" if tested else ""
    if tested and tested.value <= LEVEL:
        return f"beyond chance{p}"
    return f"less than chance{p}" if own.high < 0 else f"not beyond chance{p}"
