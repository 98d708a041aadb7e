"""What `influence` asks, measures and concludes."""

from functools import partial

from heedful.checks.influence.figures import build_figures
from heedful.checks.influence.names import NAME, SPLITS
from heedful.checks.influence.rules import (
    RANKS_RULES,
    USED_RULES,
    leverage,
    order,
)
from heedful.checks.influence.sections import build_sections
from heedful.checks.spec import RANK, CheckSpec, ClaimVote, Evidence, Measure, halfway

BY_METHOD = ("method", "setting")
_kept = partial(Measure, averaged=False, by=BY_METHOD)  # per text, for sums over texts


def _epsilon(e: Evidence) -> float:
    return e.epsilon


SPEC = CheckSpec(
    NAME,
    "Does attention point at the words that the output rests on, alone or together?",
    (
        Measure(
            "order",
            "order of all words (chance 0, best 1)",
            "up",
            range=RANK,
            by=BY_METHOD,
            short="order of all words",
            label_by_method="{method}: order of all words (chance 0, best 1)",
        ),
        Measure(
            "top_set",
            "change of the output without the top words (random words 0, most influential 1)",
            "up",
            by=BY_METHOD,
            short="top words together",
            label_by_method="{method}: change of the output without its top words (random words 0, "
            "most influential 1)",
        ),
        Measure(
            "top_word",
            "influence of the top word (average word 0, most influential 1)",
            "up",
            by=BY_METHOD,
            short="top word",
            label_by_method="{method}: influence of its top word (average word 0, most influential "
            "1)",
        ),
        Measure(
            "flip_top",
            "removing the top 20 % of the words changes the prediction",
            "up",
            kind="share",
            by=BY_METHOD,
            short="predictions changed",
            label_by_method="{method}: removing its top 20 % of the words changes the prediction",
        ),
        Measure(
            "reliability",
            "reliability of the influence of words (agreement of two halves of the orders)",
            role="reference",
            by=("setting",),
        ),
        Measure(
            "leverage_top",
            "largest change of the output when attention moves among the most influential words",
            "up",
        ),
        Measure(
            "leverage_words",
            "largest change of the output when attention moves among all words",
            "up",
        ),
        Measure(
            "share_below",
            "texts in which moving attention changes the output by less than ε",
            "down",
            kind="share",
            by=("setting",),
        ),
        Measure(
            "share_not_ranked",
            "texts in which the order of all words is below ½",
            "down",
            kind="share",
        ),
        Measure(
            "top_set_gap",
            "change of the output without the most influential words, beyond random words",
            role="reference",
        ),
        Measure(
            "dispersion",
            "variance of order over texts, relative to that of a random ranking",
            role="control",
        ),
        Measure(
            "order_gain",
            "order of all words by {method}, minus that by attention",
            "none",
            range=RANK,
            by=("method",),
        ),
        Measure("share", "share of the texts", role="control"),
        Measure("p_above", "p-value of “not above ½”", kind="p", by=("setting",)),
        Measure("p_below", "p-value of “not below ½”", kind="p", by=("setting",)),
        *(
            _kept(name, label)
            for name, label in (
                ("order_sum", "differences of influence in pairs in order, minus others"),
                ("order_weight", "differences of influence in all pairs of words"),
                ("half_sum", "the first, for one half of the orders ranked by the other"),
                ("half_weight", "the second, for one half of the orders"),
                ("order_chance", "variance of the first if words are ranked at random"),
                ("gain_top", "influence of the top word above that of the average word"),
                ("gain_most", "the same of the most influential word"),
                ("half_most", "the same, for one half of the orders"),
                ("change_top", "change of output without the top words"),
                ("confidence", "probability of the predicted class"),
                ("exact", "whether every set of the words was run (1) or orders were drawn (0)"),
                ("items", "number of words"),
                ("choice", "half of the texts: on which methods are chosen (0) or reported (1)"),
            )
        ),
    ),
    "heedful.checks.influence.check:InfluenceCheck",
    claim="ranks",
    title="Influence",
    leading=("order", "reliability"),
    rules=RANKS_RULES,
    votes=(
        ClaimVote("ranks", "influence", order, halfway, RANKS_RULES),
        ClaimVote(
            "used",
            "other weights",
            leverage,
            _epsilon,
            USED_RULES,
            leading=("leverage_top", "leverage_words"),
        ),
    ),
    quick={"costly_texts": 40},
    takes_methods="named",
    figures=build_figures,
    sections=build_sections,
    splits=SPLITS,
)
