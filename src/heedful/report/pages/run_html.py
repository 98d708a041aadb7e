"""The page of a run as one HTML file that opens offline and loads nothing."""

from heedful.report.pages.section_render import render_section, ruler_position, three_decimals
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.report.sections.page import build_sections
from heedful.report.sections.verdict_summary import build_verdict_card
from heedful.results.run_records import RunRecords


def render_html(records: RunRecords) -> str:
    """One self-contained page from the records of a run; no model, no network."""
    environment = template_environment()
    environment.filters |= {"number": three_decimals, "place": ruler_position}
    from markupsafe import Markup

    sections = build_sections(records)
    widgets = [section.widget.name for section in sections if section.widget]
    css = join_assets(("page", *widgets), "css")
    js = join_assets(("theme", *(["elements"] if widgets else []), *widgets), "js")
    return environment.get_template("page.html.j2").render(
        card=build_verdict_card(records.verdict, records.manifest),
        sections=sections,
        rendered=[render_section(environment, section) for section in sections],
        policy=policy(css=css, js=js),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
    )
