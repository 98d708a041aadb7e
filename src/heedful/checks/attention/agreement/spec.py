"""What `agreement` asks, measures and concludes."""

from functools import partial

from heedful.checks.attention.agreement.figures import build_figures
from heedful.checks.attention.agreement.sections import build_sections
from heedful.checks.spec import (
    RANK,
    CheckSpec,
    Evidence,
    Measure,
    PlaceSpec,
    VoteRule,
    estimate_of,
    halfway,
    rules_by_interval,
)
from heedful.core.records import CheckResult, Estimate, Series

NAME = "agreement"
OWN, CONTROL, REFERENCE = (
    Series(f"tau_{name}leave_one_out") for name in ("", "shuffled_", "gradient_")
)
# how often attention's top word is the one whose deletion changes the output most
_top_word = estimate_of(NAME, "top1_leave_one_out")


def _place(e: Evidence) -> Estimate:
    return e.place(NAME).place


def _gap(e: Evidence) -> Estimate:
    return e.place(NAME).gap


def is_reference_weak(e: Evidence) -> bool:
    """Whether the gradient is less than halfway from chance to leave-one-out's own ranking.

    Then noise ranks nearly all words: attention may come near so poor a reference, and the
    question is whether it finds the word that counts.
    """
    return _gap(e).high < e.halfway


def _by_top_word(e: Evidence) -> str:
    return (
        f"the gradient agrees with leave-one-out by only {_gap(e)} beyond chance, too weak a "
        "reference to rank all words; attention’s top word is the one whose deletion changes the "
        f"output most in {_top_word(e)} of the texts."
    )


def _between(e: Evidence) -> str:
    return (
        f"On this data attention ranks words {_place(e)} of the way from shuffled attention (0) to "
        "the gradient (1), measured by agreement with leave-one-out"
    )


RULES = (
    VoteRule(
        "refutes",  # attention orders no text that deletion orders
        lambda e: e.of(NAME, REFERENCE.measure).n > 1 and not e.of(NAME, OWN.measure).n,
        lambda e: (
            "Attention gives all words of a text the same weight, so it ranks none above another, "
            "while deleting them changes the output by different amounts (on "
            f"{e.of(NAME, REFERENCE.measure).n} texts)."
        ),
    ),
    VoteRule(
        "undecided",
        lambda e: not _gap(e).low > 0,
        lambda e: (
            "Gradient and leave-one-out do not agree with each other beyond chance "
            f"(by {_gap(e)}), so there is no reference to compare attention with."
        ),
    ),
    VoteRule(
        "supports", lambda e: is_reference_weak(e) and _top_word(e).low > e.halfway, _by_top_word
    ),
    VoteRule(
        "refutes", lambda e: is_reference_weak(e) and _top_word(e).high < e.halfway, _by_top_word
    ),
    VoteRule("undecided", is_reference_weak, _by_top_word),
    VoteRule(
        "supports",
        lambda e: _place(e).low > 1.0,
        lambda e: (
            f"{_between(e)}: nearer to deletion than the gradient itself, which makes the gradient "
            "a weak reference here and this answer a mild one."
        ),
    ),
    *rules_by_interval(
        _place,
        halfway,
        above=lambda e: f"{_between(e)}: nearer to the gradient.",
        below=lambda e: f"{_between(e)}: nearer to chance.",
        around=lambda e: f"{_between(e)}: the interval contains the middle.",
    ),
)

_tau = partial(Measure, range=RANK)
_control = partial(_tau, role="control")


def _methods_agreement(result: CheckResult) -> str:
    """Whether the further methods agree with each other; empty where there were none."""
    if "tau_references" not in result.estimates:
        return ""
    return (
        "Methods that erase words and methods that follow gradients agree at τ "
        f"{result.of('tau_references')}, attention with both at τ "
        f"{result.of('tau_attention_references')}; the report has every pair of methods."
    )


SPEC = CheckSpec(
    NAME,
    "Do attention and feature importance rank words alike?",
    (
        _tau("tau_gradient", "attention and gradient, τ", "up"),
        _tau(
            "tau_leave_one_out",
            "attention and leave-one-out, τ",
            "up",
            by=("method", "layer", "head"),
            label_by_method="{method} and leave-one-out, τ",
        ),
        _tau("tau_gradient_leave_one_out", "gradient and leave-one-out, τ", role="reference"),
        _control("tau_shuffled_leave_one_out", "shuffled attention and leave-one-out, τ"),
        _control("tau_gradient_shuffled", "shuffled attention and the gradient under it, τ"),
        Measure("top1_leave_one_out", "top word is also top by leave-one-out", "up", kind="share"),
        Measure("top1_gradient", "top word is also top by gradient", "up", kind="share"),
        Measure("significant_gradient", "share of texts with p ≤ 0.05, gradient", "up"),
        Measure("significant_leave_one_out", "share of texts with p ≤ 0.05, leave-one-out", "up"),
        Measure("significant_gradient_bh", "the same, false discovery rate 5 %", "up"),
        Measure("significant_leave_one_out_bh", "the same, false discovery rate 5 %", "up"),
        _tau(
            "tau_references",
            "methods that erase words and methods that follow gradients, τ",
            role="reference",
        ),
        _tau("tau_attention_references", "attention and both of these, τ", "up"),
        _tau("references_gap", "the first minus the second"),
        _tau("tau_pair", "{method} and another method, τ", by=("method", "setting")),
        Measure(
            "overlap_pair", "top words that {method} and another share", by=("method", "setting")
        ),
        Measure("word_mass", "attention on words", by=("layer", "head")),
        Measure("significant_gradient_leave_one_out", "p ≤ 0.05, references", averaged=False),
        Measure("p_gradient", "p-value, gradient", kind="p", averaged=False),
        Measure("p_leave_one_out", "p-value, leave-one-out", kind="p", averaged=False),
    ),
    "heedful.checks.attention.agreement.check:Agreement",
    claim="ranks",
    source="Jain & Wallace, 2019, experiment 1",
    leading=(OWN.measure, CONTROL.measure, REFERENCE.measure),
    rules=RULES,
    place=PlaceSpec(OWN, CONTROL, REFERENCE),
    sliced=(OWN.measure,),
    differences={"references_gap": (Series("tau_references"), Series("tau_attention_references"))},
    takes_methods="always",
    figures=build_figures,
    sections=build_sections,
    summary=_methods_agreement,
    summed_up=("tau_references", "tau_attention_references", "references_gap"),
    published={OWN.measure: "with leave-one-out", "tau_gradient": "with the gradient"},
)
