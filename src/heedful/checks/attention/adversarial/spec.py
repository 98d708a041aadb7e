"""What `adversarial` asks, measures and concludes."""

from functools import partial
from math import log

from heedful.checks.spec import (
    JSD,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    VoteRule,
    always,
)
from heedful.core.records import CLAIMS, Claim, Estimate
from heedful.results.figure_data import FigureWords, densities_by_weight

NAME = "adversarial"


def _reached(e: Evidence) -> Estimate:
    return e.of(NAME, "of_bound")


def _describe(e: Evidence) -> str:
    return (
        "The farthest attention with the same output reaches "
        f"{_reached(e)} of the largest possible distance"
    )


RULES = (
    VoteRule(
        "supports", lambda e: _reached(e).high < e.halfway, lambda e: f"{_describe(e)}: near."
    ),
    VoteRule("refutes", lambda e: _reached(e).low > e.halfway, lambda e: f"{_describe(e)}: far."),
    VoteRule("undecided", always, lambda e: f"{_describe(e)}: the interval contains the middle."),
)


def _vote(claim: Claim) -> ClaimVote:
    return ClaimVote(
        claim,
        "distant weights",
        _reached,
        lambda e: e.halfway,
        RULES,
        falls=True,
        leading=() if claim == "exclusive" else ("of_bound",),
    )


SEARCHES = (
    FigureWords(
        "epsilon_max_jsd",
        "Most distant attention found",
        "To the right: the published search finds distant weights with the same output.",
        "ε-max JSD",
    ),
    FigureWords(
        "ascent_jsd",
        "Most distant attention found by linear programs",
        "To the right: linear programs find distant weights with the same output.",
        "JSD",
    ),
    FigureWords(
        "certified_jsd",
        "Most distant attention there is",
        "To the right: distant weights with the same output exist.",
        "certified JSD",
    ),
)

SPEC = CheckSpec(
    NAME,
    "How far can attention change without changing the output?",
    (
        Measure(
            "epsilon_max_jsd", "distance found by the published search, JSD", "down", range=JSD
        ),
        Measure("certified_jsd", "largest distance there is, JSD", "down", range=JSD),
        Measure("ascent_jsd", "distance found by linear programs, JSD", "down", range=JSD),
        Measure("bound_jsd", "upper bound of the distance, JSD", role="reference", range=JSD),
        Measure("of_bound", "best found as a share of the bound", "down"),
        Measure("output_tvd", "change of output at the best found"),
        Measure("random_tvd", "the same for random attentions as far away", role="control"),
        Measure(
            "nullspace_jsd",
            "distance at which a head's output stays the same, JSD",
            "down",
            range=JSD,
        ),
        Measure("tokens_per_dimension", "tokens per dimension of a head", range=(0.0, 2.0)),
    ),
    "heedful.checks.attention.adversarial.check:Adversarial",
    claim="exclusive",
    source="Jain & Wallace, 2019, experiment 2.2",
    leading=("of_bound", "nullspace_jsd"),
    rules=RULES,
    votes=tuple(_vote(claim) for claim in CLAIMS if claim in ("used", "ranks", "exclusive")),
    sliced=("of_bound",),
    quick={"steps": 50},
    figures=partial(densities_by_weight, check=NAME, most=log(2), words=SEARCHES),
)
