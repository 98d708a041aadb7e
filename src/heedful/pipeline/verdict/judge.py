"""From estimates to the verdict: checks answer by rules, claims follow by what checks are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.core.records import CLAIMS, Answer, CheckResult, ClaimResult, Verdict, Vote
from heedful.pipeline.verdict.alternatives import best_alternative
from heedful.pipeline.verdict.batch_rules import BATCH_RULES
from heedful.pipeline.verdict.check_power import VOTE_SIGNS, CheckPower, PowerTable, describe_power
from heedful.pipeline.verdict.claim_table import CLAIM_TABLE, ClaimEvidence
from heedful.pipeline.verdict.descriptive_rules import DESCRIPTIVE_RULES
from heedful.pipeline.verdict.evidence import Evidence, VoteRule, apply_rules
from heedful.pipeline.verdict.retraining_rules import RETRAINING_RULES
from heedful.pipeline.verdict.sample_size import texts_needed

NO_RULES = (VoteRule("no vote", lambda _: True, lambda _: "No rule says what these figures mean."),)
ALL_RULES = {**BATCH_RULES, **DESCRIPTIVE_RULES, **RETRAINING_RULES}
ANSWER_OF_RANKS: Mapping[Vote, Answer] = {"for": "faithful", "against": "unfaithful"}
DECISIVE: Mapping[str, Vote] = {"used": "for", "exclusive": "against", "robust": "against"}
"""Claims that one witness settles: one way to move the output shows that attention is used, one
distant attention with the same output that it is not exclusive, one way to change attention at no
cost that it is not robust."""
MAJORITY = 0.5  # of the weight, for less against
NO_POWER = "the power of the checks was not measured for this kind of model"


@dataclass(frozen=True)
class Voice:
    """A witness on a claim, what it says, and what it is worth."""

    bearing: ClaimEvidence
    answer: Vote
    why: str
    weight: float


def judge(evidence: Evidence, powers: PowerTable) -> Verdict:
    """Apply the rules: checks answer, claims follow from the checks with power, ranks decides."""
    results = {
        name: _answered(name, one, evidence, powers) for name, one in evidence.results.items()
    }
    claims: dict[str, ClaimResult] = {claim: _claim(claim, evidence, powers) for claim in CLAIMS}
    ranks = claims["ranks"]
    answer = ANSWER_OF_RANKS.get(ranks.answer, "undecided")
    degree = evidence.place.place if evidence.place else None
    instead = best_alternative(evidence.rivals) if ranks.answer == "against" else None
    return Verdict(answer, ranks.why, degree, instead, claims, results)


def claim_answers(evidence: Evidence, powers: PowerTable) -> dict[str, Vote]:
    """What is said of each claim, without the rest of the verdict."""
    return {claim: _claim(claim, evidence, powers).answer for claim in CLAIMS}


def _answered(
    name: str, result: CheckResult, evidence: Evidence, powers: PowerTable
) -> CheckResult:
    """The answer of a check on its own claim; without power there it has none."""
    answer, why = apply_rules(ALL_RULES.get(name, NO_RULES), evidence)
    mine = [one for one in CLAIM_TABLE if one.check == name]
    known = {one.claim: powers.of(one.claim, name) for one in mine}
    own = evidence.checks[name].claim
    if own in known and result.estimates and not _weight(known[own]):
        answer, why = "no vote", f"{why} {_silenced(known[own], powers)}"
    kept = {str(claim): _kept(power) for claim, power in known.items()}
    return replace(result, answer=answer, why=why, power=kept)


def _kept(power: CheckPower | None) -> dict[str, Any]:
    return {"told": describe_power(power)} if power is None else power.to_dict()


def _weight(power: CheckPower | None) -> float:
    return 0.0 if power is None else power.weight


def _silenced(power: CheckPower | None, powers: PowerTable) -> str:
    if not powers.where.measured:
        return "It has no vote: its power was not measured for this kind of model."
    if power is None:
        return "It has no vote: its power was not measured on subjects and texts like these."
    return f"It has no vote: it is not right often enough where the truth is known ({power})."


def _claim(claim: str, evidence: Evidence, powers: PowerTable) -> ClaimResult:
    bearing = tuple(
        name for name in evidence.results if name in _named(claim) or _says(evidence, name, claim)
    )
    if not bearing:
        return ClaimResult("not examined", "None of the checks that were run bears on this.", ())
    voices = _voices(claim, evidence, powers)
    if not voices:
        first = apply_rules(ALL_RULES.get(bearing[0], NO_RULES), evidence)[1]
        unknown = "" if powers.where.measured else f": {NO_POWER}"
        why = f"No check that was run has a vote on this{unknown}. {first}"
        return ClaimResult("undecided", why, bearing)
    answer = _together(claim, voices)
    why = " ".join(one.why for one in voices)
    more = _further(voices, evidence) if answer == "undecided" else None
    if more:
        why += f" If the figures stay where they are, about {more:,} more texts would decide."
    return ClaimResult(answer, why, bearing, more)


def _named(claim: str) -> set[str]:
    return {one.check for one in CLAIM_TABLE if one.claim == claim}


def _says(evidence: Evidence, name: str, claim: str) -> bool:
    """Whether a check that has no place in the table, a plug-in say, is about the claim."""
    return evidence.checks[name].claim == claim


def _voices(claim: str, evidence: Evidence, powers: PowerTable) -> list[Voice]:
    """Who is heard: checks with power on the claim, of those with the same evidence the best."""
    heard: dict[str, Voice] = {}
    for one in CLAIM_TABLE:
        if one.claim != claim or not _examined(one, evidence):
            continue
        voice = Voice(one, *one.vote(evidence), _weight(powers.of(claim, one.check)))
        before = heard.get(one.shares)
        if voice.weight and (before is None or voice.weight > before.weight):
            heard[one.shares] = voice
    return list(heard.values())


def _examined(bearing: ClaimEvidence, evidence: Evidence) -> bool:
    """Whether there is anything to vote by; a check that could not be made has its reason only."""
    result = evidence.results.get(bearing.check)
    return result is not None and bool(result.estimates)


def _together(claim: str, voices: Sequence[Voice]) -> Vote:
    """One witness is enough for some claims, if it says so; else the weight of the votes decides.

    The undecided weigh too: a good witness who cannot tell is not outvoted by a poor one who can.
    """
    decisive, said = DECISIVE.get(claim), {one.answer for one in voices}
    if decisive in said:
        return decisive
    balance = sum(VOTE_SIGNS.get(one.answer, 0) * one.weight for one in voices)
    share = balance / sum(one.weight for one in voices)
    if abs(share) < MAJORITY:
        return "undecided"
    return "for" if share > 0 else "against"


def _further(voices: Sequence[Voice], evidence: Evidence) -> int | None:
    """Texts to add until the best witness who cannot tell could."""
    open_ones = [one for one in voices if one.answer not in VOTE_SIGNS]
    if not open_ones:
        return None
    first = max(open_ones, key=lambda one: one.weight).bearing
    return texts_needed(first.figure(evidence), first.line(evidence)) or None
