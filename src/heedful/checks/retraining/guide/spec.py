"""What `guide` asks, measures, describes and shows."""

from functools import partial

from heedful.checks.retraining.section_parts import Content, frame_section, is_known
from heedful.checks.spec import GAIN, CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult, Series
from heedful.results.document import format_estimate
from heedful.results.figure_data import FigureWords, arm_figures
from heedful.results.run_records import RunRecords

NAME = "guide"
GUIDES = ("uniform", "own", "base", "adversary")
OTHERS = {"uniform": "uniform weights", "own": "weights it learns", "adversary": "an adversary"}
DIFFERENCES = {f"base_minus_{x}": (Series("score_base"), Series(f"score_{x}")) for x in OTHERS}
_score = partial(Measure, by=("seed",))
_gain = partial(Measure, direction="up", range=GAIN)


def _describe(result: CheckResult) -> str:
    scores = {one: result.of(f"score_{one}").value for one in GUIDES}
    return (
        f"A model without context has accuracy {scores['base']:.3f} with this attention, "
        f"{scores['uniform']:.3f} with uniform weights (difference "
        f"{result.of('base_minus_uniform')}), {scores['own']:.3f} with weights it learns itself "
        f"and {scores['adversary']:.3f} with an adversary's. This shows which words of a text are "
        "informative, not which words this model's output depends on."
    )


def _section_content(_: RunRecords, result: CheckResult) -> Content:
    gains = ", ".join(
        f"{format_estimate(result.of(f'base_minus_{one}'))} over {words}"
        for one, words in OTHERS.items()
        if is_known(result.of(f"base_minus_{one}"))
    )
    guided = f"Guided by the audited attention, a model without context gains {gains} in accuracy."
    return (guided if gains else "",), ()


SPEC = CheckSpec(
    NAME,
    "Does the attention help a model without context?",
    (
        _score("score_uniform", "accuracy, trained with uniform attention", role="control"),
        _score("score_own", "accuracy with weights it learns itself"),
        _score("score_base", "accuracy with the audited attention", "up"),
        _score("score_adversary", "accuracy with an adversary's attention"),
        _gain("base_minus_uniform", "audited attention minus uniform"),
        _gain("base_minus_own", "audited attention minus learned weights"),
        _gain("base_minus_adversary", "audited attention minus adversary"),
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
    sections=frame_section(NAME, _section_content),
)
