"""What `mechanism` asks and measures; it has no vote."""

from heedful.checks.attention.mechanism.figures import build_figures
from heedful.checks.spec import RANK, CheckSpec, Measure, VoteRule, always
from heedful.core.records import CheckResult, Estimate

NAME = "mechanism"


def describe(result: CheckResult) -> str:
    """Whether more agreement is lost in the weights or in the encoder, where that is certain."""
    if "tau_weighting" not in result.estimates:
        reasons = [one.reason for one in result.missing if one.measure == "tau_unrolled"]
        return reasons[0] if reasons else "What each state adds is not known for this decoder."
    weighting, mixing = result.of("tau_weighting"), result.of("tau_mixing")
    if not weighting.n or not mixing.n:
        return "No text has two words that differ, so nothing can be ranked."
    if "tau_unrolled" in result.estimates:
        return _describe_layers(weighting, mixing, result.of("tau_unrolled"))
    lost = _where_lost(
        weighting,
        mixing,
        of="a state",
        mixed="in the encoder: a hidden state carries more than its own word",
    )
    return (
        f"Weights agree with what states contribute at τ {weighting}, contributions with "
        f"leave-one-out at τ {mixing}: {lost}."
    )


def _describe_layers(weighting: Estimate, mixing: Estimate, unrolled: Estimate) -> str:
    lost = _where_lost(
        weighting,
        mixing,
        of="a token",
        mixed="after the layer: what tokens contribute to it differs from the effect of deleting "
        "them",
    )
    if unrolled.high < mixing.low:
        lost += "; tracing through the layers recovers some of what they mix"
    elif mixing.high < unrolled.low:
        lost += "; tracing through the layers below loses more"
    return (
        f"Weights agree with what tokens contribute to the layer at τ {weighting}; contributions "
        f"agree with leave-one-out at τ {unrolled}, and at τ {mixing} once traced through the "
        f"layers: {lost}."
    )


def _where_lost(weighting: Estimate, mixing: Estimate, *, of: str, mixed: str) -> str:
    if weighting.high < mixing.low:
        return (
            f"most disagreement arises in the weights, which do not reflect how much {of} "
            "contributes"
        )
    if mixing.high < weighting.low:
        return f"most disagreement arises {mixed}"
    return "about as much is lost in the weights as in the encoder"


SPEC = CheckSpec(
    NAME,
    "Where do attention and influence diverge: in the weights or in the encoder's mixing of words?",
    (
        Measure("tau_weighting", "attention and contributions, τ", "up", range=RANK, by=("layer",)),
        Measure(
            "tau_mixing", "contributions and leave-one-out, τ", "up", range=RANK, by=("layer",)
        ),
        Measure(
            "tau_unrolled",
            "contributions to one layer and leave-one-out, τ",
            "up",
            range=RANK,
            by=("layer",),
        ),
        Measure("conicity", "how alike the states are (mean cosine)", range=RANK),
    ),
    "heedful.checks.attention.mechanism.check:Mechanism",
    title="Where agreement is lost",
    leading=("tau_weighting", "tau_mixing"),
    rules=(VoteRule("no vote", always, lambda e: describe(e.results[NAME])),),
    figures=build_figures,
)
