"""The section of `roar`: accuracy without the top-ranked words, by method."""

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    method_rows,
)
from heedful.core.records import NO_ESTIMATE, CheckResult
from heedful.results.document import Table
from heedful.results.run_records import RunRecords

PATTERN = (
    "Models are trained on such texts, so the remaining words are not off their distribution. But "
    "a retrained model may find other cues, and a gap may itself reveal what was removed."
)


def _describe(_: RunRecords, result: CheckResult) -> Content:
    whole = estimate_row("none: whole texts", result.of("score_whole"), NO_ESTIMATE)
    rows = (whole, *method_rows(result, "score", "beyond_random"))
    return (PATTERN,), (Table(("words removed by", "accuracy", "lost beyond random"), rows),)


build_sections = frame_section("roar", _describe)
