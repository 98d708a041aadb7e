"""What each measure means to a reader: words, direction, role and range."""

import re
from dataclasses import dataclass, replace
from math import log
from typing import Literal

Direction = Literal["up", "down", "none"]
Role = Literal["measure", "control", "reference"]
ValueRange = tuple[float, float]

RANK: ValueRange = (-1.0, 1.0)
SHARE: ValueRange = (0.0, 1.0)
JSD: ValueRange = (0.0, log(2))
FURTHER: ValueRange = (-log(2), log(2))
GAIN: ValueRange = (-0.2, 0.2)


@dataclass(frozen=True, slots=True)
class Meaning:
    """How to read a measure. `direction` is where values would speak for the check's claim."""

    words: str
    direction: Direction = "none"
    role: Role = "measure"
    span: ValueRange = SHARE


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
    "median_tvd_random_rows": Meaning("the first, of rows in other places", role="control"),
    "max_attention": Meaning("largest weight"),
    "epsilon_max_jsd": Meaning("distance found by the published search, JSD", "down", span=JSD),
    "certified_jsd": Meaning("largest distance there is, JSD", "down", span=JSD),
    "ascent_jsd": Meaning("distance found by linear programs, JSD", "down", span=JSD),
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
    "tau_unrolled": Meaning("contributions to one layer and leave-one-out, τ", "up", span=RANK),
    "conicity": Meaning("how alike the states are (mean cosine)", span=RANK),
    "no_effect_share": Meaning("share of squared weight that no value sees", "down"),
    "no_effect_share_distribution": Meaning("the same, the sum of weights kept", "down"),
    "keys_per_dimension": Meaning("keys for each dimension of a head", span=(0.0, 2.0)),
    "token_identified": Meaning("states that point to their own word", "up"),
    "identified_by_chance": Meaning("the same, guessed", role="control"),
    "own_share": Meaning("a word's own part in its state", "up"),
    "own_largest": Meaning("words that are the largest part of their state", "up"),
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
    "faithfulness.off_distribution_whole": Meaning(
        "whole texts with nearer neighbours: whole", role="control"
    ),
    "not_infilled": Meaning("words gone that the language model could not replace"),
    "same_prediction": Meaning("whole texts on which the copy predicts as the model", "up"),
    "copy_tvd": Meaning("change of output from the model to its copy, whole texts", "down"),
    "score_trained": Meaning("accuracy, trained with attention"),
    "score_uniform": Meaning("accuracy, trained with uniform attention", role="control"),
    "gain": Meaning("gain in accuracy by attention", "up", span=GAIN),
    "uniform_swap_tvd": Meaning("change of output when uniform weights are imposed", "up"),
    "p_not_worse": Meaning("p-value of a gain of the margin or more"),
    "p_equivalent": Meaning("p-value of a gain or loss beyond the margin"),
    "jsd_seeds": Meaning("distance of other seeds' attention, JSD", "down", span=JSD),
    "jsd_adversary_beyond_seeds": Meaning("how much farther an adversary gets", "up", span=FURTHER),
    "jsd_adversary": Meaning("distance of the adversary, JSD", role="reference", span=JSD),
    "jsd_shuffled": Meaning("distance of shuffled weights, JSD", role="control", span=JSD),
    "jsd_uniform": Meaning("distance of uniform weights, JSD", role="control", span=JSD),
    "tvd_seeds": Meaning("change of output from seed to seed"),
    "roar.score_whole": Meaning("accuracy, trained on whole texts", role="reference"),
    "score_own": Meaning("accuracy, led by weights it learns itself"),
    "score_adversary": Meaning("accuracy, led by an adversary's attention"),
    "score_base": Meaning("accuracy of the model under audit", role="reference"),
    "guide.score_base": Meaning("accuracy, led by the attention under audit", "up"),
    "base_minus_uniform": Meaning("attention under audit less uniform", "up", span=GAIN),
    "base_minus_own": Meaning("attention under audit less learned weights", "up", span=GAIN),
    "base_minus_adversary": Meaning("attention under audit less adversary", "up", span=GAIN),
    "tvd": Meaning("change of output of the adversary", "up"),
    "jsd": Meaning("distance of the adversary's attention, JSD", "down", span=JSD),
    "score": Meaning("accuracy of the adversary"),
    "tvd_another_seed": Meaning("change of output, another seed", role="control"),
    "jsd_another_seed": Meaning("distance of another seed's, JSD", role="control", span=JSD),
    "mass_before": Meaning("hidden words' share of attention before"),
    "mass_after": Meaning("hidden words' share of attention after", "up"),
    "score_before": Meaning("accuracy before", role="reference"),
    "score_after": Meaning("accuracy after"),
    "score_without_words": Meaning("accuracy, trained without the words", role="control"),
    "score_lost": Meaning("accuracy that hiding them costs", "up", span=GAIN),
    "hidden_share": Meaning("the hidden words' share of the words", role="control"),
    "words_worth": Meaning("accuracy that lacking them costs", span=RANK),
}
QUESTIONS = {
    "agreement": "Do attention and feature importance rank words alike?",
    "permutation": "Does shuffled attention change the output?",
    "adversarial": "How different an attention gives the same output?",
    "mechanism": "Where does attention part from influence?",
    "erasure": "Do the highest weights decide?",
    "faithfulness": "Does removing, or keeping, what a method names move the output?",
    "plausibility": "Do people point at the same words?",
    "randomisation": "Does the explanation depend on the trained weights at all?",
    "identifiability": "What of attention can matter, and whose states does it look at?",
    "necessity": "Does learned attention beat uniform?",
    "seeds": "How much does attention move with the seed?",
    "guide": "Does the attention help a model without context?",
    "adversary": "Can a whole model learn another attention with the same outputs?",
    "deception": "Can attention be taught to hide the decisive words?",
    "labels": "Does the explanation depend on what the labels taught?",
    "off_manifold": "Do removals tell the same of a copy that can read texts with holes?",
    "roar": "Does a model trained without what a method names do worse?",
}


REMOVING = {
    "p_beyond_random": Meaning("p-value of “no more than at random”, corrected: {}"),
    "comprehensiveness": Meaning("probability lost without the words of {}", "up", span=RANK),
    "sufficiency": Meaning("probability lost with the words of {} alone", "down", span=RANK),
    "beyond_random": Meaning("lost beyond random removal: {}", "up", span=RANK),
    "diagnosticity": Meaning("random orders that {} beats", "up"),
    "worst": Meaning("lost in the order of {} from its end", role="control", span=RANK),
    "flip": Meaning("words to remove until the decision flips, by {}", "down"),
    "infidelity_scaled": Meaning("the same, scores of {} in their best unit", "down"),
    "infidelity": Meaning("squared distance of scores and losses: {}", "down"),
    "normalised_comprehensiveness": Meaning("share of the text’s worth lost: {}", "up"),
    "normalised_sufficiency": Meaning("share of the text’s worth kept: {}", "up"),
    "soft_sufficiency": Meaning("worth kept, words dimmed as {} scores them low", "up"),
    "soft_comprehensiveness": Meaning("worth lost, words dimmed as {} scores them high", "up"),
    "soft_beyond_random": Meaning("lost beyond the same scores shuffled: {}", "up", span=RANK),
    "off_distribution": Meaning("whole texts with nearer neighbours than these: {}", "none"),
    "log_perplexity": Meaning("surprise of a piece to the language model: {}", span=(0.0, 10.0)),
    "sensitivity": Meaning("how far scores of {} move with the vectors", "down"),
    "violation": Meaning("words whose sign contradicts their effect: {}", "down"),
}
POINTING = {
    "auprc": Meaning("people’s words found early by {}, AUPRC"),
    "beyond_random": Meaning("the same less that of random orders: {}", span=RANK),
    "token_f1": Meaning("people’s words among those chosen by {}, F1"),
    "iou_f1": Meaning("people’s spans among those chosen by {}, F1"),
    "top_k": Meaning("people’s words among as many highest of {}"),
    "rank_human": Meaning("scores of {} and of people, by size, τ", span=RANK),
    "sign_human": Meaning("words to which {} and people give one sign"),
}
ANEW = {"rank_correlation": Meaning("{} on the model and on fresh weights, ρ", span=RANK)}
TAUGHT = {
    "rank_correlation": Meaning("{} on the model and after shuffled labels, ρ", span=RANK),
    "with_labels": Meaning("the same after the labels as they are: {}", span=RANK),
    "learned": Meaning("what the labels add: {}", span=RANK),
}
TRAINED_WITHOUT = {
    "score": Meaning("accuracy, trained without the words of {}"),
    "beyond_random": Meaning("accuracy lost beyond random removal: {}", "up", span=GAIN),
}
OF_METHODS = {
    "faithfulness": REMOVING,
    "plausibility": POINTING,
    "randomisation": ANEW,
    "labels": TAUGHT,
    "off_manifold": REMOVING,
    "roar": TRAINED_WITHOUT,
}
CONTROL_NAMES = ("random", "uniform")
OF_METHOD = re.compile(r"tau_(\w+)_leave_one_out")


def method_of(measure: str) -> str | None:
    """The further method whose agreement with leave-one-out this is; None for other measures.

    >>> method_of("tau_lime_leave_one_out"), method_of("tau_gradient_leave_one_out")
    ('lime', None)
    """
    found = OF_METHOD.fullmatch(measure)
    return found[1] if found and measure not in MEANINGS else None


def of_a_method(measure: str, check: str) -> Meaning | None:
    """How to read a measure that a check has for every method; None for other measures.

    >>> of_a_method("flip_lime", "faithfulness").words
    'words to remove until the decision flips, by lime'
    """
    for start, found in OF_METHODS.get(check, {}).items():
        if measure.startswith(f"{start}_"):
            name = measure.removeprefix(f"{start}_")
            role: Role = "control" if name in CONTROL_NAMES else found.role
            direction: Direction = "none" if role == "control" else found.direction
            return replace(found, words=found.words.format(name), role=role, direction=direction)
    return None


def meaning_of(measure: str, check: str = "") -> Meaning:
    """How to read this measure (of this check, where two share its name); unknown ones stay bare.

    >>> meaning_of("tau_leave_one_out").direction
    'up'
    >>> meaning_of("score_base").role, meaning_of("score_base", "guide").role
    ('reference', 'measure')
    >>> meaning_of("tau_mine_leave_one_out").span
    (-1.0, 1.0)
    """
    exact = MEANINGS.get(f"{check}.{measure}")
    if exact is None and (told := of_a_method(measure, check)):
        return told
    span = RANK if measure.startswith("tau_") else SHARE
    method = method_of(measure)
    words = f"{method} and leave-one-out, τ" if method else ""
    return exact or MEANINGS.get(measure) or Meaning(words, span=span)
