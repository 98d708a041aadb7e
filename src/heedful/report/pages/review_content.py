"""What a reviewer has to see before signing: records → a neutral page, in words and numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from heedful.checks.spec import group_missing
from heedful.core.records import Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.sections.check_measures import CheckTable, build_check_table
from heedful.report.sections.check_power import describe_check_powers
from heedful.report.sections.claims import ClaimRow, build_claims
from heedful.report.sections.provenance import (
    FactTable,
    build_facts,
    list_limits,
    sanitise_lines,
)
from heedful.report.sections.retrained_models import describe_models
from heedful.report.terminal.verdict_card import HEADLINES
from heedful.results.audited_attention import read_audited_attention
from heedful.results.run_records import RunRecords, sanitise_text

MOST_LABELS = 20
QUESTION = "Does the attention of this model tell which words its predictions rest on?"
DECISIONS = (
    "accepted: attention may be shown as explanation",
    "accepted with the conditions below",
    "rejected: attention must not be shown as explanation",
    "more evidence is needed, as below",
)
FIELDS = ("Reviewer", "Role", "Date", "Use of the explanations that was considered")


@dataclass(frozen=True, slots=True)
class Review:
    """Everything the page shows. Texts in it come from users: whoever writes them out escapes."""

    model: str
    answer: str
    headline: str
    why: str
    audited: str
    degree: Estimate | None
    level: float
    instead: str
    facts: tuple[FactTable, ...]
    claims: tuple[ClaimRow, ...]
    checks: tuple[tuple[CheckTable, str], ...]  # each with its power in words
    limits: tuple[str, ...]
    made: str
    plan: str
    digest: str


def build_review(records: RunRecords, *, digest: str = "") -> Review:
    """The page of one run; `digest` names the verdict that is signed for."""
    verdict, manifest = records.verdict, records.manifest
    degree = verdict.degree.estimate if verdict.degree else None
    audited = read_audited_attention(manifest)
    return Review(
        model=sanitise_text(str(manifest["model"]["name"])),
        answer=sanitise_text(verdict.answer),
        headline=HEADLINES.get(verdict.answer, sanitise_text(verdict.answer)),
        why=sanitise_text(verdict.why),
        audited=audited.sentence if audited else "",
        degree=degree if degree and degree.n and not isnan(degree.value) else None,
        level=manifest.get("level", 0.95),
        instead=sanitise_text(str(verdict.instead)) if verdict.instead else "",
        facts=tuple(_facts(verdict, manifest)),
        claims=build_claims(verdict, manifest),
        checks=tuple(
            (build_check_table(find_spec(name, manifest), one), describe_check_powers(one))
            for name, one in verdict.checks.items()
        ),
        limits=(*list_limits(verdict, manifest), *_gaps(verdict)),
        made=describe_models(manifest),
        plan=sanitise_lines(records.plan),
        digest=digest,
    )


def _facts(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[FactTable]:
    """All but what it cost, and which checks were run."""
    for group in build_facts(_fewer_labels(manifest)):
        if group.title == "Method":
            checks = ("checks", sanitise_text(", ".join(verdict.checks)))
            yield FactTable(group.title, (checks, *group.rows))
        elif not group.title.startswith("Cost"):
            yield group


def _fewer_labels(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A language model has a class for every token; nobody reads them all."""
    labels = list(manifest.get("labels", ()))
    if len(labels) > MOST_LABELS:
        labels = [*labels[:MOST_LABELS], f"and {len(labels) - MOST_LABELS} more"]
    return {**manifest, "labels": labels}


def _gaps(verdict: Verdict) -> Iterator[str]:
    """Values that do not exist, and measures that could not be made."""
    for check, result in verdict.checks.items():
        if result.undefined:
            counts = ", ".join(f"{name} {count}" for name, count in result.undefined.items())
            yield sanitise_text(
                f"{check}: texts on which a measure is undefined and left out: {counts}."
            )
        for measure, why in group_missing(result.missing):
            yield sanitise_text(f"{check}: no {measure}: {why}.")
