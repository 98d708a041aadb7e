"""What `adversary` asks, measures and describes."""

from heedful.checks.retraining.adversary.figures import build_figures
from heedful.checks.retraining.adversary.sections import build_sections
from heedful.checks.spec import JSD, CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult

NAME = "adversary"


def _describe(result: CheckResult) -> str:
    return (
        f"A model trained to attend elsewhere has its attention {result.of('jsd')} away in JSD, "
        f"its outputs {result.of('tvd')} away and accuracy {result.of('score').value:.3f} (audited "
        f"model: {result.of('score_base').value:.3f}); a model merely trained with another seed "
        f"has its attention {result.of('jsd_another_seed')} away and its outputs "
        f"{result.of('tvd_another_seed')} away."
    )


SPEC = CheckSpec(
    NAME,
    "Can a whole model learn a different attention with the same outputs?",
    (
        Measure("tvd", "change of output of the adversary", "up", by=("setting",)),
        Measure(
            "jsd",
            "distance of the adversary's attention, JSD",
            "down",
            range=JSD,
            by=("setting",),
        ),
        Measure("score", "accuracy of the adversary", by=("setting",)),
        Measure("score_base", "accuracy of the audited model", role="reference"),
        Measure("tvd_another_seed", "change of output, another seed", role="control"),
        Measure("jsd_another_seed", "distance of another seed's, JSD", role="control", range=JSD),
    ),
    "heedful.checks.retraining.adversary.check:ModelAdversary",
    claim="exclusive",
    source="Wiegreffe & Pinter, 2019, section 4",
    leading=("jsd", "tvd"),
    rules=describe_only(NAME, _describe),
    quick={"weights": 2, "epochs": 24, "patience": 6},
    retrains=True,
    figures=build_figures,
    sections=build_sections,
)
