"""A comparison in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.comparison.records import OVER_SEEDS, ComparisonRecord, Difference, SidePair
from heedful.comparison.requirements import RequirementResult
from heedful.core.records import Estimate
from heedful.report.escaping import escape_control_characters
from heedful.report.pages.comparison_rows import (
    describe_correction,
    describe_intervals,
    describe_missing,
    display_name,
    find_measure,
    format_p_value,
    group_differences,
)
from heedful.report.sections.check_measures import ARROWS
from heedful.report.terminal.verdict_card import COLOURS

CERTAIN = "●"
LONGEST = 18  # signs of a name at the head of a column


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
        out.print(
            Text(
                f"Methods of {escape_control_characters(one.folder)}, {one.texts} texts",
                style="bold",
            )
        )
    for pair in compared.pairs:
        _print_pair(out, compared, pair)
    out.print()
    legend = f"{CERTAIN} differs beyond chance. ↑ higher, ↓ lower values speak for attention."
    if compared.kind == "methods":
        legend = legend.replace("attention", "a method")
    for line in (legend, describe_intervals(compared), describe_correction(compared)):
        out.print(Text(line, style="dim"))
    for gate in required:
        out.print(
            Text(escape_control_characters(str(gate)), style="green" if gate.met else "bold red")
        )


def _sides(compared: ComparisonRecord) -> Table:
    """A column for each run: model, data, answer, degree, claims."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("")
    for side in compared.sides:
        table.add_column(Text(escape_control_characters(side.name)), overflow="fold")
    sides = compared.sides
    table.add_row("model", *(Text(escape_control_characters(one.model)) for one in sides))
    if len({one.attention for one in sides}) > 1:
        table.add_row(
            "attention", *(Text(escape_control_characters(one.attention)) for one in sides)
        )
    table.add_row(
        "texts", *(Text(f"{one.texts} of {escape_control_characters(one.data)}") for one in sides)
    )
    table.add_row("answer", *(_answer(one.answer) for one in sides))
    table.add_row("degree", *(Text(str(one.degree) if one.degree else "–") for one in sides))
    for claim in dict.fromkeys(name for one in sides for name in one.claims):
        cells = (_answer(one.claims.get(claim, "–")) for one in sides)
        table.add_row(Text(f"  {escape_control_characters(claim)}"), *cells)
    return table


def _answer(answer: str) -> Text:
    return Text(escape_control_characters(answer), style=COLOURS.get(answer, ""))


def _print_pair(out: Console, compared: ComparisonRecord, pair: SidePair) -> None:
    second, first = map(escape_control_characters, (pair.second, pair.first))
    title = f"\n{second} against {first}: {pair.pairing}"
    out.print(Text(title, style="bold"))
    for note in pair.notes:
        out.print(Text(escape_control_characters(note), style="yellow"))
    out.print(_differences(compared, pair))
    notes = [f"{one.check}: {one.note}" for one in group_differences(pair) if one.note]
    for line in (*notes, *describe_missing(pair)):
        out.print(Text(escape_control_characters(line), style="dim"))


def _differences(compared: ComparisonRecord, pair: SidePair) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", width=1)
    table.add_column("measure", overflow="fold", min_width=24)
    table.add_column("")
    table.add_column(Text(_short(pair.first)), justify="right", no_wrap=True)
    table.add_column(Text(_short(pair.second)), justify="right", no_wrap=True)
    table.add_column(f"difference [{100 * compared.level:g}%]", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for group in group_differences(pair):
        if group.check:
            table.add_row("", Text(escape_control_characters(group.check), style="bold"))
        for one in group.rows:
            _add(table, one, compared.kind)
    return table


def _add(table: Table, one: Difference, kind: str) -> None:
    measure = find_measure(one.key, kind)
    name = Text(escape_control_characters(display_name(one.key)))
    if any(one.undefined):
        first, second = one.undefined
        name.append(f" ({first}, {second} undefined)", style="dim")
    if one.over == OVER_SEEDS:
        name.append(" (over seeds too)", style="dim")
    table.add_row(
        Text(CERTAIN if one.certain else "", style="bold cyan"),
        name,
        ARROWS[measure.direction],
        *(_value(side) for side in (one.first, one.second)),
        Text(format_signed(one.difference), style="bold" if one.certain else ""),
        format_p_value(one.corrected),
        str(one.difference.n),
        style="dim" if measure.role == "control" else "",
    )


def _value(estimate: Estimate) -> str:
    return "–" if estimate.value != estimate.value else f"{estimate.value:z.3f}"


def format_signed(estimate: Estimate) -> str:
    """A difference with its sign and interval.

    >>> signed(Estimate(0.25, 0.1, 0.4, 9)), signed(Estimate(0.25, 0.1, 0.4, 1))
    ('+0.250 [+0.100, +0.400]', '+0.250')
    """
    if estimate.value != estimate.value:
        return "–"
    if estimate.low != estimate.low or estimate.n < 2:
        return f"{estimate.value:+z.3f}"
    return f"{estimate.value:+z.3f} [{estimate.low:+z.3f}, {estimate.high:+z.3f}]"


def _short(name: str) -> str:
    shown = escape_control_characters(name)
    return shown if len(shown) <= LONGEST else "…" + shown[1 - LONGEST :]
