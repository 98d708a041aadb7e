"""The page of a run as a section of a model card."""

from collections.abc import Iterator

from heedful.report.pages.section_render import (
    escape_markdown,
    format_interval,
    render_section_markdown,
    render_table_markdown,
)
from heedful.report.sections.page import VerdictCard, build_sections, build_verdict_card
from heedful.results.document import Table
from heedful.results.run_records import RunRecords


def render_markdown(records: RunRecords) -> str:
    """The verdict and every section, as text for a model card.

    Estimates of checks by class and by setting are left to the page.
    """
    blocks = [*_verdict(build_verdict_card(records))]
    for section in build_sections(records):
        whole = not section.name.startswith("check")
        blocks += render_section_markdown(section, depth=3, folded_tables=whole)
    return "\n\n".join(blocks) + "\n"


def _verdict(card: VerdictCard) -> Iterator[str]:
    verdict, _, headline = card.headline.partition(": ")
    yield "## Does attention explain this model's predictions?"
    yield f"**{verdict.capitalize()}**: {headline}"
    yield from map(escape_markdown, filter(None, card.why))
    if card.degree:
        degree = format_interval(card.degree)
        yield f"Degree, from shuffled attention (0) to the gradient (1): {degree}."
    if card.instead:
        yield f"Instead: {escape_markdown(card.instead)}"
    yield render_table_markdown(Table(("claim", "answer", "meaning"), card.claims))
