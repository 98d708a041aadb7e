"""The reviewer's page as Markdown, and as one HTML file that prints well and opens offline."""

from collections.abc import Iterator

from heedful.report.pages.model_card import UNMEASURED, describe_degree
from heedful.report.pages.review_content import DECISIONS, FIELDS, QUESTION, Review, build_review
from heedful.report.pages.section_render import escape_markdown, format_interval, three_decimals
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.report.sections.check_measures import ARROWS, CheckTable
from heedful.results.run_records import RunRecords

BLANK = "\\_" * 30
CONDITIONS = 4  # blank lines


def render_review_html(records: RunRecords, *, digest: str = "") -> str:
    """One self-contained page; every text in it is escaped by the template."""
    environment = template_environment()
    from markupsafe import Markup

    css = join_assets(("page", "review"), "css")
    environment.filters |= {"number": three_decimals}
    return environment.get_template("review.html.j2").render(
        review=build_review(records, digest=digest),
        question=QUESTION,
        decisions=DECISIONS,
        fields=FIELDS,
        conditions=CONDITIONS,
        arrows=ARROWS,
        unmeasured=UNMEASURED,
        policy=policy(css=css, js=""),
        css=Markup(css),  # noqa: S704 - ours
    )


def render_review_markdown(records: RunRecords, *, digest: str = "") -> str:
    """The same as text, to be filled in by hand."""
    return "\n".join(_lines(build_review(records, digest=digest))) + "\n"


def _lines(review: Review) -> Iterator[str]:
    yield f"# Review of attention as explanation: {escape_markdown(review.model)}\n"
    yield f"**Question.** {QUESTION}\n"
    verdict, _, headline = review.headline.partition(": ")
    answer = f"{verdict.capitalize()}: {escape_markdown(headline)}"
    yield f"**Answer of the audit.** {answer} {escape_markdown(review.why)}\n"
    if review.audited:
        yield f"{escape_markdown(review.audited)}\n"
    yield f"**Degree.** {describe_degree(review.degree, review.level)}\n"
    if review.instead:
        yield f"**Instead.** {escape_markdown(review.instead)}\n"
    yield "## 1. Data and method\n"
    for group in review.facts:
        yield f"### {group.title}\n"
        yield from (
            f"- {escape_markdown(name)}: {escape_markdown(value)}" for name, value in group.rows
        )
        yield ""
    if review.made:
        yield f"{escape_markdown(review.made)}\n"
    if review.digest:
        yield f"sha256 of the verdict that is reviewed: `{review.digest}`\n"
    yield from _results(review)
    yield "\n## 3. Limits\n"
    yield from (f"- {escape_markdown(one)}" for one in review.limits)
    yield from _sign_off()
    yield "\n## Plan of the audit\n"
    yield from (f"    {line}" for line in review.plan.splitlines())


def _results(review: Review) -> Iterator[str]:
    yield "## 2. Results\n"
    yield "| claim | in words | found | why |\n| --- | --- | --- | --- |"
    for claim in review.claims:
        cells = (claim.name, claim.words, claim.answer, claim.why)
        yield f"| {' | '.join(map(escape_markdown, cells))} |"
    yield f"\nFigures are means over texts with {100 * review.level:g} % intervals."
    for check, power in review.checks:
        yield from _check(check, power)


def _check(check: CheckTable, power: str) -> Iterator[str]:
    yield f"\n### {escape_markdown(check.name)}: {escape_markdown(check.question)}\n"
    answer, said, why = map(escape_markdown, (check.answer, power, check.why))
    yield f"{answer}; {said}. {why}\n"
    if not check.rows:
        return
    yield "| measure | | mean | n | undefined |\n| --- | --- | --- | ---: | ---: |"
    for row in check.rows:
        role = f" ({row.role})" if row.role != "measure" else ""
        name = (
            f"{escape_markdown(row.words)}{role}: {escape_markdown(row.name)}"
            if row.words
            else escape_markdown(row.name)
        )
        cells = (name, ARROWS[row.direction], format_interval(row.estimate))
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
