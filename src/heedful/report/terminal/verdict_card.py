"""The verdict card in the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from heedful.checks.spec import CheckSpec, group_missing
from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.escaping import escape_control_characters, shorten_word
from heedful.report.sections.claims import CLAIM_LABELS
from heedful.report.sections.multiverse import describe_choices
from heedful.report.sections.retrained_models import describe_models
from heedful.report.sections.verdict_summary import (
    OLDER_SCALE,
    NamedEstimate,
    VerdictCard,
    build_verdict_card,
)

COLOURS = {
    **dict.fromkeys(("faithful", "supported", "supports"), "green"),
    **dict.fromkeys(("unfaithful", "refuted", "refutes"), "red"),
    **{"undecided": "yellow", "no vote": "dim", "not tested": "dim"},
}
WIDTH = 25  # cells of a ruler
MARK = {"inside": "●", "above": "►", "below": "◄"}


def print_card(
    verdict: Verdict,
    manifest: Mapping[str, Any],
    *,
    details: bool = False,
    console: Console | None = None,
) -> None:
    """Print the verdict on one screen; with `details`, also the estimates of every check."""
    (console or Console()).print(build_card(verdict, manifest, details=details))


def build_card(verdict: Verdict, manifest: Mapping[str, Any], *, details: bool = False) -> Panel:
    """The verdict as one framed page of text."""
    card = build_verdict_card(verdict, manifest)
    colour = COLOURS[card.answer]
    parts = [*_summary(card, verdict), *(_details(verdict, manifest) if details else ())]
    name = escape_control_characters(card.model)
    title = Text(f" Does attention explain {name}? ", style="bold")
    return Panel(Group(*parts), title=title, border_style=colour, padding=(0, 1), width=100)


def _summary(card: VerdictCard, verdict: Verdict) -> Iterator[Text | Table]:
    """The facts in the order of `VerdictCard`."""
    if card.chance:
        yield _line(card.chance, "bold red")
    yield _line(card.headline, f"bold {COLOURS[card.answer]}")
    if card.places:
        yield _line(card.scale, "dim")
        yield _places(card.places)
    if card.degree is not None:
        yield _line(OLDER_SCALE, "dim")
        yield _places((NamedEstimate("degree", card.degree),))
    for line in filter(None, (card.flips, card.why, card.attention)):
        yield _line(line)
    yield Text()
    yield _claims(verdict)
    if card.scope:
        yield _line(card.scope, "dim")
    if card.instead:
        yield _line(card.instead, "bold")
    if card.command:
        yield _line(card.command)
    yield _line(" ".join(filter(None, (card.score, card.texts))))


def _line(text: str, style: str = "") -> Text:
    return Text(escape_control_characters(text), style)


def _places(places: Sequence[NamedEstimate]) -> Table:
    """A ruler from 0 to 1 for each place, its middle marked, with the interval drawn on it."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for one in places:
        table.add_row(one.name, _ruler(one.estimate), str(one.estimate))
    return table


def _ruler(estimate: Estimate) -> Text:
    def cell(value: float) -> int:
        return round(max(0.0, min(1.0, value)) * (WIDTH - 1))

    cells = ["─"] * WIDTH
    cells[cell(0.5)] = "┼"
    if estimate.n > 1 and estimate.low == estimate.low:
        start, end = cell(estimate.low), cell(estimate.high) + 1
        cells[start:end] = "━" * (end - start)
    if estimate.n and estimate.value == estimate.value:
        side = "above" if estimate.value > 1 else "below" if estimate.value < 0 else "inside"
        cells[cell(estimate.value)] = MARK[side]
    text = Text("0 ├", style="dim")
    text.append("".join(cells), style="bold cyan")
    return text.append("┤ 1")


def _details(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[Any]:
    """Reasons of the claims, the estimates of every check, and what they rest on."""
    examined = [(name, one) for name, one in verdict.claims.items() if one.checks]
    yield from _apart(
        *(Text(f"{name}: {escape_control_characters(one.why)}") for name, one in examined)
    )
    yield from _apart(_checks(verdict, manifest), *_missing(verdict))
    specs = {check: find_spec(check, manifest) for check in verdict.checks}
    for check, result in verdict.checks.items():
        summary = specs[check].summary  # of the measures that the table leaves out
        if summary is not None and (sentence := summary(result)):
            yield from _apart(Text(sentence))
    for check, result in verdict.checks.items():
        if words := specs[check].title:
            yield from _apart(_line(f"{words}: {result.why}"))
    if choices := describe_choices(verdict):
        yield from _apart(_line(f"Other choices: {choices}"))
    if made := describe_models(manifest):
        yield from _apart(Text(made))
    yield from _apart(_line(_origin(manifest), "dim"))


def _apart(*parts: Any) -> Iterator[Any]:
    """The parts below an empty line."""
    if parts:
        yield Text()
        yield from parts


def _claims(verdict: Verdict) -> Table:
    """A line for each claim; one for all that were not tested."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for texts in (verdict.claims, [one.answer for one in verdict.claims.values()]):
        table.add_column(no_wrap=True, min_width=max(map(len, texts), default=0))
    table.add_column()
    untested = [name for name, claim in verdict.claims.items() if claim.answer == "not tested"]
    for name, claim in verdict.claims.items():
        if name not in untested:
            answer = Text(claim.answer, COLOURS[claim.answer])
            table.add_row(Text(name, style="bold"), answer, CLAIM_LABELS[name])
    if untested:
        answer = Text("not tested", COLOURS["not tested"])
        table.add_row("", answer, Text(", ".join(untested), "dim"))
    return table


def _checks(verdict: Verdict, manifest: Mapping[str, Any]) -> Table:
    """Every plain estimate with its interval, overall and by predicted class; controls in grey."""
    classes = list(dict.fromkeys(name for one in verdict.checks.values() for name in one.classes))
    shown = classes if len(classes) <= 3 else []
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True, min_width=28)
    table.add_column(f"mean [{100 * manifest['level']:g}%]", min_width=21)
    most = 12 if len(shown) < 3 else 7  # more would not fit a terminal of 80 columns
    for name in shown:
        heading = shorten_word(escape_control_characters(name), most)
        table.add_column(Text(heading), justify="right", no_wrap=True)
    for check, result in verdict.checks.items():
        answer = Text(f"  {result.answer}", style=COLOURS[result.answer])
        table.add_row(Text(check, style="bold") + answer)
        spec = find_spec(check, manifest)
        if not spec.title:
            _add_measures(table, spec, result, shown)
    return table


def _add_measures(table: Table, spec: CheckSpec, result: CheckResult, classes: list[str]) -> None:
    for measure, estimate in result.estimates.items():
        if measure in spec.summed_up:
            continue
        style = "dim" if spec.measure(measure).role == "control" else ""
        value = str(estimate)
        if measure in result.undefined:
            value += f"  ({result.undefined[measure]} undefined)"
        by_class = result.by_class(measure)
        cells = [_value(by_class.get(name)) for name in classes]
        name = measure.removeprefix("fraction_")  # or classes would not fit 80 columns
        table.add_row(Text(f" {name}"), Text(value), *map(Text, cells), style=style)


def _missing(verdict: Verdict) -> list[Text]:
    """Why a check has no value for one of its measures; one line for each reason."""
    return [
        Text(f"no {measure}: {escape_control_characters(reason)}", style="dim")
        for result in verdict.checks.values()
        for measure, reason in group_missing(result.missing)
    ]


def _value(estimate: Estimate | None) -> str:
    return "–" if estimate is None or not estimate.n else f"{estimate.value:.3f}"


def _origin(manifest: Mapping[str, Any]) -> str:
    data, left, cut = manifest["data"], manifest["too_short"], manifest["truncated"]
    cpu = sum(one["cpu"] for one in manifest["seconds"].values())
    parts = (
        f"{data['texts'] - left} texts of {data['name']} ({data['split']})",
        manifest["interval"],
        f"seed {manifest['seed']}",
        f"{cpu:.1f} CPU seconds",
        f"{left} texts too short" if left else "",
        f"{cut} texts cut" if cut else "",
        data["bad_rows"],
        f"cleaned as {data['cleaning']}" if data.get("cleaning") else "",
        data.get("left_out"),
    )
    return " · ".join(filter(None, parts))
