"""Records → what a page shows, in words and numbers; how it looks is decided elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from heedful.checks.spec import (
    CheckSpec,
    Direction,
    Measure,
    Role,
    ValueRange,
    group_missing,
)
from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.sections.attention_maps import Maps, build_maps
from heedful.report.sections.check_sections import BUILT_IN_NAMES, build_check_sections
from heedful.report.sections.claims import ClaimRow, build_claims
from heedful.report.sections.descriptive_checks import DescriptiveCheck, build_descriptive_checks
from heedful.report.sections.example_texts import MOST, ExampleText, choose_examples, count_texts
from heedful.report.sections.identifiability import IdentifiabilityView, build_identifiability
from heedful.report.sections.layers import Layers, build_layers
from heedful.report.sections.method_agreement import MethodAgreement, build_method_agreement
from heedful.report.sections.multiverse import Choices, build_choices
from heedful.report.sections.provenance import (
    AuditedAttention,
    FactTable,
    build_facts,
    list_limits,
    read_audited_attention,
)
from heedful.report.sections.retraining import read_retrained_checks
from heedful.report.sections.retraining_text import RetrainingSection, build_section
from heedful.report.sections.slices import Slice, build_slices
from heedful.report.terminal.verdict_card import HEADLINES
from heedful.results.document import FigureData, Section
from heedful.results.run_records import RunRecords, sanitise_text

MOST_CLASSES = 4  # more columns than this would not be read


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One estimate of a check, overall and by class, and how to read it."""

    name: str
    words: str
    direction: Direction
    role: Role
    span: ValueRange
    estimate: Estimate
    by_class: tuple[Estimate | None, ...]
    undefined: int


@dataclass(frozen=True, slots=True)
class CheckTable:
    """One check: its question, its vote, its estimates, and what it could not measure."""

    name: str
    question: str
    answer: str
    why: str
    rows: tuple[MeasureRow, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a report shows. Texts in it come from users: whoever writes them out escapes."""

    model: str
    summary: str
    answer: str
    headline: str
    why: str
    audited: AuditedAttention | None
    degree: Estimate | None
    instead: str
    claims: tuple[ClaimRow, ...]
    choices: Choices | None
    classes: tuple[str, ...]
    level: float
    checks: tuple[CheckTable, ...]
    apart: tuple[DescriptiveCheck, ...]
    pictures: tuple[FigureData, ...]
    methods: MethodAgreement | None
    method_pictures: tuple[FigureData, ...]
    layers: Layers | None
    layer_pictures: tuple[FigureData, ...]
    identified: IdentifiabilityView | None
    identified_pictures: tuple[FigureData, ...]
    maps: Maps | None
    sections: tuple[Section, ...]
    retraining: RetrainingSection | None
    retrained_pictures: tuple[FigureData, ...]
    sentences: tuple[ExampleText, ...]
    sampled: str
    slices: tuple[Slice, ...]
    limits: tuple[str, ...]
    facts: tuple[FactTable, ...]
    plan: str


def build_page(records: RunRecords) -> Page:
    """The page of one run, from its records alone."""
    verdict, manifest = records.verdict, records.manifest
    degree = verdict.degree and verdict.degree.estimate
    layers, methods = build_layers(records), build_method_agreement(records)
    sentences, retrained = choose_examples(records), read_retrained_checks(records)
    identified = build_identifiability(records)
    figures = _figures_by_section(records)
    return Page(
        model=sanitise_text(manifest["model"]["name"]),
        summary=_summary(manifest),
        answer=verdict.answer,
        headline=HEADLINES[verdict.answer],
        why=sanitise_text(verdict.why),
        audited=read_audited_attention(manifest),
        degree=degree if degree and degree.n and not isnan(degree.value) else None,
        instead=_instead(verdict),
        claims=build_claims(verdict, manifest),
        choices=build_choices(verdict),
        classes=tuple(map(sanitise_text, _classes(verdict))),
        level=manifest.get("level", 0.95),
        checks=tuple(
            build_check_table(find_spec(name, manifest), one, _classes(verdict))
            for name, one in verdict.checks.items()
        ),
        apart=build_descriptive_checks(records),
        pictures=figures["checks"],
        methods=methods,
        method_pictures=figures["methods"],
        layers=layers,
        layer_pictures=figures["layers"],
        identified=identified,
        identified_pictures=figures["identifiability"],
        maps=build_maps(records),
        sections=build_check_sections(records),
        retraining=build_section(records, retrained),
        retrained_pictures=figures["retraining"],
        sentences=sentences,
        sampled=_sampled(len(sentences), count_texts(records), kept=records.texts is not None),
        slices=build_slices(records),
        limits=list_limits(verdict, manifest),
        facts=build_facts(manifest),
        plan=sanitise_lines(records.plan),
    )


def _figures_by_section(records: RunRecords) -> dict[str, tuple[FigureData, ...]]:
    """The figures of the checks of this package, by the section of the page they stand in."""
    sections: dict[str, list[FigureData]] = {
        name: [] for name in ("checks", "methods", "layers", "identifiability", "retraining")
    }
    for check in filter(BUILT_IN_NAMES.__contains__, records.verdict.checks):
        spec = find_spec(check, records.manifest)
        for one in spec.figures(records) if spec.figures else ():
            start = one.name.split("_")[0]
            usual = "retraining" if spec.retrains else "checks"
            sections[start if start in sections else usual].append(one)
    return {name: tuple(some) for name, some in sections.items()}


def sanitise_lines(text: str) -> str:
    """As `sanitise_text`, keeping the breaks between lines."""
    return "\n".join(sanitise_text(line) for line in text.splitlines())


def _summary(manifest: Mapping[str, Any]) -> str:
    data = manifest["data"]
    texts = data["texts"] - manifest.get("too_short", 0)
    return sanitise_text(
        f"{texts:,} texts of {data['name']} ({data['split']})".replace(",", "\u202f")
    )


def _instead(verdict: Verdict) -> str:
    return "" if verdict.instead is None else sanitise_text(str(verdict.instead))


def _classes(verdict: Verdict) -> tuple[str, ...]:
    """Classes with a column of their own: all of them, or none where they would be too many."""
    names = dict.fromkeys(name for one in verdict.checks.values() for name in one.classes)
    return tuple(names) if len(names) <= MOST_CLASSES else ()


def build_check_table(
    spec: CheckSpec, result: CheckResult, classes: tuple[str, ...] = ()
) -> CheckTable:
    """What a page shows of one check: plain measures, then those by method; classes as columns."""
    rows = [
        _measure_row(spec.measure(name), name, result, estimate, classes)
        for name, estimate in result.estimates.items()
    ]
    for name in dict.fromkeys(row.measure for row in result.by if row.method is not None):
        rows += [
            _measure_row(spec.measure(name, method), name, result, estimate, classes, method)
            for method, estimate in result.by_method(name).items()
        ]
    missing = (f"{name}: {sanitise_text(why)}" for name, why in group_missing(result.missing))
    why = sanitise_text(result.why)
    return CheckTable(
        sanitise_text(spec.name), spec.question, result.answer, why, tuple(rows), tuple(missing)
    )


def _measure_row(
    measure: Measure,
    name: str,
    result: CheckResult,
    estimate: Estimate,
    classes: tuple[str, ...],
    method: str | None = None,
) -> MeasureRow:
    keys = {} if method is None else {"method": method}
    by_class = result.by_class(name, **keys)
    undefined = (
        result.undefined.get(name, 0)
        if method is None
        else sum(row.undefined for row in result.rows(name, **keys) if row.predicted is None)
    )
    return MeasureRow(
        name=sanitise_text(name if method is None else f"{name} ({method})"),
        words=measure.label,
        direction=measure.direction,
        role=measure.role,
        span=measure.range,
        estimate=estimate,
        by_class=tuple(by_class.get(one) for one in classes),
        undefined=undefined,
    )


def _sampled(shown: int, total: int, *, kept: bool) -> str:
    if not kept:
        return (
            "This run kept no words, so there are no sentences to show. "
            "Audit again with the present version to keep them."
        )
    if shown == total:
        return f"All {total} texts."
    quarter = MOST // 4
    return (
        f"{shown} of {total} texts: the {quarter} on which attention and leave-one-out agree "
        f"least, the {quarter} on which they agree most, and {shown - 2 * quarter} drawn at random "
        "from the rest, by the seed of the run."
    )
