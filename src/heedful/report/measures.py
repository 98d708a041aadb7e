"""What each measure means to a reader: words, direction, role and range."""

import re
from dataclasses import dataclass
from math import log
from typing import Literal

Direction = Literal["up", "down", "none"]
Role = Literal["measure", "control", "reference"]
Range = tuple[float, float]

RANK: Range = (-1.0, 1.0)
SHARE: Range = (0.0, 1.0)
JSD: Range = (0.0, log(2))


@dataclass(frozen=True, slots=True)
class Meaning:
    """How to read a measure. `direction` is where values would speak for the check's claim."""

    words: str
    direction: Direction = "none"
    role: Role = "measure"
    span: Range = SHARE


MEANINGS = {
    "tau_gradient": Meaning("attention and gradient, τ", "up", span=RANK),
    "tau_leave_one_out": Meaning("attention and leave-one-out, τ", "up", span=RANK),
    "tau_gradient_leave_one_out": Meaning(
        "gradient and leave-one-out, τ", role="reference", span=RANK
    ),
    "tau_shuffled_leave_one_out": Meaning(
        "shuffled attention and leave-one-out, τ", role="control", span=RANK
    ),
    "tau_gradient_shuffled": Meaning(
        "shuffled attention and the gradient under it, τ", role="control", span=RANK
    ),
    "tau_references": Meaning(
        "methods that erase words and methods that follow gradients, τ",
        role="reference",
        span=RANK,
    ),
    "tau_attention_references": Meaning("attention and both of these, τ", "up", span=RANK),
    "top1_leave_one_out": Meaning("top word is also top by leave-one-out", "up"),
    "top1_gradient": Meaning("top word is also top by gradient", "up"),
    "significant_gradient": Meaning("share of texts with p ≤ 0.05, gradient", "up"),
    "significant_leave_one_out": Meaning("share of texts with p ≤ 0.05, leave-one-out", "up"),
    "significant_gradient_bh": Meaning("the same, false discoveries held at 5 %", "up"),
    "significant_leave_one_out_bh": Meaning("the same, false discoveries held at 5 %", "up"),
    "median_tvd": Meaning("median change of output when weights are shuffled", "up"),
    "leverage": Meaning("largest change any attention can cause", "up"),
    "median_of_leverage": Meaning("the first as a share of the second", "up"),
    "median_tvd_all_keys": Meaning("the first, special tokens' weights shuffled too", "up"),
    "median_tvd_random_rows": Meaning(
        "the first, of rows of other positions and layers", role="control"
    ),
    "max_attention": Meaning("largest weight"),
    "epsilon_max_jsd": Meaning("distance found by the published search, JSD", "down", span=JSD),
    "certified_jsd": Meaning("largest distance there is, JSD", "down", span=JSD),
    "bound_jsd": Meaning("what no attention can exceed, JSD", role="reference", span=JSD),
    "of_bound": Meaning("best found as a share of the bound", "down"),
    "output_tvd": Meaning("change of output at the best found"),
    "random_tvd": Meaning("the same of random attentions as far away", role="control"),
    "nullspace_jsd": Meaning(
        "distance at which a head gives out the very same, JSD", "down", span=JSD
    ),
    "tokens_per_dimension": Meaning("tokens for each dimension of a head", span=(0.0, 2.0)),
    "tau_weighting": Meaning("attention and contributions, τ", "up", span=RANK),
    "tau_mixing": Meaning("contributions and leave-one-out, τ", "up", span=RANK),
    "conicity": Meaning("how alike the states are (mean cosine)", span=RANK),
    "flip_top": Meaning("decisions that flip without the top weight", "up"),
    "flip_random": Meaning("the same without another word's, drawn at random", role="control"),
    "js_top_minus_random": Meaning(
        "how much farther the first moves the output, JSD", "up", span=(-log(2), log(2))
    ),
    "can_flip": Meaning("texts whose decision some removal flips"),
    "fraction_to_flip_attention": Meaning(
        "words to remove until the decision flips, by attention", "down"
    ),
    "fraction_to_flip_gradient": Meaning("by the gradient at the weights"),
    "fraction_to_flip_attention_x_gradient": Meaning("by attention × gradient"),
    "fraction_to_flip_random": Meaning("in random order", role="control"),
    "fraction_to_flip_optimal": Meaning("the smallest set there is", role="reference"),
    "attention_gap": Meaning("top weight minus the one drawn at random"),
}
QUESTIONS = {
    "agreement": "Do attention and feature importance rank words alike?",
    "permutation": "Does shuffled attention change the output?",
    "adversarial": "How different an attention gives the same output?",
    "mechanism": "Where does attention part from influence?",
    "erasure": "Do the highest weights decide?",
}


OF_METHOD = re.compile(r"tau_(\w+)_leave_one_out")


def method_of(measure: str) -> str | None:
    """The further method whose agreement with leave-one-out this is; None for other measures.

    >>> method_of("tau_lime_leave_one_out"), method_of("tau_gradient_leave_one_out")
    ('lime', None)
    """
    found = OF_METHOD.fullmatch(measure)
    return found[1] if found and measure not in MEANINGS else None


def meaning_of(measure: str) -> Meaning:
    """How to read this measure; one that is not known here keeps its bare name.

    >>> meaning_of("tau_leave_one_out").direction
    'up'
    >>> meaning_of("tau_mine_leave_one_out").span
    (-1.0, 1.0)
    """
    span = RANK if measure.startswith("tau_") else SHARE
    method = method_of(measure)
    words = f"{method} and leave-one-out, τ" if method else ""
    return MEANINGS.get(measure, Meaning(words, span=span))
