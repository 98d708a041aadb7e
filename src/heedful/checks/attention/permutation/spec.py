"""What `permutation` asks, measures and concludes."""

from functools import partial

from heedful.checks.spec import (
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    VoteRule,
    always,
    estimate_of,
    rules_by_interval,
)
from heedful.results.figure_data import FigureWords, densities_by_weight

NAME = "permutation"
_shuffled, _leverage = estimate_of(NAME, "median_tvd"), estimate_of(NAME, "leverage")


def _epsilon(e: Evidence) -> float:
    return e.epsilon


def _shuffling(e: Evidence) -> str:
    return f"Shuffling the weights changes the output by {_shuffled(e)}"


USED_RULES = (
    VoteRule(
        "refutes",
        lambda e: _leverage(e).high < e.epsilon,
        lambda e: (
            f"No attention at all changes the output by {e.epsilon:g}: the most that any could do "
            f"is {_leverage(e)}."
        ),
    ),
    *rules_by_interval(
        _shuffled,
        _epsilon,
        above=lambda e: (
            f"{_shuffling(e)}, more than the {e.epsilon:g} that counts as the same output."
        ),
        below=lambda e: (
            f"{_shuffling(e)}, less than the {e.epsilon:g} that counts as the same output (at most "
            f"possible: {_leverage(e)})."
        ),
        around=lambda e: f"{_shuffling(e)}; the interval contains {e.epsilon:g}.",
    ),
)
EXCLUSIVE_RULES = (
    VoteRule(
        "refutes",
        lambda e: _leverage(e).high < e.epsilon,
        lambda e: (
            f"Any attention gives the same output: the most that one could change it is "
            f"{_leverage(e)}."
        ),
    ),
    VoteRule(
        "undecided",
        always,
        lambda e: (
            f"Attention can change the output by up to {_leverage(e)}, so it is not ignored; how "
            "far one with the same output can be stays open."
        ),
    ),
)

SPEC = CheckSpec(
    NAME,
    "Does shuffled attention change the output?",
    (
        Measure("median_tvd", "median change of output when weights are shuffled", "up"),
        Measure("leverage", "largest change any attention can cause", "up"),
        Measure("median_of_leverage", "the first as a share of the second", "up"),
        Measure("median_tvd_all_keys", "the first, special tokens' weights shuffled too", "up"),
        Measure("median_tvd_random_rows", "the first, rows of other positions", role="control"),
        Measure("max_attention", "largest weight", averaged=False),
    ),
    "heedful.checks.attention.permutation.check:Permutation",
    claim="used",
    source="Jain & Wallace, 2019, experiment 2.1",
    leading=("median_tvd", "leverage"),
    rules=USED_RULES,
    votes=(
        ClaimVote(
            "exclusive",
            "other weights",
            _leverage,
            _epsilon,
            EXCLUSIVE_RULES,
            leading=("leverage",),
        ),
    ),
    sliced=("median_tvd",),
    figures=partial(
        densities_by_weight,
        check=NAME,
        most=1.0,
        words=(
            FigureWords(
                "median_tvd",
                "Shuffling the weights",
                "To the left: the output stays although the weights are shuffled.",
                "median change of output (TVD)",
            ),
        ),
    ),
)
