"""The reviewer's page as Markdown, and as one HTML file that prints well and opens offline."""

from collections.abc import Iterator

from heedful.report.pages.model_card import UNMEASURED, degree_told, interval_told
from heedful.report.pages.review_content import DECISIONS, FIELDS, QUESTION, Review, review_of
from heedful.report.pages.run_html import ARROWS, number
from heedful.report.pages.run_markdown import escaped
from heedful.report.pages.self_contained_html import joined, policy, templates
from heedful.report.run_records import Records
from heedful.report.sections.page import CheckTable

BLANK = "\\_" * 30
CONDITIONS = 4  # blank lines


def review_html(records: Records, *, digest: str = "") -> str:
    """One self-contained page; every text in it is escaped by the template."""
    environment = templates()
    from markupsafe import Markup

    css = joined(("page", "review"), "css")
    environment.filters |= {"number": number}
    return environment.get_template("review.html.j2").render(
        review=review_of(records, digest=digest),
        question=QUESTION,
        decisions=DECISIONS,
        fields=FIELDS,
        conditions=CONDITIONS,
        arrows=ARROWS,
        unmeasured=UNMEASURED,
        policy=policy(css=css, js=""),
        css=Markup(css),  # noqa: S704 - ours
    )


def review_markdown(records: Records, *, digest: str = "") -> str:
    """The same as text, to be filled in by hand."""
    return "\n".join(_lines(review_of(records, digest=digest))) + "\n"


def _lines(review: Review) -> Iterator[str]:
    yield f"# Review of attention as explanation: {escaped(review.model)}\n"
    yield f"**Question.** {QUESTION}\n"
    verdict, _, told = review.headline.partition(": ")
    answer = f"{verdict.capitalize()}: {escaped(told)}"
    yield f"**Answer of the audit.** {answer} {escaped(review.why)}\n"
    if review.audited:
        yield f"{escaped(review.audited)}\n"
    yield f"**Degree.** {degree_told(review.degree, review.level)}\n"
    if review.instead:
        yield f"**Instead.** {escaped(review.instead)}\n"
    yield "## 1. Data and method\n"
    for group in review.facts:
        yield f"### {group.title}\n"
        yield from (f"- {escaped(name)}: {escaped(value)}" for name, value in group.rows)
        yield ""
    if review.made:
        yield f"{escaped(review.made)}\n"
    if review.digest:
        yield f"sha256 of the verdict that is reviewed: `{review.digest}`\n"
    yield from _results(review)
    yield "\n## 3. Limits\n"
    yield from (f"- {escaped(one)}" for one in review.limits)
    yield from _sign_off()
    yield "\n## Plan of the audit\n"
    yield from (f"    {line}" for line in review.plan.splitlines())


def _results(review: Review) -> Iterator[str]:
    yield "## 2. Results\n"
    yield "| claim | in words | found | why |\n| --- | --- | --- | --- |"
    for claim in review.claims:
        cells = (claim.name, claim.words, claim.answer, claim.why)
        yield f"| {' | '.join(map(escaped, cells))} |"
    yield f"\nFigures are means over texts with {100 * review.level:g} % intervals."
    for check, power in review.checks:
        yield from _check(check, power)


def _check(check: CheckTable, power: str) -> Iterator[str]:
    yield f"\n### {escaped(check.name)}: {escaped(check.question)}\n"
    yield f"{escaped(check.answer)}; {escaped(power)}. {escaped(check.why)}\n"
    if not check.rows:
        return
    yield "| measure | | mean | n | undefined |\n| --- | --- | --- | ---: | ---: |"
    for row in check.rows:
        role = f" ({row.role})" if row.role != "measure" else ""
        name = (
            f"{escaped(row.words)}{role}: {escaped(row.name)}" if row.words else escaped(row.name)
        )
        cells = (name, ARROWS[row.direction], interval_told(row.estimate))
        yield f"| {' | '.join(cells)} | {row.estimate.n} | {row.undefined} |"


def _sign_off() -> Iterator[str]:
    yield "\n## 4. Sign-off\n"
    for field in FIELDS:
        yield f"{field}: {BLANK}\n"
    yield "Decision:\n"
    yield from (f"- [ ] {one}" for one in DECISIONS)
    yield "\nConditions:\n"
    yield from (f"{BLANK}{BLANK}\n" for _ in range(CONDITIONS))
    yield f"Signature: {BLANK}"
