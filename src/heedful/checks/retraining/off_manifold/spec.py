"""What `off_manifold` asks, measures, describes and shows."""

from functools import partial

from heedful.checks.faithfulness.spec import (
    P_BEYOND_RANDOM,
    REMOVAL_MEASURES,
    describe_masked_copy,
    removal_figures,
)
from heedful.checks.retraining.section_parts import Content, frame_section, method_rows
from heedful.checks.spec import CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult
from heedful.results.document import Table, format_estimate
from heedful.results.run_records import RunRecords

NAME = "off_manifold"


def _section_content(_: RunRecords, result: CheckResult) -> Content:
    alike = (
        "A copy of the model was trained on with a random share of each text's words masked, to "
        "say what the model says of the whole text. On whole texts it predicts the same on "
        f"{format_estimate(result.of('same_prediction'))} of them, its outputs "
        f"{format_estimate(result.of('copy_tvd'))} (TVD) away."
    )
    rows = tuple(method_rows(result, "beyond_random"))
    return (alike,), (Table(("method", "lost beyond random"), rows),) if rows else ()


SPEC = CheckSpec(
    NAME,
    "Do deletion results hold for a copy trained on texts with masked words?",
    (
        Measure("same_prediction", "whole texts on which copy and model predict the same", "up"),
        Measure("copy_tvd", "change of output from the model to its copy, whole texts", "down"),
        *REMOVAL_MEASURES,
        P_BEYOND_RANDOM,
    ),
    "heedful.checks.retraining.off_manifold.check:OffManifold",
    claim="ranks",
    title="On a copy trained with masked words",
    leading=("beyond_random", "comprehensiveness", "same_prediction"),
    rules=describe_only(NAME, describe_masked_copy),
    quick={"epochs": 8, "patience": 3},
    retrains=True,
    figures=partial(
        removal_figures,
        check=NAME,
        title="The same for a copy trained on masked texts",
        way="masking, in the copy",
    ),
    sections=frame_section(NAME, _section_content),
)
