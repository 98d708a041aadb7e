"""What `necessity` asks, measures and concludes."""

from functools import partial

from heedful.checks.retraining.necessity.sections import build_sections
from heedful.checks.spec import (
    GAIN,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    VoteRule,
    always,
    not_run,
)
from heedful.core.records import Estimate, Series
from heedful.results.figure_data import FigureWords, arm_figures

NAME = "necessity"
ALPHA = 0.05  # of each of the two one-sided tests


def _of(e: Evidence, measure: str) -> Estimate:
    return e.of(NAME, measure)


def _gain(e: Evidence) -> Estimate:
    return _of(e, "gain")


def _margin(e: Evidence) -> float:
    return float(e.setting(NAME, "margin"))


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

SPEC = CheckSpec(
    NAME,
    "Does learned attention beat uniform attention?",
    (
        Measure("score_trained", "accuracy, trained with attention", by=("seed",)),
        Measure(
            "score_uniform",
            "accuracy, trained with uniform attention",
            role="control",
            by=("seed",),
        ),
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
    sections=build_sections,
)
