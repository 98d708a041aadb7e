"""From estimates to the verdict: checks vote by their rules, weighted by their measured power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import Any

from heedful.checks.influence.names import NAME as INFLUENCE
from heedful.checks.influence.names import PLACES
from heedful.checks.registry import checks
from heedful.checks.spec import (
    CheckSpec,
    ClaimVote,
    Evidence,
    VoteRule,
    always,
    apply_rules,
    first_rule,
)
from heedful.core.records import (
    CLAIMS,
    Answer,
    CheckResult,
    Claim,
    ClaimAnswer,
    ClaimResult,
    Degree,
    Estimate,
    Verdict,
    Vote,
)
from heedful.pipeline.verdict.check_power import VOTE_SIGNS, CheckPower, PowerTable, describe_power

EXPLAINS: tuple[Claim, ...] = ("ranks", "used")
"""The claims that must both hold for attention to explain a model."""
CLAIM_ANSWERS: Mapping[Vote, ClaimAnswer] = {"supports": "supported", "refutes": "refuted"}
DECISIVE: Mapping[str, Vote] = {"exclusive": "refutes", "robust": "refutes"}
"""Claims that one vote settles: one distant attention with the same output shows that attention is
not exclusive, one way to change attention at no cost that it is not robust."""
MAJORITY = 0.5  # of the weight that supports, less the weight that refutes
NO_POWER = "the power of the checks was not measured for this kind of model"
HOPELESS = 100.0  # times the texts there are: a tie in practice


@dataclass(frozen=True)
class WeightedVote:
    """The vote of a check on a claim, and its weight."""

    vote: ClaimVote
    answer: Vote
    why: str
    weight: float


def judge(evidence: Evidence, powers: PowerTable) -> Verdict:
    """Apply the rules: checks vote, and claims follow from the checks with power.

    Attention explains the model where it ranks words by influence and is used; it does not where
    either is refuted.
    """
    results = {name: _answer(name, evidence, powers) for name in evidence.results}
    claims = {str(claim): _claim(claim, evidence, powers) for claim in CLAIMS}
    places = _places(evidence)
    degree = Degree("order", places["order"]) if places else None
    answer = _answer_of(claims)
    return Verdict(answer, _why(answer, claims), degree, None, claims, results, places=places)


def _answer_of(claims: Mapping[str, ClaimResult]) -> Answer:
    found = [claims[name].answer for name in EXPLAINS]
    if "refuted" in found:
        return "unfaithful"
    return "faithful" if set(found) == {"supported"} else "undecided"


def _why(answer: Answer, claims: Mapping[str, ClaimResult]) -> str:
    """The sentences of the claims that the answer rests on."""
    own = [claims[name] for name in EXPLAINS]
    if answer == "unfaithful":
        own = [one for one in own if one.answer == "refuted"]
    elif answer == "undecided":
        own = [one for one in own if one.answer != "supported"]
    return " ".join(one.why for one in own)


def _places(evidence: Evidence) -> dict[str, Estimate]:
    """Attention's places; none where influence was not measured."""
    result = evidence.results.get(INFLUENCE)
    if result is None or not result.of("order", method="attention").n:
        return {}
    named = {name: result.of(name, method="attention") for name in PLACES}
    return {**named, "reliability": result.of("reliability")}


def claim_answers(evidence: Evidence, powers: PowerTable) -> dict[str, ClaimAnswer]:
    """The answer to each claim, without the rest of the verdict."""
    return {claim: _claim(claim, evidence, powers).answer for claim in CLAIMS}


def check_rules(spec: CheckSpec) -> tuple[VoteRule, ...]:
    """The rules of a check; one that describes none lists its leading estimates."""

    def describe(evidence: Evidence) -> str:
        result = evidence.results[spec.name]
        if not result.measured:
            reason = result.missing[0].reason if result.missing else "it measured nothing"
            return f"{reason.rstrip('.')}."
        names = [name for name in spec.leading or result.estimates if name in result.estimates]
        parts = [f"{spec.measure(name).label or name}: {result.of(name)}" for name in names]
        return f"{'; '.join(parts)}." if parts else "Its estimates are by method, layer or setting."

    return spec.rules or (VoteRule("no vote", always, describe),)


def _answer(name: str, evidence: Evidence, powers: PowerTable) -> CheckResult:
    """The answer of a check on its own claim; without power there it has no vote."""
    spec, result = checks.spec(name), evidence.results[name]
    answer, why = apply_rules(check_rules(spec), evidence)
    known = {vote.claim: powers.of(vote.claim, name) for vote in spec.votes}
    if spec.claim in known and result.measured and not _weight(known[spec.claim]):
        answer, why = "no vote", f"{why} {_explain_no_vote(known[spec.claim], powers)}"
    elif spec.claim in EXPLAINS and spec.claim not in known and result.measured:
        answer = "no vote"  # published tests are shown beside these claims, and do not decide them
    kept = {str(claim): _power_record(power) for claim, power in known.items()}
    return replace(result, answer=answer, why=why, power=kept)


def _power_record(power: CheckPower | None) -> dict[str, Any]:
    return {"description": describe_power(power)} if power is None else power.to_dict()


def _weight(power: CheckPower | None) -> float:
    return 0.0 if power is None else power.weight


def _explain_no_vote(power: CheckPower | None, powers: PowerTable) -> str:
    if not powers.where.measured:
        return "It has no vote: its power was not measured for this kind of model."
    if power is None:
        return "It has no vote: its power was not measured on models and texts like these."
    return f"It has no vote: it is not right often enough where the truth is known ({power})."


def _claim(claim: str, evidence: Evidence, powers: PowerTable) -> ClaimResult:
    specs = {name: checks.spec(name) for name in evidence.results}
    about = [name for name, one in specs.items() if one.claim == claim or _votes_on(one, claim)]
    names = tuple(name for name in about if _votes_on(specs[name], claim)) or tuple(about)
    if not names:
        return ClaimResult("not tested", "No check that ran is about this claim.", ())
    votes = _votes(claim, evidence, powers)
    if votes and all(one.answer == "no vote" for one in votes):
        return ClaimResult("not tested", " ".join(one.why for one in votes), names)
    if not votes:
        spec = specs[names[0]]
        voted = next((vote.rules for vote in spec.votes if vote.claim == claim), ())
        first = apply_rules(voted or check_rules(spec), evidence)[1]
        unknown = "" if powers.where.measured else f": {NO_POWER}"
        why = f"No check that ran has a vote on this{unknown}. {first}"
        return ClaimResult("undecided", why, names)
    answer = CLAIM_ANSWERS.get(_combine(claim, votes), "undecided")
    why = " ".join(one.why for one in votes)
    more = _texts_to_decide(votes, evidence) if answer == "undecided" else None
    if more:
        why += f" If the estimates stay as they are, about {more:,} more texts would decide."
    return ClaimResult(answer, why, names, more)


def _votes_on(spec: CheckSpec, claim: str) -> bool:
    return any(vote.claim == claim for vote in spec.votes)


def _votes(claim: str, evidence: Evidence, powers: PowerTable) -> list[WeightedVote]:
    """The votes that count: of checks with power on the claim, the best for each source."""
    counted: dict[str, WeightedVote] = {}
    for name, result in evidence.results.items():
        for vote in checks.spec(name).votes:
            if vote.claim != claim or not result.measured:
                continue
            weight = _weight(powers.of(claim, name))
            one = WeightedVote(vote, *apply_rules(vote.rules, evidence), weight)
            before = counted.get(vote.source)
            if weight and (before is None or weight > before.weight):
                counted[vote.source] = one
    return list(counted.values())


def _combine(claim: str, votes: Sequence[WeightedVote]) -> Vote:
    """One vote settles some claims; else the weight of the votes decides.

    Undecided votes weigh too: a good check that cannot decide is not outvoted by a poor one that
    can.
    """
    decisive = DECISIVE.get(claim)
    if decisive is not None and any(one.answer == decisive for one in votes):
        return decisive
    balance = sum(VOTE_SIGNS.get(one.answer, 0) * one.weight for one in votes)
    share = balance / sum(one.weight for one in votes)
    if abs(share) < MAJORITY:
        return "undecided"
    return "supports" if share > 0 else "refutes"


def _texts_to_decide(votes: Sequence[WeightedVote], evidence: Evidence) -> int | None:
    """The number of texts to add until the best check that is undecided could decide."""
    undecided = [one for one in votes if one.answer not in VOTE_SIGNS]
    if not undecided:
        return None
    vote = max(undecided, key=lambda one: one.weight).vote
    open_figures = first_rule(vote.rules, evidence).open_figures
    figures = (
        open_figures(evidence) if open_figures else ((vote.figure(evidence), vote.line(evidence)),)
    )
    needed = [texts_needed(*one) for one in figures]
    return None if None in needed else max(filter(None, needed), default=None)


def texts_needed(found: Estimate, line: float) -> int | None:
    """The number of texts to add until the interval leaves the line, if the estimate stays.

    Intervals shrink with the square root of the number of texts. 0 where the interval has left
    the line already; None where no realistic number would do, or there is no interval.

    >>> texts_needed(Estimate(0.6, 0.4, 0.8, 100), 0.5)
    300
    >>> texts_needed(Estimate(0.5, 0.4, 0.6, 100), 0.5) is None
    True
    """
    distance = found.value - line
    half = found.value - found.low if distance > 0 else found.high - found.value
    if not isfinite(half) or not isfinite(distance) or distance == 0 or found.n < 2:
        return None
    times = (half / abs(distance)) ** 2
    if times > HOPELESS:
        return None
    return max(0, ceil(found.n * times - 1e-9) - found.n)
