"""What the rules may look at, and what a rule is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from heedful.checks import Check, Retrains
from heedful.core.records import CheckResult, Estimate, Vote
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.verdict.alternatives import Rival

HALFWAY = 0.5  # nearer to the reference than to the control, or not
NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0)
NOWHERE = Place(NOTHING, NOTHING)


@dataclass(frozen=True)
class Evidence:
    """All that the rules may look at.

    `place` is attention's in `agreement`, `drift` that of other seeds in `seeds`, `places` those
    of other checks; `epsilon` is the change of output that counts as none, `halfway` where a place
    is nearer to its reference than to its control.
    """

    results: Mapping[str, CheckResult]
    checks: Mapping[str, Check | Retrains]
    place: Place | None
    epsilon: float
    rivals: tuple[Rival, ...] = ()
    drift: Place | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    halfway: float = HALFWAY

    def of(self, check: str, measure: str) -> Estimate:
        """An estimate of a check, or one without a value."""
        return self.results[check].estimates.get(measure, NOTHING)


@dataclass(frozen=True)
class Rule:
    """An answer, when it holds, and the sentence that says why. NaN never satisfies a rule."""

    answer: Vote
    when: Callable[[Evidence], bool]
    why: Callable[[Evidence], str]


def first_that_holds(rules: tuple[Rule, ...], evidence: Evidence) -> tuple[Vote, str]:
    """What the first rule that holds says."""
    rule = next(rule for rule in rules if rule.when(evidence))
    told = rule.why(evidence)
    return rule.answer, told[0].upper() + told[1:]


def not_made(check: str) -> Rule:
    """The check could not be made: why."""

    def why(e: Evidence) -> str:
        told = next(iter(e.results[check].missing.values()), "it was not measured")
        return f"{told.rstrip('.')}."

    return Rule("undecided", lambda e: not e.results[check].estimates, why)
