"""The verdict card in the terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.escaping import escape_control_characters
from heedful.report.measure_labels import method_of
from heedful.report.sections.multiverse import build_choices
from heedful.report.sections.provenance import read_audited_attention
from heedful.report.sections.retrained_models import describe_models

COLOURS = {
    "faithful": "green",
    "unfaithful": "red",
    "for": "green",
    "against": "red",
    "undecided": "yellow",
    "no vote": "dim",
    "not examined": "dim",
}
HEADLINES = {
    "faithful": "FAITHFUL: attention ranks the words of this model's inputs by their influence.",
    "unfaithful": "NOT FAITHFUL: attention does not rank the words by their influence.",
    "undecided": "UNDECIDED: this data does not settle whether attention ranks words by influence.",
}
CLAIM_WORDS = {
    "used": "output depends on the attention",
    "needed": "uniform attention would do worse",
    "ranks": "attention orders words by influence",
    "exclusive": "no distant attention gives the same output",
    "robust": "retraining gives the same attention, and it cannot be taught to hide decisive words",
}
CONTROLS = (
    "tau_shuffled_leave_one_out",
    "tau_gradient_shuffled",
    "median_tvd_random_rows",
    "random_tvd",
    "flip_random",
    "fraction_to_flip_random",
    *(
        "jsd_shuffled",
        "jsd_uniform",
        "score_uniform",
        "score_without_words",
        "hidden_share",
        "tvd_another_seed",
        "jsd_another_seed",
    ),
)
OF_REFERENCES = ("tau_references", "tau_attention_references")
WIDTH = 41
# in a sentence: several figures of every method are for the report
CHECK_TITLES = {
    "faithfulness": "What methods name",
    "identifiability": "What cannot matter",
    "plausibility": "What people point at",
    "randomisation": "What was learned",
    "labels": "What labels taught",
    "off_manifold": "What a copy that knows holes says",
    "roar": "Trained without the words",
}


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
    if verdict.degree is not None and verdict.degree.n:
        parts += [_scale(verdict.degree), Text()]
    if verdict.instead is not None:
        parts.append(
            Text(f"Instead: {escape_control_characters(str(verdict.instead))}\n", style="bold")
        )
    parts += [_claims(verdict), Text()]
    parts += [_checks(verdict, manifest["level"]), *_methods(verdict), *_missing(verdict)]
    if "mechanism" in verdict.checks:
        parts += [
            Text(),
            Text("Where it is lost: " + escape_control_characters(verdict.checks["mechanism"].why)),
        ]
    for check in (name for name in CHECK_TITLES if name in verdict.checks):
        parts += [
            Text(),
            Text(f"{CHECK_TITLES[check]}: {escape_control_characters(verdict.checks[check].why)}"),
        ]
    if choices := build_choices(verdict):
        parts += [Text(), Text(escape_control_characters(f"Other choices: {choices.sentence}"))]
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
        told = Text(CLAIM_WORDS[name])
        if claim.checks and name != "ranks":  # the reason for ranks stands under the headline
            told.append(f"\n{escape_control_characters(claim.why)}", style="dim")
        table.add_row(Text(name, style="bold"), Text(claim.answer, COLOURS[claim.answer]), told)
    return table


def _checks(verdict: Verdict, level: float) -> Table:
    """Every estimate with its interval, overall and by predicted class; controls in grey."""
    classes = list(dict.fromkeys(name for one in verdict.checks.values() for name in one.by_class))
    shown = classes if len(classes) <= 3 else []
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True, min_width=28)
    table.add_column(f"mean [{100 * level:g}%]", min_width=21)
    most = 12 if len(shown) < 3 else 7  # more would not fit a terminal of 80 columns
    for name in shown:
        table.add_column(Text(_short(name, most)), justify="right", no_wrap=True)
    for check, result in verdict.checks.items():
        answer = Text(f"  {result.answer}", style=COLOURS[result.answer])
        table.add_row(Text(check, style="bold") + answer)
        if check not in CHECK_TITLES:
            _measures(table, result, shown)
    return table


def _measures(table: Table, result: CheckResult, classes: list[str]) -> None:
    told_apart = _of_methods(result)
    for measure, estimate in result.estimates.items():
        if measure in told_apart:
            continue
        style = "dim" if measure in CONTROLS else ""
        told = str(estimate)
        if measure in result.undefined:
            told += f"  ({result.undefined[measure]} undefined)"
        cells = [_value(result.by_class.get(name, {}).get(measure)) for name in classes]
        name = measure.removeprefix("fraction_")  # or classes would not fit 80 columns beside it
        table.add_row(Text(f" {name}"), Text(told), *map(Text, cells), style=style)


def _methods(verdict: Verdict) -> list[Text]:
    """Whether the further methods agree with each other, in one line."""
    check = verdict.checks.get("agreement")
    if check is None or not _of_methods(check):
        return []
    among, attention = (check.estimates[one] for one in OF_REFERENCES)
    told = (
        f"Methods that erase words and methods that follow gradients agree at τ {among}, attention "
        f"with both at τ {attention}; the report has every pair of methods."
    )
    return [Text(), Text(told)]


def _of_methods(result: CheckResult) -> set[str]:
    """The measures of further methods, where there is a line that sums them up."""
    if not set(OF_REFERENCES) <= result.estimates.keys():
        return set()
    return {one for one in result.estimates if one in OF_REFERENCES or method_of(one)}


def _missing(verdict: Verdict) -> list[Text]:
    """Why a check has no figure for one of its measures, or for several of every method."""
    return [
        Text(f"no {measure}: {escape_control_characters(reason)}", style="dim")
        for check, result in verdict.checks.items()
        for measure, reason in _reasons(check, result.missing)
    ]


def _reasons(check: str, missing: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """One line for a method that refuses, not one for each of its dozen figures."""
    if check not in CHECK_TITLES:
        return missing.items()
    first = {name: why for name, why in missing.items() if name.startswith("comprehensiveness_")}
    return first.items() or group_by_reason(missing)


def group_by_reason(missing: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each reason once, with the first of the measures that it holds of, and how many more.

    >>> told_once({"flip_lime": "why", "worst_lime": "why", "flip_flow": "so"})
    [('flip_lime and 1 more', 'why'), ('flip_flow', 'so')]
    """
    groups: dict[str, list[str]] = {}
    for measure, reason in missing.items():
        groups.setdefault(reason, []).append(measure)
    return [
        (f"{first} and {len(rest)} more" if rest else first, reason)
        for reason, (first, *rest) in groups.items()
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
