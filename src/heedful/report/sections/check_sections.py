"""What checks bring to a page: sections of their own, and figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from heedful.report.check_specs import find_spec
from heedful.results.document import FigureData, Section
from heedful.results.run_records import RunRecords, sanitise_text


def split_check_sections(records: RunRecords) -> tuple[list[Section], list[Section]]:
    """The sections that checks describe as their own: of those that vote on claims, of others.

    Checks that retrain are left out.
    """
    voting, others = list[Section](), list[Section]()
    for name in records.verdict.checks:
        spec = find_spec(name, records.manifest)
        if spec.sections is not None and not spec.retrains:
            (voting if spec.votes else others).extend(spec.sections(records))
    return voting, others


def build_retraining_parts(records: RunRecords) -> Iterator[Section]:
    """Those of the checks that retrain, each with the answer and the question of its check."""
    for name, result in records.verdict.checks.items():
        spec = find_spec(name, records.manifest)
        if spec.sections is not None and spec.retrains:
            for section in spec.sections(records):
                words = (sanitise_text(result.why), *section.words)
                yield replace(
                    section,
                    title=f"{section.title}: {spec.question}",
                    answer=result.answer,
                    words=tuple(filter(None, words)),
                )


def list_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """The figures that descriptions make, check by check."""
    specs = (find_spec(name, records.manifest) for name in records.verdict.checks)
    return tuple(one for spec in specs if spec.figures for one in spec.figures(records))


def place_figures(
    sections: Sequence[Section], figures: Iterable[FigureData]
) -> tuple[tuple[Section, ...], Section | None]:
    """The sections with the figures they name, and a section of all other figures.

    A figure with the name of a section is left out: that section shows its numbers in a table.
    """
    by_name = {one.name: one for one in figures}
    placed = tuple(_place(section, by_name) for section in sections)
    named = {name for section in sections for name in _figure_names(section)}
    others = tuple(one for name, one in by_name.items() if name not in named)
    if not others:
        return placed, None
    return placed, Section("figures", "Figures", figures=others, short="Figures")


def _place(section: Section, figures: Mapping[str, FigureData]) -> Section:
    own = tuple(figures[name] for name in section.figure_names if name in figures)
    return replace(
        section,
        figures=(*section.figures, *own),
        parts=tuple(_place(one, figures) for one in section.parts),
        folded=tuple(_place(one, figures) for one in section.folded),
    )


def _figure_names(section: Section) -> Iterator[str]:
    yield section.name
    yield from section.figure_names
    yield from (one.name for one in section.figures)
    for part in (*section.parts, *section.folded):
        yield from _figure_names(part)
