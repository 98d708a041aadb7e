"""What randomisation found, in words."""

from collections.abc import Mapping

from heedful.core.records import Estimate

START = "rank_correlation_"
ALIKE = 0.5  # above this a ranking is more as it was than not
NO_PROOF = "That a ranking changes with the weights does not make it faithful."


def randomisation_told(found: Mapping[str, Estimate]) -> str:
    """How attention and the others rank once nothing of what was learned is left."""
    named = {
        name.removeprefix(START): one
        for name, one in found.items()
        if name.startswith(START) and one.n
    }
    chance = named.pop("random", None)
    if not named:
        return "No ranking can be compared with that of a model whose weights were drawn anew."
    told = ""
    if own := named.get("attention"):
        told = (
            "With all weights drawn anew attention ranks words as the model's own does at ρ "
            f"{own}{f', two random orders at {chance}' if chance else ''}. "
        )
    return f"{told}{convicted(named, 'what was learned')} {NO_PROOF}"


def convicted(named: Mapping[str, Estimate], what: str) -> str:
    """The methods whose interval lies above the bar."""
    alike = [f"{name} ({one})" for name, one in named.items() if one.low > ALIKE]
    if not alike:
        return f"No method's ranking is certain to stay alike (ρ above {ALIKE:g}) without {what}."
    return f"Hardly dependent on {what} (ρ above {ALIKE:g}): {', '.join(alike)}."
