"""What training without the words of a method found, in a few sentences."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.pipeline.verdict.evidence import Evidence

BEYOND = "beyond_random_"


def describe_roar(evidence: "Evidence") -> str:
    """What models lack that never had attention's words, beside as many words at random."""
    found = evidence.results["roar"].estimates
    shares = " and ".join(f"{share:.0%}" for share in _shares(evidence.checks["roar"]))
    beyond = {name.removeprefix(BEYOND): one for name, one in found.items() if BEYOND in name}
    random = evidence.of("roar", "score_random")
    whole = evidence.of("roar", "score_whole")
    told = (
        f"Trained and tested without {shares} of the words, models reach {random.value:.3f} where "
        f"the words go at random (whole texts: {whole.value:.3f})"
    )
    if own := beyond.pop("attention", None):
        told += f"; where they are those that attention names, they lose {own} more"
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        told += f"; of the other methods those of {best} cost most, {beyond[best]}"
    return (
        f"{told}. A model made anew may find other ways, and read from what is missing what was "
        "there: a loss shows that the words carried something, none does not show that this model "
        "did not use them."
    )


def _shares(check: Any) -> tuple[float, ...]:
    found: tuple[float, ...] = check.shares
    return found
