"""Rules of the checks that tell something beside the claims: they have no vote, ever."""

from collections.abc import Callable, Mapping

from heedful.core.records import Estimate
from heedful.pipeline.verdict.evidence import Evidence, VoteRule, not_run_rule
from heedful.pipeline.verdict.sentences.identifiability import describe_identifiability
from heedful.pipeline.verdict.sentences.plausibility import describe_plausibility
from heedful.pipeline.verdict.sentences.randomisation import (
    describe_label_randomisation,
    describe_randomisation,
)


def _mechanism(e: Evidence) -> str:
    weighting, mixing = e.of("mechanism", "tau_weighting"), e.of("mechanism", "tau_mixing")
    known = e.results["mechanism"].estimates
    if "tau_weighting" not in known:
        missing = e.results["mechanism"].missing.get("tau_unrolled")
        return missing or "What each state adds is not known for this decoder."
    if not weighting.n or not mixing.n:
        return "No text has two words that differ, so nothing can be ranked."
    if "tau_unrolled" in known:
        return _traced(weighting, mixing, known["tau_unrolled"])
    first = f"Weights follow what states contribute at τ {weighting}"
    second = f"contributions follow leave-one-out at τ {mixing}"
    mixed = "in the mixing: what a state adds is not what deleting its word takes away"
    return f"{first}, {second}: {_lost(weighting, mixing, of='a state', mixed=mixed)}."


def _traced(weighting: Estimate, mixing: Estimate, unrolled: Estimate) -> str:
    """The sentence for layers: contributions to one of them, and traced through those below."""
    first = f"Weights follow what tokens contribute to the layer at τ {weighting}"
    second = f"contributions follow leave-one-out at τ {unrolled}"
    third = f"traced through the layers at τ {mixing}"
    mixed = "after it: what tokens contribute is not what deleting them takes away"
    lost = _lost(weighting, mixing, of="a token", mixed=mixed)
    if unrolled.high < mixing.low:
        lost += ", and tracing wins back some that the layers below have mixed"
    elif mixing.high < unrolled.low:
        lost += ", and tracing through the layers below loses more"
    return f"{first}; {second}, {third}: {lost}."


def _lost(weighting: Estimate, mixing: Estimate, *, of: str, mixed: str) -> str:
    """Where more is lost, if that is certain."""
    if weighting.high < mixing.low:
        return f"more is lost in the weighting: attention does not see how much {of} has to say"
    return (
        f"more is lost {mixed}" if mixing.high < weighting.low else "about as much is lost in both"
    )


def _telling(check: str, told: Callable[[Mapping[str, Estimate]], str]) -> VoteRule:
    return VoteRule("no vote", lambda _: True, lambda e: told(e.results[check].estimates))


DESCRIPTIVE_RULES: Mapping[str, tuple[VoteRule, ...]] = {
    "mechanism": (VoteRule("no vote", lambda _: True, _mechanism),),
    "identifiability": (
        not_run_rule("identifiability"),
        _telling("identifiability", describe_identifiability),
    ),
    "plausibility": (_telling("plausibility", describe_plausibility),),
    "randomisation": (
        not_run_rule("randomisation"),
        _telling("randomisation", describe_randomisation),
    ),
    "labels": (not_run_rule("labels"), _telling("labels", describe_label_randomisation)),
}
