"""Sections rendered to HTML, by one template, and to Markdown; numbers as both write them."""

import json
import re
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

from heedful.core.records import Estimate
from heedful.report.figures.draw import render_svg
from heedful.report.pages.self_contained_html import render_template, template_environment
from heedful.results.document import Cell, Section, Table
from heedful.results.figure_data import format_two_decimals

STEPS = 20  # of colour in a table; the style sheet has a class for each
WIDE = 17  # columns from which a coloured table has room for colours only
NUMBER = re.compile(r"\u2212?\d[\d.,]*")
# what Markdown or the HTML inside it would take for markup
MARKUP = re.compile(r"([\\`*_{}\[\]#|<>&~$])")
# what could end a script element or a line of it, in any reading of HTML or JavaScript
UNSAFE_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def render_sections_html(template: str, sections: Sequence[Section], **values: Any) -> str:
    """One self-contained page of sections; templates escape every text in it.

    `values` are the style sheets (`css`), the scripts (`js`) and what else the template needs.
    """
    environment = template_environment()
    from markupsafe import Markup

    environment.filters |= {
        "number": three_decimals,
        "short": two_decimals,
        "place": ruler_position,
        "depth": heat_class,
        "heads": align_heads,
        "grid": group_rows,
        "kind": table_class,
        "svg": lambda one: Markup(render_svg(one)),  # noqa: S704 - drawn here
        "script": lambda one: Markup(script_json(one)),  # noqa: S704 - nothing in it is markup
    }
    environment.tests["number_like"] = is_number
    one_section = environment.get_template("section.html.j2")
    rendered = [
        Markup(one_section.render(section=one))  # noqa: S704 - escaped by the template
        for one in sections
    ]
    return render_template(environment, template, sections=sections, rendered=rendered, **values)


def three_decimals(value: float | None) -> str:
    """Three decimals with a true minus sign; a dash where there is no number.

    >>> three_decimals(-0.25), three_decimals(-1e-9), three_decimals(float("nan"))
    ('−0.250', '0.000', '–')
    """
    return "–" if value is None or isnan(value) else f"{value:z.3f}".replace("-", "\u2212")


def two_decimals(value: float) -> str:
    """Two decimals, for where there is room for no more.

    >>> two_decimals(-0.25), two_decimals(float("nan"))
    ('−0.25', '–')
    """
    return "–" if isnan(value) else format_two_decimals(value)


def heat_class(value: float, strongest: float = 1.0) -> str:
    """The class of a colour: its kind by the sign, its depth as a share of the strongest.

    >>> heat_class(-0.1, 0.2), heat_class(float("nan"), 0.2)
    ('minus s10', 'none')
    """
    if isnan(value):
        return "none"
    return f"{'minus' if value < 0 else 'plus'} s{round(STEPS * min(1.0, abs(value) / strongest))}"


def ruler_position(estimate: Estimate, span: tuple[float, float]) -> dict[str, float]:
    """Where an estimate and its interval lie on a ruler of length 100.

    >>> ruler_position(Estimate(0.5, 0.25, 0.75, 9), (0.0, 1.0))
    {'value': 50.0, 'low': 25.0, 'high': 75.0}
    """
    low, high = span
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    ends = {name: estimate.value if isnan(one) else one for name, one in ends.items()}
    return {
        name: round(100 * min(1.0, max(0.0, (one - low) / (high - low))), 2)
        for name, one in ends.items()
    }


def group_rows(table: Table) -> list[tuple[int, tuple[Cell, ...]]]:
    """Each row as cells, with the number of rows its name stands for; 0 where the name is above."""
    rows = [tuple(one if isinstance(one, Cell) else Cell(one) for one in row) for row in table.rows]
    spans: list[int] = []
    first = 0
    for place, cells in enumerate(rows):
        if place and cells[0] == Cell():
            spans[first] += 1
            spans.append(0)
        else:
            first = place
            spans.append(1)
    return list(zip(spans, rows, strict=True))


def is_number(text: str) -> bool:
    """Whether a text is a number; such cells stand to the right."""
    return bool(NUMBER.fullmatch(text))


def align_heads(table: Table) -> list[tuple[str, bool]]:
    """Each heading, and whether its column has numbers, which stand to the right."""
    columns = zip(
        *([one if isinstance(one, str) else "" for one in row] for row in table.rows), strict=True
    )
    right = [place > 0 and any(map(is_number, one)) for place, one in enumerate(columns)]
    return list(zip(table.head, right or [False] * len(table.head), strict=True))


def table_class(table: Table) -> str:
    """`heads` where cells are coloured, `dense` where they are many, `drawn` where one is drawn."""
    cells = [cell for row in table.rows for cell in row if isinstance(cell, Cell)]
    if any(cell.heat is not None for cell in cells):
        return "heads dense" if len(table.head) > WIDE else "heads"
    columns = zip(*table.rows, strict=True)
    drawn = sum(any(isinstance(one, Cell) and one.span for one in column) for column in columns)
    return "drawn" if drawn == 1 else ""


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever text it holds.

    >>> script_json({"text": "</script>"})
    '{"text":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE_IN_SCRIPT)


def render_section_markdown(
    section: Section, *, figures: str = "", depth: int = 2, folded_tables: bool = True
) -> Iterator[str]:
    """The blocks of a section.

    `figures` is the folder of its figures, seen from the page. Without `folded_tables` the parts
    that start closed are left out where they hold tables.
    """
    choices: dict[str, Any] = {"figures": figures, "folded_tables": folded_tables}
    answer = f" (**{escape_markdown(section.answer)}**)" if section.answer else ""
    yield f"{'#' * depth} {escape_markdown(section.title)}{answer}"
    yield from map(escape_markdown, section.words)
    if section.points:
        yield "\n".join(f"- {escape_markdown(one)}" for one in section.points)
    yield from map(render_table_markdown, section.tables)
    if section.code:
        yield "\n".join(f"    {line}" for line in section.code.splitlines())
    if figures:
        for one in section.figures:
            shown, caption = escape_markdown(one.title), escape_markdown(one.caption)
            yield f"![{shown}]({figures}/{one.name}.svg)\n\n*{shown}. {caption}*"
    for part in section.parts:
        yield from render_section_markdown(part, depth=depth + 1, **choices)
    for part in section.folded:
        if part.tables and not folded_tables:
            continue
        inside = "\n\n".join([*render_section_markdown(part, **choices)][1:])
        title = escape_markdown(part.title)
        yield f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"


def render_table_markdown(table: Table) -> str:
    """A table with its caption above it."""
    rules = ("---:" if right else "---" for _, right in align_heads(table))
    lines = [_line(table.head), f"| {' | '.join(rules)} |", *map(_line, table.rows)]
    caption = f"**{escape_markdown(table.caption)}**\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _line(cells: Sequence[str | Cell]) -> str:
    texts = (escape_markdown(one) if isinstance(one, str) else cell_markdown(one) for one in cells)
    return f"| {' | '.join(texts)} |"


def cell_markdown(cell: Cell) -> str:
    """A cell: its text or its estimate with the interval, its badge, its small print."""
    estimate, short = cell.estimate, cell.heat is not None
    if estimate is None:
        text, note = escape_markdown(cell.text), cell.note
    else:
        text = two_decimals(estimate.value) if short else escape_markdown(format_interval(estimate))
        note = "" if short else cell.note
    answer = escape_markdown(cell.answer)
    if text:
        answer = f"({answer})" if answer else ""
    shown = " ".join(filter(None, (text, answer)))
    joint = ": " if estimate is None else ", "
    note = f"{joint}{escape_markdown(note)}" if note else ""
    return f"**{shown}**{note}" if cell.strong and shown else f"{shown}{note}"


def format_interval(estimate: Estimate) -> str:
    """An estimate, with its interval where it has one."""
    value, *ends = map(three_decimals, (estimate.value, estimate.low, estimate.high))
    alone = estimate.n < 2 or isnan(estimate.low)
    return value if alone else f"{value} [{', '.join(ends)}]"


def escape_markdown(text: str) -> str:
    """The text as Markdown that shows it as it is, on one line.

    >>> escape_markdown("<b>|*")
    '\\\\<b\\\\>\\\\|\\\\*'
    """
    return MARKUP.sub(r"\\\1", " ".join(text.split()))
