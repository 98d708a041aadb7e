"""What a reviewer has to see before signing: a page that prints well, as HTML and as Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from heedful.checks.spec import group_missing
from heedful.core.records import CheckResult, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.pages.model_card import describe_degree
from heedful.report.pages.section_page import Heading, render_page_html, render_page_markdown
from heedful.report.sections.check_measures import build_measure_rows
from heedful.report.sections.claims import build_claims, describe_check_powers
from heedful.report.sections.provenance import build_facts, list_limits, sanitise_lines
from heedful.report.sections.retrained_models import describe_models
from heedful.report.sections.verdict_summary import build_verdict_card
from heedful.results.document import Cell, Section, Table, format_estimate
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
CONDITIONS = 4  # blank lines
BLANK = "\\_" * 30


def render_review_html(records: RunRecords, *, digest: str = "") -> str:
    """One self-contained page; `digest` names the verdict that is signed for."""
    form = {"decisions": DECISIONS, "fields": FIELDS, "conditions": CONDITIONS}
    return render_page_html(
        _heading(records),
        build_review(records, digest=digest),
        kind="review",
        styles=("review",),
        template="review.html.j2",
        script=False,
        plan=sanitise_lines(records.plan),
        **form,
    )


def render_review_markdown(records: RunRecords, *, digest: str = "") -> str:
    """The same as text, to be filled in by hand."""
    page = render_page_markdown(_heading(records), build_review(records, digest=digest))
    plan = "\n".join(f"    {line}" for line in sanitise_lines(records.plan).splitlines())
    decisions = "\n".join(f"- [ ] {one}" for one in DECISIONS)
    fields = (f"{field}: {BLANK}" for field in FIELDS)
    sign_off = ("## 4. Sign-off", *fields, "Decision:", decisions)
    sign_off += ("Conditions:", *[BLANK + BLANK] * CONDITIONS, f"Signature: {BLANK}")
    return "\n\n".join((page.rstrip(), *sign_off, "## Plan of the audit", plan)) + "\n"


def _heading(records: RunRecords) -> Heading:
    model = sanitise_text(str(records.manifest["model"]["name"]))
    above = "Review of attention as explanation"
    return Heading(title=f"{above}: {model}", above=above, name=model)


def build_review(records: RunRecords, *, digest: str = "") -> tuple[Section, ...]:
    """Question and answer, data and method, results, and limits."""
    verdict, manifest = records.verdict, records.manifest
    limits = (*list_limits(verdict, manifest), *_gaps(verdict))
    found = _question(verdict, manifest), _method(verdict, manifest, digest)
    return (*found, _results(verdict, manifest), Section("limits", "3. Limits", points=limits))


def _question(verdict: Verdict, manifest: Mapping[str, Any]) -> Section:
    card = build_verdict_card(verdict, manifest)
    rows = {
        "Model at chance": card.chance,
        "Question": QUESTION,
        "Answer of the audit": f"{card.headline} ({card.answer})",
        "Places": card.scale if card.places else "",
        **{f"Place: {one.name}": format_estimate(one.estimate) for one in card.places},
        "Degree": "" if card.places else describe_degree(verdict, card.level),
        "Predictions that change": card.flips,
        "Reason": card.why,
        "Attention": card.attention,
        "What is answered": card.scope,
        "Instead": " ".join(filter(None, (card.instead, card.command))),
        "Model": card.score,
        "Texts": card.texts,
    }
    shown = tuple((name, sanitise_text(text)) for name, text in rows.items() if text)
    return Section("question", "Question and answer", tables=(Table(("", ""), shown),))


def _method(verdict: Verdict, manifest: Mapping[str, Any], digest: str) -> Section:
    """All facts but the cost, with the checks that were run."""
    checks = ("checks", sanitise_text(", ".join(verdict.checks)))
    # a language model has a class for every token, too many for a page
    labels = list(manifest.get("labels", ()))
    if len(labels) > MOST_LABELS:
        labels = [*labels[:MOST_LABELS], f"and {len(labels) - MOST_LABELS} more"]
    facts = build_facts({**manifest, "labels": labels})
    tables = tuple(
        Table(("", ""), (checks, *rows) if title == "Method" else rows, title)
        for title, rows in facts.items()
        if not title.startswith("Cost")
    )
    signed = f"sha256 of the verdict that is reviewed: {digest}" if digest else ""
    words = tuple(filter(None, (describe_models(manifest), signed)))
    return Section("method", "1. Data and method", words, tables)


def _results(verdict: Verdict, manifest: Mapping[str, Any]) -> Section:
    claims = build_claims(verdict, manifest)
    rows = tuple((one.name, one.words, Cell(answer=one.answer), one.why) for one in claims)
    words = (
        f"Figures below are means over texts with {100 * manifest.get('level', 0.95):g} % "
        "intervals. ↑ higher, ↓ lower values speak for attention."
    )
    table = Table(("claim", "in words", "found", "why"), rows)
    parts = tuple(_check(name, one, manifest) for name, one in verdict.checks.items())
    return Section("results", "2. Results", (words,), (table,), parts=parts)


def _check(name: str, result: CheckResult, manifest: Mapping[str, Any]) -> Section:
    spec, shown = find_spec(name, manifest), sanitise_text(name)
    rows = tuple(
        (one.label, one.cell(one.estimate), str(one.estimate.n), str(one.undefined))
        for one in build_measure_rows(spec, result)
    )
    return Section(
        f"check-{shown}",
        f"{shown}: {spec.question}",
        (f"{describe_check_powers(result)}. {sanitise_text(result.why)}",),
        (Table(("measure", "mean", "n", "undefined"), rows),) if rows else (),
        answer=result.answer,
    )


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
