"""The verdict card in the terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from heedful.checks.spec import CheckSpec, group_missing
from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.escaping import escape_control_characters
from heedful.report.sections.claims import CLAIM_LABELS
from heedful.report.sections.multiverse import describe_choices
from heedful.report.sections.retrained_models import describe_models
from heedful.results.audited_attention import read_audited_attention

COLOURS = {
    "faithful": "green",
    "unfaithful": "red",
    "supported": "green",
    "refuted": "red",
    "supports": "green",
    "refutes": "red",
    "undecided": "yellow",
    "no vote": "dim",
    "not tested": "dim",
}
HEADLINES = {
    "faithful": "FAITHFUL: attention ranks the words of this model's inputs by their influence.",
    "unfaithful": "NOT FAITHFUL: attention does not rank the words by their influence.",
    "undecided": "UNDECIDED: this data does not settle whether attention ranks words by influence.",
}
WIDTH = 41


def print_card(
    verdict: Verdict, manifest: Mapping[str, Any], *, console: Console | None = None
) -> None:
    """Print the verdict with its claims, estimates and what they rest on."""
    (console or Console()).print(build_card(verdict, manifest))


def build_card(verdict: Verdict, manifest: Mapping[str, Any]) -> Panel:
    """The verdict as one framed page of text."""
    colour = COLOURS[verdict.answer]
    audited = read_audited_attention(manifest)
    parts: list[Any] = [
        Text(HEADLINES[verdict.answer], style=f"bold {colour}"),
        *([Text(escape_control_characters(audited.sentence))] if audited else []),
        Text(escape_control_characters(verdict.why) + "\n"),
    ]
    if verdict.degree is not None and verdict.degree.estimate.n:
        parts += [_scale(verdict.degree.estimate), Text()]
    if verdict.instead is not None:
        parts.append(
            Text(f"Instead: {escape_control_characters(str(verdict.instead))}\n", style="bold")
        )
    parts += [_claims(verdict), Text()]
    parts += [_checks(verdict, manifest), *_summaries(verdict, manifest), *_missing(verdict)]
    for check, result in verdict.checks.items():
        if words := find_spec(check, manifest).title:
            parts += [Text(), Text(f"{words}: {escape_control_characters(result.why)}")]
    if choices := describe_choices(verdict):
        parts += [Text(), Text(escape_control_characters(f"Other choices: {choices}"))]
    if made := describe_models(manifest):
        parts += [Text(), Text(made)]
    parts += [Text(), Text(escape_control_characters(_origin(manifest)), style="dim")]
    name = escape_control_characters(manifest["model"]["name"])
    title = Text(f" Does attention explain {name}? ", style="bold")
    return Panel(Group(*parts), title=title, border_style=colour, padding=(1, 1), width=100)


def _scale(degree: Estimate) -> Text:
    """A ruler from shuffled attention to the reference, with the interval drawn on it."""

    def place(value: float) -> int:
        return round(max(0.0, min(1.0, value)) * (WIDTH - 1))

    cells = ["─"] * WIDTH
    if degree.n > 1:
        for cell in range(place(degree.low), place(degree.high) + 1):
            cells[cell] = "━"
    cells[place(degree.value)] = "●"
    text = Text("shuffled ├", style="dim")
    text.append("".join(cells), style="bold cyan")
    text.append("┤ gradient", style="dim")
    text.append(f"\ndegree {degree}, n = {degree.n}")
    return text


def _claims(verdict: Verdict) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, claim in verdict.claims.items():
        label = Text(CLAIM_LABELS[name])
        if claim.checks and name != "ranks":  # the reason for ranks stands under the headline
            label.append(f"\n{escape_control_characters(claim.why)}", style="dim")
        table.add_row(Text(name, style="bold"), Text(claim.answer, COLOURS[claim.answer]), label)
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
        table.add_column(Text(_short(name, most)), justify="right", no_wrap=True)
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


def _summaries(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[Text]:
    """The sentences that sum up measures which the table leaves out."""
    for check, result in verdict.checks.items():
        summary = find_spec(check, manifest).summary
        if summary is not None and (sentence := summary(result)):
            yield from (Text(), Text(sentence))


def _missing(verdict: Verdict) -> list[Text]:
    """Why a check has no value for one of its measures; one line for each reason."""
    return [
        Text(f"no {measure}: {escape_control_characters(reason)}", style="dim")
        for result in verdict.checks.values()
        for measure, reason in group_missing(result.missing)
    ]


def _value(estimate: Estimate | None) -> str:
    return "–" if estimate is None or not estimate.n else f"{estimate.value:.3f}"


def _short(name: str, most: int) -> str:
    shown = escape_control_characters(name)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _origin(manifest: Mapping[str, Any]) -> str:
    data = manifest["data"]
    cpu = sum(one["cpu"] for one in manifest["seconds"].values())
    left = manifest["too_short"]
    parts = [
        f"{data['texts'] - left} texts of {data['name']} ({data['split']})",
        f"{manifest['interval']}",
        f"seed {manifest['seed']}",
        f"{cpu:.1f} CPU seconds",
    ]
    if left:
        parts.append(f"{left} texts too short")
    if manifest["truncated"]:
        parts.append(f"{manifest['truncated']} texts cut")
    if data["bad_rows"]:
        parts.append(data["bad_rows"])
    if data.get("cleaning"):
        parts.append(f"cleaned as {data['cleaning']}")
    if data.get("left_out"):
        parts.append(data["left_out"])
    return " · ".join(parts)
