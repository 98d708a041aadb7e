"""Records → what a page shows, in words and numbers; how it looks is decided elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.figures.erasure import erasure_pictures_of
from heedful.report.figures.faithfulness import removed_pictures_of
from heedful.report.figures.figure_data import Picture, pictures_of
from heedful.report.figures.identifiability import identified_pictures_of
from heedful.report.figures.layers import layer_pictures_of
from heedful.report.figures.method_agreement import method_pictures_of
from heedful.report.figures.retraining import retrained_pictures_of
from heedful.report.measure_labels import QUESTIONS, Direction, Range, Role, meaning_of
from heedful.report.run_records import Records, visible
from heedful.report.sections.attention_maps import Maps, maps_of
from heedful.report.sections.claims import ClaimRow, claims_of
from heedful.report.sections.descriptive_checks import Apart, apart_of
from heedful.report.sections.example_texts import MOST, Sentence, sentences_of, total_of
from heedful.report.sections.identifiability import Identified, identified_of
from heedful.report.sections.layers import Layers, layers_of
from heedful.report.sections.method_agreement import Methods, methods_of
from heedful.report.sections.multiverse import Choices, choices_of
from heedful.report.sections.provenance import Audited, Facts, audited_of, facts_of, limits_of
from heedful.report.sections.retraining import retrained_of
from heedful.report.sections.retraining_text import Retraining, section_of
from heedful.report.sections.slices import Slice, slices_of
from heedful.report.terminal.verdict_card import HEADLINES

MOST_CLASSES = 4  # more columns than this would not be read


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One estimate of a check, overall and by class, and how to read it."""

    name: str
    words: str
    direction: Direction
    role: Role
    span: Range
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
    audited: Audited | None
    degree: Estimate | None
    instead: str
    claims: tuple[ClaimRow, ...]
    choices: Choices | None
    classes: tuple[str, ...]
    level: float
    checks: tuple[CheckTable, ...]
    apart: tuple[Apart, ...]
    pictures: tuple[Picture, ...]
    methods: Methods | None
    method_pictures: tuple[Picture, ...]
    layers: Layers | None
    layer_pictures: tuple[Picture, ...]
    identified: Identified | None
    identified_pictures: tuple[Picture, ...]
    maps: Maps | None
    retraining: Retraining | None
    retrained_pictures: tuple[Picture, ...]
    sentences: tuple[Sentence, ...]
    sampled: str
    slices: tuple[Slice, ...]
    limits: tuple[str, ...]
    facts: tuple[Facts, ...]
    plan: str


def page_of(records: Records) -> Page:
    """The page of one run, from its records alone."""
    verdict, manifest = records.verdict, records.manifest
    degree, layers, methods = verdict.degree, layers_of(records), methods_of(records)
    sentences, retrained = sentences_of(records), retrained_of(records)
    identified = identified_of(records)
    return Page(
        model=visible(manifest["model"]["name"]),
        summary=_summary(manifest),
        answer=verdict.answer,
        headline=HEADLINES[verdict.answer],
        why=visible(verdict.why),
        audited=audited_of(manifest),
        degree=degree if degree and degree.n and not isnan(degree.value) else None,
        instead=_instead(verdict),
        claims=claims_of(verdict),
        choices=choices_of(verdict),
        classes=tuple(map(visible, _classes(verdict))),
        level=manifest.get("level", 0.95),
        checks=tuple(
            check_of(name, one, _classes(verdict)) for name, one in verdict.checks.items()
        ),
        apart=apart_of(records),
        pictures=(
            *pictures_of(records),
            *erasure_pictures_of(records),
            *removed_pictures_of(records),
        ),
        methods=methods,
        method_pictures=method_pictures_of(methods),
        layers=layers,
        layer_pictures=layer_pictures_of(records, layers),
        identified=identified,
        identified_pictures=identified_pictures_of(records, identified),
        maps=maps_of(records),
        retraining=section_of(records, retrained),
        retrained_pictures=retrained_pictures_of(records, retrained),
        sentences=sentences,
        sampled=_sampled(len(sentences), total_of(records), kept=records.texts is not None),
        slices=slices_of(records),
        limits=limits_of(verdict, manifest),
        facts=facts_of(manifest),
        plan=visible_lines(records.plan),
    )


def visible_lines(text: str) -> str:
    """As `visible`, keeping the breaks between lines."""
    return "\n".join(visible(line) for line in text.splitlines())


def _summary(manifest: Mapping[str, Any]) -> str:
    data = manifest["data"]
    texts = data["texts"] - manifest.get("too_short", 0)
    return visible(f"{texts:,} texts of {data['name']} ({data['split']})".replace(",", "\u202f"))


def _instead(verdict: Verdict) -> str:
    return "" if verdict.instead is None else visible(str(verdict.instead))


def _classes(verdict: Verdict) -> tuple[str, ...]:
    """Classes with a column of their own: all of them, or none where they would be too many."""
    names = dict.fromkeys(name for one in verdict.checks.values() for name in one.by_class)
    return tuple(names) if len(names) <= MOST_CLASSES else ()


def check_of(name: str, result: CheckResult, classes: tuple[str, ...] = ()) -> CheckTable:
    """What a page shows of one check; classes have columns of their own."""
    rows = []
    for measure, estimate in result.estimates.items():
        meaning = meaning_of(measure, name)
        rows.append(
            MeasureRow(
                name=visible(measure),
                words=meaning.words,
                direction=meaning.direction,
                role=meaning.role,
                span=meaning.span,
                estimate=estimate,
                by_class=tuple(result.by_class.get(one, {}).get(measure) for one in classes),
                undefined=result.undefined.get(measure, 0),
            )
        )
    missing = (f"{measure}: {visible(why)}" for measure, why in result.missing.items())
    question = QUESTIONS.get(name, "")
    why = visible(result.why)
    return CheckTable(visible(name), question, result.answer, why, tuple(rows), tuple(missing))


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
