"""What checks bring to a page: sections of their own, and figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from heedful.checks.attention.agreement.compared_methods import build_method_agreement
from heedful.checks.attention.agreement.layers import build_layers
from heedful.checks.attention.identifiability.sections import build_identifiability
from heedful.report.check_specs import find_spec
from heedful.report.figures.erasure import build_erasure_figures
from heedful.report.figures.faithfulness import build_removal_figures
from heedful.report.figures.figure_data import build_figures
from heedful.report.figures.identifiability import build_identifiability_figures
from heedful.report.figures.layers import build_layer_figures
from heedful.report.figures.method_agreement import build_method_figures
from heedful.report.figures.retraining import build_retraining_figures
from heedful.report.sections.retraining import read_retrained_checks
from heedful.results.document import FigureData, Section
from heedful.results.run_records import RunRecords, sanitise_text

SHOWN_AS_TABLE = ("heads",)  # kinds of figure whose numbers the page has in a coloured table


def build_check_sections(records: RunRecords) -> Iterator[Section]:
    """The sections of the checks that describe their own and do not retrain."""
    for name in records.verdict.checks:
        spec = find_spec(name, records.manifest)
        if spec.sections is not None and not spec.retrains:
            yield from spec.sections(records)


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
    made = [one for spec in specs if spec.figures for one in spec.figures(records)]
    return tuple({one.name: one for one in (*made, *_built_in_figures(records))}.values())


def _built_in_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """Until the descriptions of built-in checks make their figures; then delete this."""
    return (
        *build_figures(records),
        *build_erasure_figures(records),
        *build_removal_figures(records),
        *build_method_figures(build_method_agreement(records)),
        *build_layer_figures(records, build_layers(records)),
        *build_identifiability_figures(records, build_identifiability(records)),
        *build_retraining_figures(records, read_retrained_checks(records)),
    )


def place_figures(
    sections: Sequence[Section], figures: Iterable[FigureData]
) -> tuple[tuple[Section, ...], Section | None]:
    """The sections with the figures they name, and a section of all other figures."""
    by_name = {one.name: one for one in figures if one.kind not in SHOWN_AS_TABLE}
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


def _figure_names(section: Section) -> Iterable[str]:
    yield from section.figure_names
    yield from (one.name for one in section.figures)
    for part in (*section.parts, *section.folded):
        yield from _figure_names(part)
