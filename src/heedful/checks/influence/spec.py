"""What `influence` asks, measures and concludes."""

from functools import partial

from heedful.checks.influence.names import NAME
from heedful.checks.influence.rules import (
    RANKS_RULES,
    USED_RULES,
    leverage,
    order,
)
from heedful.checks.spec import RANK, CheckSpec, ClaimVote, Evidence, Measure, halfway

BY_METHOD = ("method", "setting")
_kept = partial(Measure, averaged=False)  # per text, for sums over texts


def _epsilon(e: Evidence) -> float:
    return e.epsilon


SPEC = CheckSpec(
    NAME,
    "Does attention point at the words that the output rests on, alone or together?",
    (
        Measure(
            "order",
            "pairs of words in the order of their influence",
            "up",
            range=RANK,
            by=BY_METHOD,
            short="order",
            label_by_method="{method}: pairs of words in the order of their influence",
        ),
        Measure(
            "top_set",
            "what goes without the top words",
            "up",
            by=BY_METHOD,
            short="top words",
            label_by_method="{method}: what goes without the top words",
        ),
        Measure(
            "top_word",
            "influence of the top word",
            "up",
            by=BY_METHOD,
            short="top word",
            label_by_method="{method}: influence of the top word",
        ),
        Measure(
            "flip_top",
            "prediction changes without the top fifth of the words",
            "up",
            kind="share",
            by=BY_METHOD,
            short="flips",
            label_by_method="{method}: prediction changes without the top fifth of the words",
        ),
        Measure(
            "reliability",
            "agreement of two estimates of influence",
            role="reference",
            by=("setting",),
        ),
        Measure("leverage_top", "change by moving weight among the most influential words", "up"),
        Measure(
            "share_below", "texts in which that is below ε", "down", kind="share", by=("setting",)
        ),
        Measure(
            "top_set_gap",
            "change without the top words by influence, beyond random",
            role="reference",
        ),
        Measure(
            "order_gain",
            "order of {method} minus that of attention",
            "none",
            range=RANK,
            by=("method",),
        ),
        Measure("share", "share of the texts", role="control"),
        Measure("p_above", "p-value: not above the middle", kind="p", by=("setting",)),
        Measure("p_below", "p-value: not below the middle", kind="p", by=("setting",)),
        *(
            _kept(name, label)
            for name, label in (
                ("order_sum", "stakes of pairs in order, less those out of order"),
                ("order_weight", "stakes of all pairs"),
                ("half_sum", "the first, one half of the orders by the other"),
                ("half_weight", "the second, of one half of the orders"),
                ("gain_top", "influence of the top word above the mean"),
                ("gain_most", "influence of the most influential word above the mean"),
                ("change_top", "change of output without the top words"),
                ("confidence", "probability of the predicted class"),
                ("exact", "whether every set of words was run"),
                ("items", "number of words"),
                ("choice", "half of the texts on which methods are chosen (0) or reported (1)"),
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
            "used", "other weights", leverage, _epsilon, USED_RULES, leading=("leverage_top",)
        ),
    ),
    quick={"costly_texts": 40},
    takes_methods="named",
)
