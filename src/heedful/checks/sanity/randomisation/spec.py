"""What `randomisation` asks and measures; it has no vote."""

from collections.abc import Mapping

from heedful.checks.spec import RANK, CheckSpec, Measure, defined_by_method, describe_only
from heedful.core.records import CheckResult, Estimate

NAME = "randomisation"
RANK_CORRELATION = "rank_correlation"
ALIKE = 0.5  # above this a ranking stays more alike than not
NO_PROOF = "That a ranking changes with the weights does not make it faithful."


def describe(result: CheckResult) -> str:
    """How similar the rankings are once nothing of what was learned is left."""
    methods = defined_by_method(result, RANK_CORRELATION)
    chance = methods.pop("random", None)
    if not methods:
        return "No ranking can be compared with that of a model with random weights."
    sentence = ""
    if own := methods.get("attention"):
        control = f", two random orders at {chance}" if chance else ""
        sentence = (
            "With all weights random, attention ranks words as the model's own does at ρ "
            f"{own}{control}. "
        )
    return f"{sentence}{describe_unchanged(methods, 'what was learned')} {NO_PROOF}"


def describe_unchanged(methods: Mapping[str, Estimate], what: str) -> str:
    """The methods whose interval lies above `ALIKE`."""
    alike = [f"{name} ({one})" for name, one in methods.items() if one.low > ALIKE]
    if not alike:
        return f"No method's ranking is certain to stay alike (ρ above {ALIKE:g}) without {what}."
    return f"Hardly dependent on {what} (ρ above {ALIKE:g}): {', '.join(alike)}."


SPEC = CheckSpec(
    NAME,
    "Does the explanation depend on the trained weights?",
    (
        Measure(
            RANK_CORRELATION,
            "{method} on the model and with random weights, ρ",
            range=RANK,
            by=("method", "setting"),
            short="with all weights random, ρ",
        ),
    ),
    "heedful.checks.sanity.randomisation.check:Randomisation",
    source="Adebayo et al., 2018",
    title="What was learned",
    rules=describe_only(NAME, describe),
    by_default=False,
    takes_methods="always",
)
