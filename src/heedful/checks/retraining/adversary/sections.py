"""The section of `adversary`: every λ, and how its distances are scaled."""

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    weight_rows,
)
from heedful.core.records import NO_ESTIMATE, CheckResult
from heedful.results.document import Table
from heedful.results.run_records import RunRecords

MEASURES = ("jsd", "tvd", "score")
SCALES = (
    "TVD is ½ Σ|Δp| between the adversary's output and the model's, from 0 to 1; the published "
    "code halves it once more. The training loss is TVD − λ·KL(own ‖ base) of the attentions, KL "
    "from the adversary's own to the model's."
)
REVERSED = SCALES.replace("KL(own ‖ base)", "KL(base ‖ own)").replace(
    "from the adversary's own to the model's", "from the model's to the adversary's"
)


def _describe(records: RunRecords, result: CheckResult) -> Content:
    base = estimate_row("the model under audit", NO_ESTIMATE, NO_ESTIMATE, result.of("score_base"))
    rows = (*weight_rows(result, MEASURES), base)
    scales = REVERSED if records.settings("adversary").get("reverse") is True else SCALES
    return (scales,), (Table(("model", "JSD", "TVD", "accuracy"), rows),)


build_sections = frame_section("adversary", _describe)
