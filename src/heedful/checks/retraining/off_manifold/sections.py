"""The section of `off_manifold`: how alike the copy is, and what each method finds on it."""

from heedful.checks.retraining.section_parts import Content, frame_section, method_rows
from heedful.core.records import CheckResult
from heedful.results.document import Table, format_estimate
from heedful.results.run_records import RunRecords


def _describe(_: RunRecords, result: CheckResult) -> Content:
    alike = (
        "A copy of the model was trained on with a random share of each text's words masked, to "
        "say what the model says of the whole text. On whole texts it predicts the same on "
        f"{format_estimate(result.of('same_prediction'))} of them, its outputs "
        f"{format_estimate(result.of('copy_tvd'))} (TVD) away."
    )
    rows = tuple(method_rows(result, "beyond_random"))
    return (alike,), (Table(("method", "lost beyond random"), rows),) if rows else ()


build_sections = frame_section("off_manifold", _describe)
