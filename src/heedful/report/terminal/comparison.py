"""A comparison in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.comparison.records import ComparisonRecord, Difference, SidePair
from heedful.comparison.requirements import RequirementResult
from heedful.report.escaping import escape_control_characters
from heedful.report.pages import comparison as page
from heedful.report.pages.section_render import three_decimals
from heedful.report.sections.check_measures import ARROWS
from heedful.report.terminal.verdict_card import COLOURS
from heedful.results.document import Cell

LONGEST = 18  # characters of a name at the head of a column


def print_comparison(
    compared: ComparisonRecord,
    required: Sequence[RequirementResult] = (),
    *,
    console: Console | None = None,
) -> None:
    """Print the answers side by side, then what each differs by from the first."""
    out = console or Console()
    if compared.kind == "runs":
        out.print(_sides(compared))
    else:
        one = compared.sides[0]
        title = f"Methods of {escape_control_characters(one.folder)}, {one.texts} texts"
        out.print(Text(title, style="bold"))
    for pair in compared.pairs:
        _print_pair(out, compared, pair)
    out.print()
    legend = f"{page.CERTAIN} differs beyond chance. ↑ higher, ↓ lower values speak for attention."
    if compared.kind == "methods":
        legend = legend.replace("attention", "a method")
    for line in (legend, page.describe_intervals(compared), page.describe_correction(compared)):
        out.print(Text(line, style="dim"))
    for gate in required:
        style = "green" if gate.met else "bold red"
        out.print(Text(escape_control_characters(str(gate)), style=style))


def _sides(compared: ComparisonRecord) -> Table:
    """A column for each run; attention has a row where it is not the same in all."""
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table = page.build_side_table(compared)
    for name in table.head:
        shown.add_column(Text(escape_control_characters(name)), overflow="fold")
    for first, *cells in table.rows:
        if first != "attention" or len(set(cells)) > 1:
            shown.add_row(*map(_cell_text, (first, *cells)))
    return shown


def _cell_text(cell: str | Cell) -> Text:
    text, style = (
        (cell, "") if isinstance(cell, str) else (cell.answer, COLOURS.get(cell.answer, ""))
    )
    return Text(escape_control_characters(text), style)


def _print_pair(out: Console, compared: ComparisonRecord, pair: SidePair) -> None:
    second, first = map(escape_control_characters, (pair.second, pair.first))
    out.print(Text(f"\n{second} against {first}: {pair.pairing}", style="bold"))
    for note in pair.notes:
        out.print(Text(escape_control_characters(note), style="yellow"))
    out.print(_differences(compared, pair))
    notes = [f"{one.check}: {one.note}" for one in page.group_differences(pair) if one.note]
    for line in (*notes, *page.describe_missing(pair)):
        out.print(Text(escape_control_characters(line), style="dim"))


def _differences(compared: ComparisonRecord, pair: SidePair) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", width=1)
    table.add_column("measure", overflow="fold", min_width=24)
    table.add_column("")
    for name in (pair.first, pair.second):
        table.add_column(Text(_short(name)), justify="right", no_wrap=True)
    table.add_column(f"difference [{100 * compared.level:g}%]", no_wrap=True)
    for name in ("p", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in page.group_differences(pair):
        if group.check:
            table.add_row("", Text(escape_control_characters(group.check), style="bold"))
        for one in group.rows:
            _add(table, one, compared.kind)
    return table


def _add(table: Table, one: Difference, kind: str) -> None:
    measure = page.find_measure(one.key, kind)
    name = Text(escape_control_characters(page.display_name(one.key)))
    for note in page.describe_texts(one):
        name.append(f" {note}", style="dim")
    table.add_row(
        Text(page.CERTAIN if one.certain else "", style="bold cyan"),
        name,
        ARROWS[measure.direction],
        three_decimals(one.first.value),
        three_decimals(one.second.value),
        Text(page.format_difference(one.difference), style="bold" if one.certain else ""),
        page.format_p_value(one.corrected),
        str(one.difference.n),
        style="dim" if measure.role == "control" else "",
    )


def _short(name: str) -> str:
    shown = escape_control_characters(name)
    return shown if len(shown) <= LONGEST else "…" + shown[1 - LONGEST :]
