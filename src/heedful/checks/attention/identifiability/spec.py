"""What `identifiability` asks and measures; it has no vote."""

from heedful.checks.attention.identifiability.figures import build_figures
from heedful.checks.attention.identifiability.sections import build_sections
from heedful.checks.spec import CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult

NAME = "identifiability"
LAYERS = ("layer", "setting")
HEADS = ("layer", "head")


def describe(result: CheckResult) -> str:
    """One sentence for each question that has an answer."""
    share, identified, own = (
        result.of(name) for name in ("no_effect_share", "token_identified", "own_share")
    )
    sentences = []
    if share.n:
        sentences.append(
            f"A share of {share} of the audited weights cannot affect the output of their heads, "
            f"at {result.of('keys_per_dimension')} keys per dimension of a head: the more keys, "
            "the larger it must be."
        )
    if identified.n:
        sentences.append(
            f"Of the states they attend to, {identified} still point to their own word (by chance "
            f"{result.of('identified_by_chance').value:.3f})."
        )
    if own.n:
        sentences.append(f"A word makes up {own} of its own state.")
    return " ".join(sentences) or "Nothing of this could be measured for this model."


SPEC = CheckSpec(
    NAME,
    "Which part of attention can affect the output, and do states still represent their own word?",
    (
        Measure(
            "no_effect_share",
            "share of squared weight without effect on the head",
            "down",
            by=HEADS,
        ),
        Measure(
            "no_effect_share_distribution", "the same, the sum of weights kept", "down", by=HEADS
        ),
        Measure(
            "keys_per_dimension", "keys per dimension of a head", range=(0.0, 2.0), by=("layer",)
        ),
        Measure("token_identified", "states that point to their own word", "up", by=LAYERS),
        Measure("identified_by_chance", "the same by chance", role="control"),
        Measure("own_share", "a word's own part in its state", "up", by=LAYERS),
        Measure(
            "own_largest", "words that are the largest part of their own state", "up", by=LAYERS
        ),
    ),
    "heedful.checks.attention.identifiability.check:Identifiability",
    source="Brunner et al., 2020",
    title="What attention cannot affect",
    leading=("no_effect_share", "token_identified"),
    rules=describe_only(NAME, describe),
    by_default=False,
    figures=build_figures,
    sections=build_sections,
)
