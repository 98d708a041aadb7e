"""Sections rendered to HTML, by one template, and to Markdown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heedful.report.figures.draw import render_svg
from heedful.results.document import Cell, Section, Table

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


def render_section(
    environment: "jinja2.Environment", section: Section, *, depth: int = 2
) -> "Markup":
    """One section as HTML; the template escapes every text in it."""
    from markupsafe import Markup

    figures = [
        (one, Markup(render_svg(one)))  # noqa: S704 - drawn here
        for one in section.figures
    ]
    inner, folded = (
        [render_section(environment, one, depth=depth + 1) for one in some]
        for some in (section.parts, section.folded)
    )
    template = environment.get_template("section.html.j2")
    html = template.render(
        section=section, figures=figures, inner=inner, folded=folded, depth=depth
    )
    return Markup(html)  # noqa: S704 - escaped by the template


def render_section_markdown(
    section: Section, *, figures: str = "", depth: int = 2
) -> Iterator[str]:
    """The blocks of a section; `figures` is the folder of its figures, seen from the page."""
    yield f"{'#' * depth} {escape_cell(section.title)}"
    yield from map(escape_cell, section.words)
    if section.points:
        yield "\n".join(f"- {escape_cell(one)}" for one in section.points)
    if section.code:
        yield "\n".join(f"    {line}" for line in section.code.splitlines())
    for table in section.tables:
        yield render_table_markdown(table)
    for one in section.parts:
        yield from render_section_markdown(one, figures=figures, depth=depth + 1)
    for one in section.folded:
        blocks = list(render_section_markdown(one, figures=figures, depth=depth + 1))[1:]
        inside = "\n\n".join(blocks)
        yield f"<details><summary>{escape_cell(one.title)}</summary>\n\n{inside}\n\n</details>"
    if figures:
        for figure in section.figures:
            title, caption = escape_cell(figure.title), escape_cell(figure.caption)
            yield f"![{title}]({figures}/{figure.name}.svg)\n\n*{title}. {caption}*"


def render_table_markdown(table: Table) -> str:
    """A table with its caption above it."""
    lines = [_line(table.head), _line(["---"] * len(table.head)), *map(_line, table.rows)]
    caption = f"{escape_cell(table.caption)}\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _line(cells: Sequence[str | Cell]) -> str:
    texts = (one if isinstance(one, str) else cell_text(one) for one in cells)
    return f"| {' | '.join(map(escape_cell, texts))} |"


def cell_text(cell: Cell) -> str:
    """The text of a cell, or its estimate with the interval; then its badge and its small print."""
    text = cell.text if cell.estimate is None else str(cell.estimate).replace("-", "\u2212")
    return " ".join(filter(None, (text, cell.answer, cell.note)))


def escape_cell(text: str) -> str:
    """Text that cannot end a cell of a table, nor be read as HTML."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\")
    return " ".join(escaped.replace("|", "\\|").split())
