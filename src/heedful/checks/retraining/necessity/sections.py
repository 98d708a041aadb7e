"""The section of `necessity`: its two questions, side by side."""

from heedful.checks.retraining.section_parts import Content, frame_section
from heedful.core.records import CheckResult
from heedful.results.document import format_estimate
from heedful.results.run_records import RunRecords

TWO_QUESTIONS = (
    "These are two questions: a model may use its attention although one trained without would "
    "do as well."
)


def _describe(records: RunRecords, result: CheckResult) -> Content:
    margin = records.number_setting("necessity", "margin")
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


build_sections = frame_section("necessity", _describe)
