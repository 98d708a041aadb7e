"""What `guide` asks, measures and describes."""

from functools import partial

from heedful.checks.retraining.guide.sections import build_sections
from heedful.checks.spec import GAIN, CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult, Series
from heedful.results.figure_data import FigureWords, arm_figures

NAME = "guide"
GUIDES = ("uniform", "own", "base", "adversary")
DIFFERENCES = {
    f"base_minus_{one}": (Series("score_base"), Series(f"score_{one}"))
    for one in ("uniform", "own", "adversary")
}


def _describe(result: CheckResult) -> str:
    scores = {
        one: result.of(f"score_{one}").value for one in ("uniform", "own", "base", "adversary")
    }
    return (
        f"A model without context has accuracy {scores['base']:.3f} with this attention, "
        f"{scores['uniform']:.3f} with uniform weights (difference "
        f"{result.of('base_minus_uniform')}), {scores['own']:.3f} with weights it learns itself "
        f"and {scores['adversary']:.3f} with an adversary's. This shows which words of a text are "
        "informative, not which words this model's output depends on."
    )


SPEC = CheckSpec(
    NAME,
    "Does the attention help a model without context?",
    (
        Measure(
            "score_uniform",
            "accuracy, trained with uniform attention",
            role="control",
            by=("seed",),
        ),
        Measure("score_own", "accuracy with weights it learns itself", by=("seed",)),
        Measure("score_base", "accuracy with the audited attention", "up", by=("seed",)),
        Measure("score_adversary", "accuracy with an adversary's attention", by=("seed",)),
        Measure("base_minus_uniform", "audited attention minus uniform", "up", range=GAIN),
        Measure("base_minus_own", "audited attention minus learned weights", "up", range=GAIN),
        Measure("base_minus_adversary", "audited attention minus adversary", "up", range=GAIN),
    ),
    "heedful.checks.retraining.guide.check:Guide",
    claim="ranks",
    source="Wiegreffe & Pinter, 2019, section 3.4",
    leading=("base_minus_uniform",),
    rules=describe_only(NAME, _describe),
    quick={"seeds": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={f"score_{one}": "mean" for one in GUIDES},
    differences=DIFFERENCES,
    figures=partial(
        arm_figures,
        words=FigureWords(
            NAME,
            "Models guided by given weights",
            "Accuracy of a model that sees each word on its own, by the weights that guide it: "
            "every seed (faint), mean and interval over seeds and texts; below, paired "
            "differences.",
        ),
        arms={
            "score_uniform": "uniform weights",
            "score_own": "weights it learns itself",
            "score_base": "audited attention",
            "score_adversary": "adversary's attention",
        },
        differences={
            "base_minus_uniform": "audited − uniform",
            "base_minus_own": "audited − learned itself",
            "base_minus_adversary": "audited − adversary's",
        },
    ),
    sections=build_sections,
)
