"""What the rules may look at, and what a rule is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from heedful.checks import Check, RetrainingCheck
from heedful.core.records import CheckResult, Estimate, Vote
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.verdict.alternatives import Alternative

HALFWAY = 0.5  # nearer to the reference than to the control, or not
NO_ESTIMATE = Estimate(float("nan"), float("nan"), float("nan"), 0)
NO_PLACE = Place(NO_ESTIMATE, NO_ESTIMATE)


@dataclass(frozen=True)
class Evidence:
    """All that the rules may look at.

    `place` is attention's in `agreement`, `drift` that of other seeds in `seeds`, `places` those
    of other checks; `epsilon` is the change of output that counts as none, `halfway` where a place
    is nearer to its reference than to its control.
    """

    results: Mapping[str, CheckResult]
    checks: Mapping[str, Check | RetrainingCheck]
    place: Place | None
    epsilon: float
    rivals: tuple[Alternative, ...] = ()
    drift: Place | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    halfway: float = HALFWAY

    def of(self, check: str, measure: str) -> Estimate:
        """An estimate of a check, or one without a value."""
        return self.results[check].estimates.get(measure, NO_ESTIMATE)


@dataclass(frozen=True)
class VoteRule:
    """An answer, when it holds, and the sentence that says why. NaN never satisfies a rule."""

    answer: Vote
    when: Callable[[Evidence], bool]
    why: Callable[[Evidence], str]


def apply_rules(rules: tuple[VoteRule, ...], evidence: Evidence) -> tuple[Vote, str]:
    """What the first rule that holds says."""
    rule = next(rule for rule in rules if rule.when(evidence))
    sentence = rule.why(evidence)
    return rule.answer, sentence[0].upper() + sentence[1:]


def not_run_rule(check: str) -> VoteRule:
    """The check could not be made: why."""

    def why(e: Evidence) -> str:
        sentence = next(iter(e.results[check].missing.values()), "it was not measured")
        return f"{sentence.rstrip('.')}."

    return VoteRule("undecided", lambda e: not e.results[check].estimates, why)
