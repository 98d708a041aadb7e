"""What the check `influence` costs, in whole passes: tokens run, in units of the whole text."""

from collections.abc import Iterable
from math import comb

from heedful.checks.influence.orders import (
    COVERAGES,
    MOST_ENUMERATED,
    TOP_SHARES,
    near_full_blocks,
    search_steps,
    share_size,
)

TYPICAL_WORDS, TYPICAL_SPECIAL_TOKENS = 20, 2
FEWEST_ORDERS = 4
OTHER_RANKINGS = 3  # whose top sets are run on every text: shuffled attention, m, and half of m
COSTLY = ("near_full", "masking", "methods", "search")  # on some texts only


def expected_passes(
    words: int = TYPICAL_WORDS,
    *,
    special: int = TYPICAL_SPECIAL_TOKENS,
    orders: int = FEWEST_ORDERS,
    methods: int = 0,
) -> dict[str, float]:
    """Whole passes for the parts of the check on a text, where no two sets of words are the same.

    `budget`: four orders, and the top sets of attention. `controls`: the top sets of shuffled
    attention and of the influence itself. `further_orders`: those beyond four; `enumeration`: all
    sets of a short text. On some texts also `near_full` sets, the orders with words masked, the top
    sets of other `methods` (whose own passes are not counted), and the `search`, at most.

    >>> {name: round(passes) for name, passes in expected_passes().items() if passes}
    {'budget': 44, 'controls': 9, 'near_full': 35, 'masking': 76, 'search': 66}
    """

    def passes(sizes: Iterable[int]) -> float:
        return sum(size + special for size in sizes) / (words + special)

    order = passes(range(1, words))
    top = passes(words - share_size(words, share) for share in TOP_SHARES)
    sizes = range(1, words + 1) if words <= MOST_ENUMERATED else ()
    blocks = near_full_blocks(words)
    steps = search_steps(words)
    left = [words - sum(steps[:step]) for step in range(len(steps))]
    return {
        "budget": FEWEST_ORDERS * order + top,
        "controls": OTHER_RANKINGS * top,
        "further_orders": (orders - FEWEST_ORDERS) * order,
        "enumeration": sum(comb(words, size) * passes([size]) for size in sizes),
        "near_full": COVERAGES * sum(passes(range(words - size, words)) for size in blocks),
        "masking": float(orders * (words - 1)),
        "methods": methods * top,
        "search": sum(count * passes([count - 1]) for count in left),
    }


def describe_cost(*, orders: int, methods: int, texts: int, costly_share: float) -> str:
    """One line on what the check will cost.

    >>> describe_cost(orders=4, methods=10, texts=902, costly_share=0.22)[:75]
    'influence, in passes for a text of 20 words: 53 with 4 orders; on about 198'
    """
    found = expected_passes(orders=orders, methods=methods)
    every = sum(passes for name, passes in found.items() if name not in COSTLY)
    some = ", ".join(f"{name.replace('_', '-')} {found[name]:.0f}" for name in COSTLY)
    return (
        f"influence, in passes for a text of {TYPICAL_WORDS} words: {every:.0f} with {orders} "
        f"orders; on about {round(costly_share * texts)} of {texts} texts also {some} at most."
    )
