"""What `adversarial` asks, measures and concludes."""

from collections.abc import Callable
from functools import partial
from math import log

from heedful.checks.spec import (
    JSD,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    estimate_of,
    halfway,
    rules_by_interval,
)
from heedful.results.figure_data import FigureWords, densities_by_weight

NAME = "adversarial"
_reached = estimate_of(NAME, "of_bound")


def _sentence(ending: str) -> Callable[[Evidence], str]:
    return lambda e: (
        f"The farthest attention with the same output reaches {_reached(e)} of the largest "
        f"possible distance: {ending}."
    )


RULES = rules_by_interval(
    _reached,
    halfway,
    above=_sentence("far"),
    below=_sentence("near"),
    around=_sentence("the interval contains the middle"),
    falls=True,
)
_distance = partial(Measure, direction="down", range=JSD)

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
        _distance("epsilon_max_jsd", "distance found by the published search, JSD"),
        _distance("certified_jsd", "largest distance there is, JSD"),
        _distance("ascent_jsd", "distance found by linear programs, JSD"),
        Measure("bound_jsd", "upper bound of the distance, JSD", role="reference", range=JSD),
        Measure("of_bound", "best found as a share of the bound", "down"),
        Measure("output_tvd", "change of output at the best found"),
        Measure("random_tvd", "the same for random attentions as far away", role="control"),
        _distance("nullspace_jsd", "distance at which a head's output stays the same, JSD"),
        Measure("tokens_per_dimension", "tokens per dimension of a head", range=(0.0, 2.0)),
    ),
    "heedful.checks.attention.adversarial.check:Adversarial",
    claim="exclusive",
    source="Jain & Wallace, 2019, experiment 2.2",
    leading=("of_bound", "nullspace_jsd"),
    rules=RULES,
    votes=(ClaimVote("exclusive", "distant weights", _reached, halfway, RULES, falls=True),),
    sliced=("of_bound",),
    quick={"steps": 50},
    figures=partial(densities_by_weight, check=NAME, most=log(2), words=SEARCHES),
)
