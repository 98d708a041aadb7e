"""The section of `guide`: what the audited attention adds to a model without context."""

from heedful.checks.retraining.section_parts import Content, frame_section, is_known
from heedful.core.records import CheckResult
from heedful.results.document import format_estimate
from heedful.results.run_records import RunRecords

OTHERS = {"uniform": "uniform weights", "own": "weights it learns", "adversary": "an adversary"}


def _describe(_: RunRecords, result: CheckResult) -> Content:
    gains = ", ".join(
        f"{format_estimate(result.of(f'base_minus_{one}'))} over {words}"
        for one, words in OTHERS.items()
        if is_known(result.of(f"base_minus_{one}"))
    )
    guided = f"Guided by the audited attention, a model without context gains {gains} in accuracy."
    return (guided if gains else "",), ()


build_sections = frame_section("guide", _describe)
