"""The claims of the debate, each with the checks about it and their leading estimates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.checks.spec import CheckSpec, Measure
from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.results.document import Cell, Section, Table
from heedful.results.run_records import sanitise_text

MOST = 2  # estimates of a check that names no leading measures
UNKNOWN = "power not measured"
CLAIM_LABELS = {
    "used": "output depends on the attention",
    "needed": "uniform attention would do worse",
    "ranks": "attention orders words by influence",
    "exclusive": "no distant attention gives the same output",
    "robust": "the same attention when retrained; cannot hide words",
}


@dataclass(frozen=True, slots=True)
class LeadingFigure:
    """One estimate and how to read it."""

    name: str
    measure: Measure
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A check about a claim; `answer` is empty where the check answers another one."""

    check: str
    question: str
    answer: str
    figures: tuple[LeadingFigure, ...]
    missing: str
    power: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim of the debate, its answer, and the checks about it."""

    name: str
    words: str
    answer: str
    why: str
    evidence: tuple[EvidenceRow, ...]


def build_claims_section(verdict: Verdict, manifest: Mapping[str, Any]) -> Section:
    """Every claim with its answer, its reason and the checks about it."""
    words = (
        "Whether attention explains a model is several questions. Each is listed with the checks "
        "about it. Checks marked “no vote” do not count. Below each: how often it is right about "
        "models whose truth is known and that are like this one.",
    )
    parts = tuple(
        Section(
            f"claim-{number}",
            f"{claim.name}: {claim.words}",
            words=(claim.why,) if claim.why else (),
            tables=(_evidence_table(claim),) if claim.evidence else (),
            answer=claim.answer,
        )
        for number, claim in enumerate(build_claims(verdict, manifest), 1)
    )
    return Section("claims", "Claims and their evidence", words, parts=parts, short="Claims")


def _evidence_table(claim: ClaimRow) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for one in claim.evidence:
        question = one.question if one.answer else "by one of its measures"
        note = " · ".join(filter(None, (question, one.power)))
        link = f"check-{one.check}"
        name: str | Cell = Cell(one.check, answer=one.answer, link=link, note=note)
        if not one.figures:
            rows.append((name, Cell(one.missing or "No estimate.", muted=True), ""))
        for figure in one.figures:
            measure, muted = figure.measure, figure.measure.role != "measure"
            role = measure.role if muted else ""
            label = Cell(measure.label or figure.name, answer=role, muted=muted)
            estimate = Cell(estimate=figure.estimate, span=measure.range, muted=muted)
            rows.append((name, label, estimate))
            name = ""
    return Table(("check", "measure", "mean"), tuple(rows))


def build_claims(verdict: Verdict, manifest: Mapping[str, Any]) -> tuple[ClaimRow, ...]:
    """Every claim, in order."""
    specs = {name: find_spec(name, manifest) for name in verdict.checks}
    found = []
    for name, claim in verdict.claims.items():
        about = [one for one in claim.checks if one in specs]
        rows = [_evidence_row(name, specs[one], verdict.checks[one]) for one in about]
        rows.sort(key=lambda one: one.answer == "no vote")  # those that vote first
        shown, why = sanitise_text(name), sanitise_text(claim.why)
        label = CLAIM_LABELS.get(name, shown)
        found.append(ClaimRow(shown, label, claim.answer, why, tuple(rows)))
    return tuple(found)


def _evidence_row(claim: str, spec: CheckSpec, result: CheckResult) -> EvidenceRow:
    """A check on a claim; a check may have a vote on a second claim by one of its measures."""
    second = next((one.leading for one in spec.votes if one.claim == claim and one.leading), ())
    figures = tuple(leading_figures(spec, result, second))
    reason = result.missing[0].reason if result.missing else ""
    about_another = bool(second) or spec.claim not in (None, claim)
    answer, missing = "" if about_another else result.answer, "" if figures else reason
    name, power = sanitise_text(spec.name), describe_check_power(result, claim)
    return EvidenceRow(name, spec.question, answer, figures, sanitise_text(missing), power)


def leading_figures(
    spec: CheckSpec, result: CheckResult, wanted: Sequence[str] = ()
) -> Iterator[LeadingFigure]:
    """The estimates of the leading measures: plain ones, or of attention and the random control."""
    for name in wanted or spec.leading or tuple(result.estimates)[:MOST]:
        if name in result.estimates:
            yield LeadingFigure(sanitise_text(name), spec.measure(name), result.of(name))
        for method, estimate in result.by_method(name).items():
            if method in ("attention", "random"):
                label = sanitise_text(f"{name} ({method})")
                yield LeadingFigure(label, spec.measure(name, method), estimate)


def describe_check_power(result: CheckResult, claim: str) -> str:
    """A check's power on a claim.

    >>> describe_check_power(CheckResult("undecided", "", {}), "ranks")
    'power not measured'
    """
    return sanitise_text(str(result.power.get(claim, {}).get("description", UNKNOWN)))


def describe_check_powers(result: CheckResult) -> str:
    """Its power on every claim it votes on, in one line."""
    if not result.power:
        return UNKNOWN
    return "; ".join(f"{claim}: {describe_check_power(result, claim)}" for claim in result.power)
