"""What `necessity` asks, measures, concludes and shows."""

from functools import partial

from heedful.checks.retraining.section_parts import Content, frame_section
from heedful.checks.spec import (
    GAIN,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    VoteRule,
    always,
    estimate_of,
    not_run,
    setting_of,
)
from heedful.core.records import CheckResult, Estimate, Series
from heedful.results.document import format_estimate
from heedful.results.figure_data import FigureWords, arm_figures
from heedful.results.run_records import RunRecords

NAME = "necessity"
ALPHA = 0.05  # of each of the two one-sided tests
TWO_QUESTIONS = (
    "These are two questions: a model may use its attention although one trained without would "
    "do as well."
)
_gain, _margin = estimate_of(NAME, "gain"), setting_of(NAME, "margin")
_score = partial(Measure, by=("seed",))


def _of(e: Evidence, measure: str) -> Estimate:
    return e.of(NAME, measure)


def _scores(e: Evidence) -> str:
    return (
        f"accuracy {_of(e, 'score_trained').value:.3f} with learned and "
        f"{_of(e, 'score_uniform').value:.3f} with uniform attention"
    )


RULES = (
    not_run(NAME),
    VoteRule(
        "undecided",
        lambda e: _of(e, "score_trained").high < _of(e, "score_base").value - _margin(e),
        lambda e: (
            "The retrained models are not comparable with the audited model: accuracy "
            f"{_of(e, 'score_trained')}, where the audited model has "
            f"{_of(e, 'score_base').value:.3f}. Use more training texts or epochs."
        ),
    ),
    VoteRule(
        "refutes",
        lambda e: _of(e, "p_not_worse").value < ALPHA,
        lambda e: (
            f"Trained with uniform attention the model does as well: {_scores(e)}, a gain of "
            f"{_gain(e)}, below {_margin(e):g} (p {_of(e, 'p_not_worse').value:.2g})."
        ),
    ),
    VoteRule(
        "supports",
        lambda e: _gain(e).low > _margin(e),
        lambda e: (
            f"Trained with uniform attention the model does worse: {_scores(e)}, a gain of "
            f"{_gain(e)}, more than {_margin(e):g}."
        ),
    ),
    VoteRule(
        "undecided",
        lambda e: _gain(e).low > 0,
        lambda e: (
            f"Learned attention helps ({_scores(e)}, a gain of {_gain(e)}), but these texts do not "
            f"show whether by more than {_margin(e):g}."
        ),
    ),
    VoteRule(
        "undecided",
        always,
        lambda e: (
            "These texts and seeds do not show whether learned attention helps by more than "
            f"{_margin(e):g}: {_scores(e)}, a gain of {_gain(e)}."
        ),
    ),
)


def _section_content(records: RunRecords, result: CheckResult) -> Content:
    margin = records.number_setting(NAME, "margin")
    counts = "" if margin is None else f" A difference of less than {margin:g} counts as none."
    used = (
        "Used as it is: uniform weights imposed on the audited model move its output by "
        f"{format_estimate(result.of('uniform_swap_tvd'))} (TVD)."
    )
    needed = (
        "Needed when trained: trained with attention of its own, the same recipe gains "
        f"{format_estimate(result.of('gain'))} in accuracy over uniform weights.{counts}"
    )
    return (used, needed, TWO_QUESTIONS), ()


SPEC = CheckSpec(
    NAME,
    "Does learned attention beat uniform attention?",
    (
        _score("score_trained", "accuracy, trained with attention"),
        _score("score_uniform", "accuracy, trained with uniform attention", role="control"),
        Measure("gain", "gain in accuracy by attention", "up", range=GAIN),
        Measure("uniform_swap_tvd", "change of output when uniform weights are imposed", "up"),
        Measure("score_base", "accuracy of the audited model", role="reference"),
        Measure("p_not_worse", "p-value of a gain of the margin or more", kind="p"),
        Measure("p_equivalent", "p-value of a gain or loss beyond the margin", kind="p"),
    ),
    "heedful.checks.retraining.necessity.check:Necessity",
    claim="needed",
    source="Wiegreffe & Pinter, 2019, section 3.2",
    leading=("gain",),
    rules=RULES,
    votes=(ClaimVote("needed", "retraining", _gain, _margin, RULES),),
    quick={"seeds": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={"score_trained": "mean", "score_uniform": "mean"},
    differences={"gain": (Series("score_trained"), Series("score_uniform"))},
    figures=partial(
        arm_figures,
        words=FigureWords(
            NAME,
            "Trained with learned and with uniform attention",
            "Accuracy of every seed (faint) and mean with its interval over seeds and texts; "
            "below, the difference of the two.",
        ),
        arms={"score_trained": "learned attention", "score_uniform": "uniform attention"},
        differences={"gain": "learned − uniform"},
    ),
    sections=frame_section(NAME, _section_content),
)
