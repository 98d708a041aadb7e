"""The page of a run as one HTML file that opens offline and loads nothing."""

from heedful.report.pages.section_render import render_sections_html
from heedful.report.sections.page import build_sections
from heedful.report.sections.verdict_summary import build_verdict_card
from heedful.results.run_records import RunRecords


def render_html(records: RunRecords) -> str:
    """One self-contained page from the records of a run; no model, no network."""
    sections = build_sections(records)
    widgets = [section.widget.name for section in sections if section.widget]
    js = ("theme", *(["elements"] if widgets else []), *widgets)
    card = build_verdict_card(records.verdict, records.manifest)
    return render_sections_html("page.html.j2", sections, css=("page", *widgets), js=js, card=card)
