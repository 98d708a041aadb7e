"""The section of `deception`: which words were hidden, and every λ beside the control."""

from collections.abc import Iterator

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    weight_rows,
)
from heedful.core.records import NO_ESTIMATE, CheckResult
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import Table, format_estimate
from heedful.results.run_records import RunRecords, sanitise_text

MEASURES = ("mass_after", "score_after")
WITHOUT = "without "  # the name of the control begins with it
BLOCKED = (
    "Hidden words and others attended to their own kind only, in every layer, and the pooled token "
    "to all: what its row does not take up cannot come by another way."
)
UNBLOCKED = (
    "Hidden words were not blocked: other words may carry what they say to the pooled token."
)


def _describe(records: RunRecords, result: CheckResult) -> Content:
    score = result.of("score_without_words")
    control = (
        "The control: a model trained and tested without the words reaches "
        f"{format_estimate(score)}, a loss of {format_estimate(result.of('words_worth'))}. The "
        "words are decisive only if that loses accuracy, and only then does hiding them show "
        "anything."
    )
    rows = (
        estimate_row("before", result.of("mass_before"), result.of("score_before")),
        *weight_rows(result, MEASURES),
        estimate_row("without the words", NO_ESTIMATE, score),
    )
    table = Table(("model", "share of attention", "accuracy"), rows)
    return (*_hidden(records), control), (table,)


def _hidden(records: RunRecords) -> Iterator[str]:
    """Which words were hidden, as the control that does without them is named, and how."""
    names = [sanitise_text(str(one.get("name"))) for one in records.manifest.get("retrained") or ()]
    for name in [name for name in names if name.startswith(WITHOUT)][:1]:
        yield f"Hidden are {name.removeprefix(WITHOUT).rsplit(', seed ', 1)[0]}."
    if read_audited_attention(records.manifest) is not None:
        yield UNBLOCKED if records.settings("deception").get("blocked") is False else BLOCKED


build_sections = frame_section("deception", _describe)
