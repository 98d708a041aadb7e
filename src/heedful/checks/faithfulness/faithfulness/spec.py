"""What `faithfulness` asks, measures and concludes."""

from functools import partial

from heedful.checks.faithfulness.faithfulness.figures import build_figures
from heedful.checks.faithfulness.faithfulness.rules import WAYS, describe_faithfulness
from heedful.checks.spec import (
    RANK,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    PlaceSpec,
    rules_by_place,
)
from heedful.core.records import Estimate, Series

NAME = "faithfulness"
ATTENTION, RANDOM, LEAVE_ONE_OUT = (
    Series("comprehensiveness", name) for name in ("attention", "random", "leave_one_out")
)
BY_WAY = ("method", "setting")  # the setting is the way of removing words, where not the first
_by_way = partial(Measure, by=BY_WAY)

REMOVAL_MEASURES = (  # of every method, by each way of removing words
    _by_way(
        "comprehensiveness",
        "probability lost without the top words of {method}",
        "up",
        range=RANK,
    ),
    _by_way(
        "sufficiency", "probability lost with only the top words of {method}", "down", range=RANK
    ),
    _by_way("beyond_random", "lost beyond random removal: {method}", "up", range=RANK),
    _by_way("diagnosticity", "random orders that {method} beats", "up"),
    _by_way("worst", "lost in the reverse order of {method}", role="control", range=RANK),
    _by_way("flip", "words to remove until the decision flips, by {method}", "down"),
    _by_way("infidelity", "squared distance of scores and losses: {method}", "down"),
    _by_way("infidelity_scaled", "the same, scores of {method} optimally scaled", "down"),
    _by_way(
        "normalised_comprehensiveness", "share of the text’s total effect lost: {method}", "up"
    ),
    _by_way("normalised_sufficiency", "share of the text’s total effect kept: {method}", "up"),
    _by_way("violation", "words whose sign contradicts their effect: {method}", "down"),
)
P_BEYOND_RANDOM = Measure(
    "p_beyond_random",
    "p-value of “no more than random removal”, corrected: {method}",
    kind="p",
    by=("method",),
)
SOFT_MEASURES = (
    Measure(
        "soft_sufficiency",
        "effect kept, elements zeroed where {method} scores low",
        "up",
        by=("method",),
    ),
    Measure(
        "soft_comprehensiveness",
        "effect lost, elements zeroed where {method} scores high",
        "up",
        by=("method",),
    ),
    Measure(
        "soft_beyond_random",
        "lost beyond the same scores shuffled: {method}",
        "up",
        range=RANK,
        by=("method",),
    ),
    Measure("sensitivity", "change of scores of {method} with the vectors", "down", by=("method",)),
)
NATURALNESS_MEASURES = (
    Measure(
        "off_distribution_whole",
        "whole texts with nearer neighbours than the text itself",
        role="control",
    ),
    *(
        Measure(
            f"off_distribution_{way}",
            f"whole texts with nearer neighbours than these: {way}",
            by=("setting",),
        )
        for way in WAYS
    ),
    Measure("not_infilled", "removed words that the language model could not replace"),
    *(
        Measure(
            f"log_perplexity_{way}",
            f"log-perplexity of a token under the language model: {way}",
            range=(0.0, 10.0),
        )
        for way in ("whole", *WAYS)
    ),
)


def _place(e: Evidence) -> Estimate:
    return e.place(NAME).place


RULES = rules_by_place(NAME, describe_faithfulness)

SPEC = CheckSpec(
    NAME,
    "Does removing (or keeping only) the words a method ranks highest change the output more than "
    "random words do?",
    (*REMOVAL_MEASURES, *SOFT_MEASURES, *NATURALNESS_MEASURES, P_BEYOND_RANDOM),
    "heedful.checks.faithfulness.faithfulness.check:Faithfulness",
    claim="ranks",
    source="ERASER; DeYoung et al., 2020",
    title="Removing the top-ranked words",
    leading=("beyond_random", "comprehensiveness"),
    rules=RULES,
    votes=(ClaimVote("ranks", "deletion", _place, lambda e: e.halfway, RULES),),
    place=PlaceSpec(ATTENTION, RANDOM, LEAVE_ONE_OUT),
    by_default=False,
    takes_methods="always",
    figures=build_figures,
)
