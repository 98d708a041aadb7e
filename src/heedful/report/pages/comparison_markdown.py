"""A comparison as Markdown."""

from collections.abc import Iterator, Sequence

from heedful.comparison.records import OVER_SEEDS, ComparisonRecord, Difference, SidePair
from heedful.comparison.requirements import RequirementResult
from heedful.core.records import Estimate
from heedful.report.pages.comparison_rows import (
    describe_correction,
    describe_intervals,
    describe_missing,
    display_name,
    find_measure,
    format_p_value,
    group_differences,
)
from heedful.report.pages.section_render import escape_markdown, three_decimals
from heedful.report.sections.check_measures import ARROWS
from heedful.report.terminal.comparison import CERTAIN, format_signed
from heedful.results.run_records import sanitise_text


def render_comparison_markdown(
    compared: ComparisonRecord, required: Sequence[RequirementResult] = ()
) -> str:
    """Answers side by side, differences with intervals and p-values, and how they were found."""
    return "\n".join(_lines(compared, required)) + "\n"


def _lines(compared: ComparisonRecord, required: Sequence[RequirementResult]) -> Iterator[str]:
    yield f"# {_shown(' and '.join(one.name for one in compared.sides))}, compared\n"
    if compared.kind == "runs":
        yield from _sides(compared)
    else:
        one = compared.sides[0]
        yield f"Methods of {_shown(one.folder)}, {one.texts} texts of {_shown(one.data)}."
    for pair in compared.pairs:
        yield from _pair(compared, pair)
    if required:
        yield "\n## Required\n"
        yield from (f"- {_shown(str(one))}" for one in required)
    yield "\n## How\n"
    yield f"- {CERTAIN}: differs beyond chance, by the corrected p-value."
    yield from (
        f"- {_shown(one)}" for one in (describe_intervals(compared), describe_correction(compared))
    )


def _shown(text: str) -> str:
    return escape_markdown(sanitise_text(text))


def _sides(compared: ComparisonRecord) -> Iterator[str]:
    sides = compared.sides
    yield f"| | {' | '.join(_shown(one.name) for one in sides)} |"
    yield f"| --- |{' --- |' * len(sides)}"
    rows = {
        "model": [one.model for one in sides],
        "attention": [one.attention for one in sides],
        "texts": [f"{one.texts} of {one.data}" for one in sides],
        "answer": [one.answer for one in sides],
        "degree": [str(one.degree) if one.degree else "–" for one in sides],
    }
    for claim in dict.fromkeys(name for one in sides for name in one.claims):
        rows[f"claim: {claim}"] = [one.claims.get(claim, "–") for one in sides]
    for name, cells in rows.items():
        yield f"| {_shown(name)} | {' | '.join(map(_shown, cells))} |"


def _pair(compared: ComparisonRecord, pair: SidePair) -> Iterator[str]:
    yield f"\n## {_shown(pair.second)} against {_shown(pair.first)}\n"
    pairing = str(pair.pairing)
    yield f"{pairing[0].upper()}{pairing[1:]}."
    yield from (f"\n{_shown(one)}" for one in (*pair.notes, *describe_missing(pair)))
    ends = f"difference \\[{100 * compared.level:g} %\\]"
    yield f"\n| | check | measure | first | second | {ends} | p, corrected | n |"
    yield "| --- | --- | --- | ---: | ---: | --- | ---: | ---: |"
    for group in group_differences(pair):
        for one in group.rows:
            yield _row(compared, one)
    yield from (
        f"\n{_shown(f'{one.check}: {one.note}')}" for one in group_differences(pair) if one.note
    )


def _row(compared: ComparisonRecord, one: Difference) -> str:
    measure = find_measure(one.key, compared.kind)
    parts = [
        f"{measure.label}: {display_name(one.key)}" if measure.label else display_name(one.key)
    ]
    parts += [f"({measure.role})"] if measure.role != "measure" else []
    parts += [ARROWS[measure.direction]] if measure.direction != "none" else []
    parts += [f"({one.undefined[0]}, {one.undefined[1]} undefined)"] if any(one.undefined) else []
    parts += ["(over seeds too)"] if one.over == OVER_SEEDS else []
    cells = [CERTAIN if one.certain else "", one.key.check, " ".join(parts)]
    cells += [
        three_decimals(one.first.value),
        three_decimals(one.second.value),
        format_difference(one.difference),
    ]
    cells += [format_p_value(one.corrected), str(one.difference.n)]
    return f"| {' | '.join(map(_shown, cells))} |"


def format_difference(estimate: Estimate) -> str:
    """A difference with its interval and true minus signs."""
    return format_signed(estimate).replace("-", "\u2212")
