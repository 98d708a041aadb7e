"""The page as a section of a model card."""

import re
from collections.abc import Iterator
from math import nan

from heedful.core.records import Estimate
from heedful.report.pages.run_html import three_decimals, two_decimals
from heedful.report.pages.section_render import render_section_markdown
from heedful.report.sections.identifiability import IdentifiabilityView
from heedful.report.sections.method_agreement import (
    MethodAgreement,
    describe_length_limits,
    describe_nearest,
)
from heedful.report.sections.multiverse import Choices
from heedful.report.sections.page import CheckTable, Page, build_page
from heedful.results.run_records import RunRecords

# what Markdown or the HTML inside it would take for markup
MARKUP = re.compile(r"([\\`*_{}\[\]#|<>&~$])")


def render_markdown(records: RunRecords) -> str:
    """Verdict, estimates with intervals, data and limits, as text for a model card."""
    return "\n".join(_lines(build_page(records))) + "\n"


def escape_markdown(text: str) -> str:
    """The text as Markdown that shows it as it is, on one line.

    >>> escape_markdown("<b>|*")
    '\\\\<b\\\\>\\\\|\\\\*'
    """
    return MARKUP.sub(r"\\\1", " ".join(text.split()))


def _lines(page: Page) -> Iterator[str]:
    verdict, _, headline = page.headline.partition(": ")
    yield "## Does attention explain this model's predictions?"
    yield f"\n**{verdict.capitalize()}**: {headline}\n"
    yield escape_markdown(page.why)
    if page.audited:
        yield f"\n{escape_markdown(page.audited.sentence)}"
    if page.degree:
        degree = format_interval(page.degree)
        yield f"\nDegree, from shuffled attention (0) to the gradient (1): {degree}."
    if page.instead:
        yield f"\nInstead: {escape_markdown(page.instead)}"
    yield "\n| claim | answer | meaning |\n| --- | --- | --- |"
    for claim in page.claims:
        yield f"| {escape_markdown(claim.name)} | {claim.answer} | {escape_markdown(claim.words)} |"
    yield "\n### Estimates\n"
    yield f"Means over texts, {100 * page.level:g} % intervals.\n"
    yield "| check | measure | mean | n |\n| --- | --- | --- | ---: |"
    for check in page.checks:
        yield from _rows(check)
    yield from _powers(page)
    if page.choices:
        yield from _choices(page.choices)
    for section in page.sections:
        yield "\n" + "\n\n".join(render_section_markdown(section, depth=3))
    for one in page.apart:
        yield f"\n### {one.question}\n\n{escape_markdown(one.why)}"
    if page.retraining and page.retraining.sentence:
        yield f"\n{escape_markdown(page.retraining.sentence)}"
    if page.methods:
        yield from _methods(page.methods)
    if page.identified:
        yield from _identified(page.identified)
    yield from _data(page)
    yield "\n### What this does not show\n"
    for limit in page.limits:
        yield f"- {escape_markdown(limit)}"


def _powers(page: Page) -> Iterator[str]:
    yield "\n### How often each check is right where the truth is known\n"
    yield "| claim | check | power |\n| --- | --- | --- |"
    for claim in page.claims:
        for one in claim.evidence:
            cells = map(escape_markdown, (claim.name, one.check, one.power))
            yield f"| {' | '.join(cells)} |"


def _choices(choices: Choices) -> Iterator[str]:
    yield f"\n### Had other choices been made\n\n{escape_markdown(choices.sentence)}\n"
    yield f"| choice | {' | '.join(map(escape_markdown, choices.claims))} |"
    yield f"| --- |{' --- |' * len(choices.claims)}"
    for row in choices.rows:
        said = " | ".join(f"**{one.answer}**" if one.other else one.answer for one in row.cells)
        yield f"| {escape_markdown(row.words)} | {said} |"


def _rows(check: CheckTable) -> Iterator[str]:
    for row in check.rows:
        role = f" ({row.role})" if row.role != "measure" else ""
        cells = (check.name, f"{row.words}{role}: {row.name}" if row.words else row.name)
        named = " | ".join(map(escape_markdown, cells))
        yield f"| {named} | {format_interval(row.estimate)} | {row.estimate.n} |"
    for one in check.missing:
        yield f"| {escape_markdown(check.name)} | no {escape_markdown(one)} | – | – |"


def format_interval(estimate: Estimate) -> str:
    """An estimate with its interval, as Markdown."""
    if estimate.n < 2 or estimate.low != estimate.low:
        return three_decimals(estimate.value)
    low, high = three_decimals(estimate.low), three_decimals(estimate.high)
    return f"{three_decimals(estimate.value)} \\[{low}, {high}\\]"


def _methods(methods: MethodAgreement) -> Iterator[str]:
    """The matrix of means; their intervals are on the page and in the records."""
    names = [one.name for one in methods.methods]
    taus = {frozenset((one.one, one.other)): one.tau.value for one in methods.pairs}
    yield "\n### Do the methods agree with each other?\n"
    yield escape_markdown(
        " ".join((methods.sentence, describe_nearest(methods), describe_length_limits(methods)))
    )
    if methods.refused:
        yield f"\nNo ranking from {escape_markdown(', '.join(methods.refused))}."
    yield "\nMean Kendall's τ-b of every two methods, by absolute score:\n"
    yield f"| method | kind | texts | {' | '.join(map(escape_markdown, names))} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(names)}"
    for one in methods.methods:
        found = (taus.get(frozenset((one.name, other)), nan) for other in names)
        row = " | ".join(map(two_decimals, found))
        yield f"| {escape_markdown(one.name)} | {escape_markdown(one.kind)} | {one.texts} | {row} |"


def _identified(found: IdentifiabilityView) -> Iterator[str]:
    """The heads with the most to spare, what that proves, and the means by layer."""
    yield "\n### What of attention can matter, and whose states does it look at?\n"
    for one in found.sentences:
        yield f"- {escape_markdown(one)}"
    if found.sentences:
        yield f"\nWhat this proves: {escape_markdown(found.proves)}"
        yield f"\nWhat it does not prove: {escape_markdown(found.proves_not)}"
    heads = "without effect | keys for each dimension | states that point to their word | own part"
    yield f"\n| of | {heads} |\n| --- | --- | --- | --- | --- |"
    for layer in found.layers:
        own = (layer.share, layer.keys, layer.identified, layer.own)
        yield f"| {layer.name} | {' | '.join(map(format_interval, own))} |"


def _data(page: Page) -> Iterator[str]:
    yield "\n### Data and method\n"
    for group in page.facts:
        facts = ", ".join(
            f"{escape_markdown(name)}: {escape_markdown(value)}" for name, value in group.rows
        )
        yield f"- {group.title}: {facts}"
