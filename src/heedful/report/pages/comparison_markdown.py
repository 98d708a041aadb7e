"""A comparison as Markdown."""

from collections.abc import Iterator, Sequence

from heedful.core.records import Estimate
from heedful.report.pages.comparison_rows import (
    corrected_told,
    groups_of,
    lacking_told,
    meaning_for,
    method_told,
    name_of,
    p_told,
)
from heedful.report.pages.run_html import ARROWS, number
from heedful.report.pages.run_markdown import escaped
from heedful.report.run_records import visible
from heedful.report.terminal.comparison import CERTAIN, signed
from heedful.results.comparison.records import SEEDS, Compared, Difference, Pair
from heedful.results.comparison.requirements import Judged


def compared_markdown(compared: Compared, required: Sequence[Judged] = ()) -> str:
    """Answers side by side, differences with intervals and p-values, and how they were found."""
    return "\n".join(_lines(compared, required)) + "\n"


def _lines(compared: Compared, required: Sequence[Judged]) -> Iterator[str]:
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
    yield from (f"- {_shown(one)}" for one in (method_told(compared), corrected_told(compared)))


def _shown(text: str) -> str:
    return escaped(visible(text))


def _sides(compared: Compared) -> Iterator[str]:
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


def _pair(compared: Compared, pair: Pair) -> Iterator[str]:
    yield f"\n## {_shown(pair.second)} against {_shown(pair.first)}\n"
    told = str(pair.pairing)
    yield f"{told[0].upper()}{told[1:]}."
    yield from (f"\n{_shown(one)}" for one in (*pair.notes, *lacking_told(pair)))
    ends = f"difference \\[{100 * compared.level:g} %\\]"
    yield f"\n| | check | measure | first | second | {ends} | p, corrected | n |"
    yield "| --- | --- | --- | ---: | ---: | --- | ---: | ---: |"
    for group in groups_of(pair):
        for one in group.rows:
            yield _row(compared, one)
    yield from (f"\n{_shown(f'{one.check}: {one.told}')}" for one in groups_of(pair) if one.told)


def _row(compared: Compared, one: Difference) -> str:
    meaning = meaning_for(one.key, compared.kind)
    told = [f"{meaning.words}: {name_of(one.key)}" if meaning.words else name_of(one.key)]
    told += [f"({meaning.role})"] if meaning.role != "measure" else []
    told += [ARROWS[meaning.direction]] if meaning.direction != "none" else []
    told += [f"({one.undefined[0]}, {one.undefined[1]} undefined)"] if any(one.undefined) else []
    told += ["(over seeds too)"] if one.over == SEEDS else []
    cells = [CERTAIN if one.certain else "", one.key.check, " ".join(told)]
    cells += [number(one.first.value), number(one.second.value), minus(one.difference)]
    cells += [p_told(one.corrected), str(one.difference.n)]
    return f"| {' | '.join(map(_shown, cells))} |"


def minus(estimate: Estimate) -> str:
    """A difference with its interval and true minus signs."""
    return signed(estimate).replace("-", "\u2212")
