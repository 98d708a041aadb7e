"""Rules of the checks that tell something beside the claims: they have no vote, ever."""

from collections.abc import Callable, Mapping

from heedful.core.records import Estimate
from heedful.pipeline.verdict.evidence import Evidence, Rule, not_made
from heedful.pipeline.verdict.sentences.identifiability import identifiability_told
from heedful.pipeline.verdict.sentences.plausibility import plausibility_told
from heedful.pipeline.verdict.sentences.randomisation import labels_told, randomisation_told


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


def _telling(check: str, told: Callable[[Mapping[str, Estimate]], str]) -> Rule:
    return Rule("no vote", lambda _: True, lambda e: told(e.results[check].estimates))


TELLING_RULES: Mapping[str, tuple[Rule, ...]] = {
    "mechanism": (Rule("no vote", lambda _: True, _mechanism),),
    "identifiability": (
        not_made("identifiability"),
        _telling("identifiability", identifiability_told),
    ),
    "plausibility": (_telling("plausibility", plausibility_told),),
    "randomisation": (not_made("randomisation"), _telling("randomisation", randomisation_told)),
    "labels": (not_made("labels"), _telling("labels", labels_told)),
}
