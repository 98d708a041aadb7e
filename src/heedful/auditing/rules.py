"""Rules of the checks that look at a batch: when each answers what, and the sentence for it.

A check answers from where attention stands between a control and a reference, by its interval,
never from an absolute τ: an honest model with one decisive word in twenty has τ ≈ 0.3 only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heedful.auditing.erased import erasure_told
from heedful.auditing.instead import Rival
from heedful.auditing.pointed import plausibility_told
from heedful.auditing.redrawn import labels_told, randomisation_told
from heedful.auditing.removed import faithfulness_told
from heedful.checks import Check, Retrains
from heedful.core.records import CheckResult, Estimate, Vote
from heedful.stats.interval import Place

HALFWAY = 0.5  # nearer to the reference than to the control, or not


@dataclass(frozen=True)
class Evidence:
    """All that the rules may look at."""

    results: Mapping[str, CheckResult]
    checks: Mapping[str, Check | Retrains]
    place: Place | None
    epsilon: float
    rivals: tuple[Rival, ...] = ()
    drift: Place | None = None

    def of(self, check: str, measure: str) -> Estimate:
        """An estimate of a check, or one without a value."""
        nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
        return self.results[check].estimates.get(measure, nothing)


@dataclass(frozen=True)
class Rule:
    """An answer, when it holds, and the sentence that says why. NaN never satisfies a rule."""

    answer: Vote
    when: Callable[[Evidence], bool]
    why: Callable[[Evidence], str]


def not_made(check: str) -> Rule:
    """The check could not be made: why."""

    def why(e: Evidence) -> str:
        told = next(iter(e.results[check].missing.values()), "it was not measured")
        return f"{told.rstrip('.')}."

    return Rule("undecided", lambda e: not e.results[check].estimates, why)


def _shuffled(e: Evidence) -> Estimate:
    return e.of("permutation", "median_tvd")


def _leverage(e: Evidence) -> Estimate:
    return e.of("permutation", "leverage")


def _place(e: Evidence) -> Place:
    assert e.place is not None  # noqa: S101 - agreement was examined, or its rules would not run
    return e.place


def _between(e: Evidence) -> str:
    return (
        f"attention ranks words {_place(e).place} of the way from shuffled attention (0) to the "
        "gradient (1), measured by agreement with leave-one-out"
    )


def _mechanism(e: Evidence) -> str:
    weighting, mixing = e.of("mechanism", "tau_weighting"), e.of("mechanism", "tau_mixing")
    if "tau_weighting" not in e.results["mechanism"].estimates:
        return "What each state adds is not known for this decoder."
    if not weighting.n or not mixing.n:
        return "No text has two words that differ, so nothing can be ranked."
    first = f"Weights follow what states contribute at τ {weighting}"
    second = f"contributions follow leave-one-out at τ {mixing}"
    lost = "about as much is lost in both"
    if weighting.high < mixing.low:
        lost = "more is lost in the weighting: attention does not see how much a state has to say"
    elif mixing.high < weighting.low:
        lost = (
            "more is lost in the mixing: what a state adds is not what deleting its word takes away"
        )
    return f"{first}, {second}: {lost}."


RULES: Mapping[str, tuple[Rule, ...]] = {
    "permutation": (
        Rule(
            "against",
            lambda e: _leverage(e).high < e.epsilon,
            lambda e: (
                f"No attention whatever moves the output by {e.epsilon:g}: "
                f"the most any could do is {_leverage(e)}."
            ),
        ),
        Rule(
            "against",
            lambda e: _shuffled(e).high < e.epsilon,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, less than the "
                f"{e.epsilon:g} that counts as the same output (at most possible: {_leverage(e)})."
            ),
        ),
        Rule(
            "for",
            lambda e: _shuffled(e).low > e.epsilon,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, more than the "
                f"{e.epsilon:g} that counts as the same output."
            ),
        ),
        Rule(
            "undecided",
            lambda _: True,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, "
                f"which straddles {e.epsilon:g}."
            ),
        ),
    ),
    "agreement": (
        Rule(
            "undecided",
            lambda e: not _place(e).gap.low > 0,
            lambda e: (
                "Gradient and leave-one-out do not agree with each other beyond chance "
                f"(by {_place(e).gap}), so there is nothing to hold attention against."
            ),
        ),
        Rule(
            "for",
            lambda e: _place(e).place.low > 1.0,
            lambda e: (
                f"On this data {_between(e)}: nearer to deletion than the gradient itself, which "
                "makes the gradient a weak reference here and this answer a mild one."
            ),
        ),
        Rule(
            "for",
            lambda e: _place(e).place.low > HALFWAY,
            lambda e: f"On this data {_between(e)}: nearer to the gradient.",
        ),
        Rule(
            "against",
            lambda e: _place(e).place.high < HALFWAY,
            lambda e: f"On this data {_between(e)}: nearer to chance.",
        ),
        Rule(
            "undecided",
            lambda _: True,
            lambda e: f"On this data {_between(e)}: the interval straddles the middle.",
        ),
    ),
    "adversarial": (
        Rule(
            "no vote",
            lambda _: True,
            lambda e: (
                "The farthest attention with the same output reaches "
                f"{e.of('adversarial', 'of_bound')} of what is possible at all; whether this "
                "can tell honest attention from inert has not been measured."
            ),
        ),
    ),
    "mechanism": (Rule("no vote", lambda _: True, _mechanism),),
    "erasure": (
        Rule("no vote", lambda _: True, lambda e: erasure_told(e.results["erasure"].estimates)),
    ),
    "faithfulness": (
        Rule(
            "no vote",
            lambda _: True,
            lambda e: faithfulness_told(e.results["faithfulness"].estimates),
        ),
    ),
    "plausibility": (
        Rule(
            "no vote",
            lambda _: True,
            lambda e: plausibility_told(e.results["plausibility"].estimates),
        ),
    ),
    "randomisation": (
        Rule(
            "no vote",
            lambda _: True,
            lambda e: randomisation_told(e.results["randomisation"].estimates),
        ),
    ),
    "labels": (
        not_made("labels"),
        Rule("no vote", lambda _: True, lambda e: labels_told(e.results["labels"].estimates)),
    ),
}
