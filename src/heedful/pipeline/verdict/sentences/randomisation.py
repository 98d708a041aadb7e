"""What randomisation found, of weights and of labels, in words."""

from collections.abc import Mapping

from heedful.core.records import Estimate

START = "rank_correlation_"
ALIKE = 0.5  # above this a ranking is more as it was than not
NO_PROOF = "That a ranking changes with the weights does not make it faithful."


def describe_randomisation(found: Mapping[str, Estimate]) -> str:
    """How attention and the others rank once nothing of what was learned is left."""
    named = _named(found, START)
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


def describe_label_randomisation(found: Mapping[str, Estimate]) -> str:
    """How attention and the others rank in models that learned the task's labels, and others."""
    shuffled, true = _named(found, START), _named(found, "with_labels_")
    if not shuffled:
        return "No ranking can be compared with that of a model trained on shuffled labels."
    told = ""
    if "attention" in shuffled:
        told = (
            "Trained on shuffled labels attention ranks words as the model's own does at ρ "
            f"{shuffled['attention']}, trained on the labels as they are at ρ {true['attention']}. "
        )
    same = [name for name, one in _named(found, "learned_").items() if not one.low > 0]
    if same:
        told += f"No nearer to the model with the labels than without: {', '.join(same)}. "
    return f"{told}{convicted(shuffled, 'what the labels taught')} {NO_PROOF}"


def _named(found: Mapping[str, Estimate], start: str) -> dict[str, Estimate]:
    """The estimates of one measure by method."""
    return {
        name.removeprefix(start): one
        for name, one in found.items()
        if name.startswith(start) and one.n
    }
