"""From estimates to the verdict: checks answer by rules, claims follow from checks."""

from collections.abc import Mapping
from dataclasses import replace

from heedful.auditing.instead import best
from heedful.auditing.retraining_rules import RETRAINING_RULES, SWAP_RULES
from heedful.auditing.rules import RULES, Evidence, Rule
from heedful.core.records import CLAIMS, Answer, CheckResult, ClaimResult, Verdict, Vote

NO_RULES = (Rule("no vote", lambda _: True, lambda _: "No rule says what these figures mean."),)
ALL_RULES = {**RULES, **RETRAINING_RULES}
ANSWER_OF_RANKS: Mapping[Vote, Answer] = {"for": "faithful", "against": "unfaithful"}


def judge(evidence: Evidence) -> Verdict:
    """Apply the rules: checks answer, claims follow from the checks that vote, ranks decides."""
    results = {name: _answered(name, one, evidence) for name, one in evidence.results.items()}
    claims: dict[str, ClaimResult] = {claim: _claim(claim, results, evidence) for claim in CLAIMS}
    ranks = claims["ranks"]
    answer = ANSWER_OF_RANKS.get(ranks.answer, "undecided")
    degree = evidence.place.place if evidence.place else None
    instead = best(evidence.rivals) if ranks.answer == "against" else None
    return Verdict(answer, ranks.why, degree, instead, claims, results)


def _answered(name: str, result: CheckResult, evidence: Evidence) -> CheckResult:
    answer, why = _first(ALL_RULES.get(name, NO_RULES), evidence)
    return replace(result, answer=answer, why=why)


def _first(rules: tuple[Rule, ...], evidence: Evidence) -> tuple[Vote, str]:
    """What the first rule that holds says."""
    rule = next(rule for rule in rules if rule.when(evidence))
    told = rule.why(evidence)
    return rule.answer, told[0].upper() + told[1:]


def _claim(claim: str, results: Mapping[str, CheckResult], evidence: Evidence) -> ClaimResult:
    bearing = tuple(name for name in results if evidence.checks[name].claim == claim)
    votes = {
        name: (results[name].answer, results[name].why)
        for name in bearing
        if evidence.checks[name].votes
    }
    if claim == "used" and evidence.results.get("necessity", NOTHING).estimates:
        bearing, votes = (
            (*bearing, "necessity"),
            votes | {"necessity": _first(SWAP_RULES, evidence)},
        )
    if not bearing:
        return ClaimResult("not examined", "None of the checks that were run bears on this.", ())
    if not votes:
        why = f"No check that was run has a vote on this. {results[bearing[0]].why}"
        return ClaimResult("undecided", why, bearing)
    decisive: Vote = "for" if claim == "used" else "against"
    return ClaimResult(*_together(votes, decisive), bearing)


NOTHING = CheckResult("undecided", "", {})


def _together(votes: Mapping[str, tuple[Vote, str]], decisive: Vote) -> tuple[Vote, str]:
    """What several checks say of a claim: one with the decisive answer is enough, else all agree.

    One way to move the output shows that attention is used; one way to change attention at no cost
    shows that it is not robust.
    """
    told = " ".join(why for _, why in votes.values())
    answers = {answer for answer, _ in votes.values()}
    if decisive in answers:
        return decisive, told
    answer = answers.pop() if len(answers) == 1 else "undecided"
    return ("undecided" if answer == "no vote" else answer), told
