"""Records → what the page of a run shows: the verdict, then a list of sections."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from heedful.core.records import Estimate
from heedful.report.sections.attention_maps import build_attention_maps
from heedful.report.sections.check_measures import build_checks
from heedful.report.sections.check_sections import (
    build_check_sections,
    build_retraining_parts,
    list_figures,
    place_figures,
)
from heedful.report.sections.claims import CLAIM_LABELS, build_claims_section
from heedful.report.sections.descriptive_checks import build_descriptive_checks
from heedful.report.sections.example_texts import build_example_texts
from heedful.report.sections.multiverse import build_choices
from heedful.report.sections.provenance import build_limits, build_provenance
from heedful.report.sections.retrained_models import build_retraining
from heedful.report.sections.slices import build_slices
from heedful.report.terminal.verdict_card import HEADLINES
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import Section
from heedful.results.run_records import RunRecords, sanitise_text


@dataclass(frozen=True, slots=True)
class VerdictCard:
    """The verdict at the head of a page. Texts in it come from users: the renderer escapes them.

    `claims` are name, answer and meaning of each claim.
    """

    model: str
    answer: str
    headline: str
    why: tuple[str, ...]
    degree: Estimate | None
    level: float
    instead: str
    claims: tuple[tuple[str, str, str], ...]
    summary: str


def build_verdict_card(records: RunRecords) -> VerdictCard:
    """The verdict of a run, from its records alone."""
    verdict, manifest = records.verdict, records.manifest
    audited = read_audited_attention(manifest)
    degree = verdict.degree and verdict.degree.estimate
    return VerdictCard(
        model=sanitise_text(manifest["model"]["name"]),
        answer=verdict.answer,
        headline=HEADLINES[verdict.answer],
        why=(sanitise_text(verdict.why), *([audited.sentence] if audited else [])),
        degree=degree if degree and degree.n and not isnan(degree.value) else None,
        level=manifest.get("level", 0.95),
        instead="" if verdict.instead is None else sanitise_text(str(verdict.instead)),
        claims=tuple(
            (sanitise_text(name), one.answer, CLAIM_LABELS.get(name, sanitise_text(name)))
            for name, one in verdict.claims.items()
        ),
        summary=_summarise_data(manifest),
    )


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """Everything below the verdict, in order."""
    verdict, figures = records.verdict, list_figures(records)
    head = (
        build_claims_section(verdict, records.manifest),
        build_choices(verdict),
        build_checks(records),
    )
    own = (
        build_descriptive_checks(records),
        build_retraining(records, tuple(build_retraining_parts(records))),
        *build_check_sections(records),
        build_attention_maps(records),
    )
    tail = (
        build_example_texts(records),
        build_slices(records),
        build_limits(records),
        build_provenance(records),
    )
    placed, others = place_figures([one for one in own if one is not None], figures)
    return tuple(one for one in (*head, others, *placed, *tail) if one is not None)


def _summarise_data(manifest: Mapping[str, Any]) -> str:
    data = manifest["data"]
    texts = data["texts"] - manifest.get("too_short", 0)
    return sanitise_text(
        f"{texts:,} texts of {data['name']} ({data['split']})".replace(",", "\u202f")
    )
