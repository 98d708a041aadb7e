"""The section of `seeds`: how far attention moves, beside what would be far."""

from heedful.checks.retraining.section_parts import Content, frame_section
from heedful.core.records import CheckResult
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import format_estimate
from heedful.results.run_records import RunRecords

SHARED = (
    "These models were fine-tuned from one pretrained encoder. Models that share their pretraining "
    "share much of their attention: the spread from seed to seed is understated."
)


def _describe(records: RunRecords, result: CheckResult) -> Content:
    seeds, shuffled, uniform, adversary = (
        format_estimate(result.of(f"jsd_{name}"))
        for name in ("seeds", "shuffled", "uniform", "adversary")
    )
    distances = (
        "Distances are between the attention of the audited model and that of models trained with "
        f"other seeds, each text's median over seeds: {seeds} on average. The distance of its own "
        f"weights shuffled is {shuffled}, of uniform weights {uniform}, of an adversary's "
        f"{adversary}."
    )
    tuned = read_audited_attention(records.manifest) is not None
    return (distances, SHARED if tuned else ""), ()


build_sections = frame_section("seeds", _describe)
