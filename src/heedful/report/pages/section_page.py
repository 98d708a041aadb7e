"""A page of sections under a heading, as one HTML file that opens offline, and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.report.pages.section_render import (
    escape_markdown,
    render_section_markdown,
    render_sections_html,
)
from heedful.results.document import Section


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above the sections of a page; `title` names the page, `name` its subject."""

    title: str
    above: str
    name: str
    lead: str = ""
    words: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def render_page_html(
    heading: Heading,
    sections: Sequence[Section],
    *,
    kind: str,
    styles: Sequence[str] = (),
    template: str = "section_page.html.j2",
    script: bool = True,
    **values: Any,
) -> str:
    """One self-contained page; the template escapes all text.

    `kind` is the class of the page, `styles` are further style sheets. `values` go to the template.
    """
    css, js = ("page", "section_page", *styles), ("theme",) if script else ()
    return render_sections_html(
        template, sections, css=css, js=js, heading=heading, kind=kind, **values
    )


def render_page_markdown(
    heading: Heading, sections: Sequence[Section], *, figures: str = ""
) -> str:
    """The same page as Markdown; `figures` is the folder of its figures, seen from the page."""
    blocks = [f"# {escape_markdown(heading.title)}"]
    blocks += [escape_markdown(one) for one in (heading.lead, *heading.words) if one]
    blocks += [f"**{escape_markdown(one)}**" for one in heading.warnings]
    for section in sections:
        blocks += render_section_markdown(section, figures=figures)
    return "\n\n".join(blocks) + "\n"
