"""A page of sections under a heading, as one HTML file that opens offline, and as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.report.pages.section_render import (
    escape_markdown,
    render_section,
    render_section_markdown,
)
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
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
    environment = template_environment()
    from markupsafe import Markup

    css = join_assets(("page", "section_page", *styles), "css")
    js = join_assets(("theme",), "js") if script else ""
    return environment.get_template(template).render(
        heading=heading,
        sections=sections,
        rendered=[render_section(environment, one) for one in sections],
        kind=kind,
        policy=policy(css=css, js=js),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
        **values,
    )


def render_page_markdown(
    heading: Heading, sections: Sequence[Section], *, figures: str = ""
) -> str:
    """The same page as Markdown; `figures` is the folder of its figures, seen from the page."""
    return "\n\n".join(_blocks(heading, sections, figures)) + "\n"


def _blocks(heading: Heading, sections: Sequence[Section], figures: str) -> Iterator[str]:
    yield f"# {escape_markdown(heading.title)}"
    yield from (escape_markdown(one) for one in (heading.lead, *heading.words) if one)
    yield from (f"**{escape_markdown(one)}**" for one in heading.warnings)
    for section in sections:
        yield from render_section_markdown(section, figures=figures)
