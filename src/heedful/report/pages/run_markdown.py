"""The page of a run as a section of a model card."""

from collections.abc import Iterator

from heedful.report.pages.section_render import (
    escape_markdown,
    format_interval,
    render_section_markdown,
    render_table_markdown,
)
from heedful.report.sections.page import build_sections
from heedful.report.sections.verdict_summary import (
    OLDER_SCALE,
    VerdictCard,
    build_verdict_card,
    places_table,
)
from heedful.results.document import Table
from heedful.results.run_records import RunRecords


def render_markdown(records: RunRecords) -> str:
    """The verdict and every section, as text for a model card.

    Estimates of checks by class and by setting are left to the page.
    """
    blocks = [*_verdict(build_verdict_card(records.verdict, records.manifest))]
    for section in build_sections(records):
        whole = not section.name.startswith("check")
        blocks += render_section_markdown(section, depth=3, folded_tables=whole)
    return "\n\n".join(blocks) + "\n"


def _verdict(card: VerdictCard) -> Iterator[str]:
    """The facts in the order of `VerdictCard`."""
    yield "## Does attention explain this model's predictions?"
    if card.chance:
        yield f"**{escape_markdown(card.chance)}**"
    yield f"**{card.headline}**"
    if card.places:
        yield escape_markdown(card.scale)
        yield render_table_markdown(places_table(card))
    if card.degree:
        yield f"{OLDER_SCALE}: {escape_markdown(format_interval(card.degree))}."
    yield from map(escape_markdown, filter(None, (card.flips, card.why, card.attention)))
    yield render_table_markdown(Table(("claim", "answer", "meaning"), card.claims))
    below = (card.scope, card.instead, card.command, card.score, card.texts)
    yield from map(escape_markdown, filter(None, below))
