"""The page as a section of a model card."""

import re
from collections.abc import Iterator
from math import nan

from heedful.core.records import Estimate
from heedful.report.pages.run_html import number, short
from heedful.report.run_records import Records
from heedful.report.sections.identifiability import Identified
from heedful.report.sections.method_agreement import Methods, limits_told, nearest
from heedful.report.sections.multiverse import Choices
from heedful.report.sections.page import CheckTable, Page, page_of

# what Markdown or the HTML inside it would take for markup
MARKUP = re.compile(r"([\\`*_{}\[\]#|<>&~$])")


def to_markdown(records: Records) -> str:
    """Verdict, estimates with intervals, data and limits, as text for a model card."""
    return "\n".join(_lines(page_of(records))) + "\n"


def escaped(text: str) -> str:
    """The text as Markdown that shows it as it is, on one line.

    >>> escaped("<b>|*")
    '\\\\<b\\\\>\\\\|\\\\*'
    """
    return MARKUP.sub(r"\\\1", " ".join(text.split()))


def _lines(page: Page) -> Iterator[str]:
    verdict, _, told = page.headline.partition(": ")
    yield "## Does attention explain this model's predictions?"
    yield f"\n**{verdict.capitalize()}**: {told}\n"
    yield escaped(page.why)
    if page.audited:
        yield f"\n{escaped(page.audited.sentence)}"
    if page.degree:
        yield f"\nDegree, from shuffled attention (0) to the gradient (1): {_told(page.degree)}."
    if page.instead:
        yield f"\nInstead: {escaped(page.instead)}"
    yield "\n| claim | answer | meaning |\n| --- | --- | --- |"
    for claim in page.claims:
        yield f"| {escaped(claim.name)} | {claim.answer} | {escaped(claim.words)} |"
    yield "\n### Estimates\n"
    yield f"Means over texts, {100 * page.level:g} % intervals.\n"
    yield "| check | measure | mean | n |\n| --- | --- | --- | ---: |"
    for check in page.checks:
        yield from _rows(check)
    yield from _powers(page)
    if page.choices:
        yield from _choices(page.choices)
    for one in page.apart:
        yield f"\n### {one.question}\n\n{escaped(one.why)}"
    if page.retraining and page.retraining.sentence:
        yield f"\n{escaped(page.retraining.sentence)}"
    if page.methods:
        yield from _methods(page.methods)
    if page.identified:
        yield from _identified(page.identified)
    yield from _data(page)
    yield "\n### What this does not show\n"
    for limit in page.limits:
        yield f"- {escaped(limit)}"


def _powers(page: Page) -> Iterator[str]:
    yield "\n### How often each check is right where the truth is known\n"
    yield "| claim | check | power |\n| --- | --- | --- |"
    for claim in page.claims:
        for one in claim.bearing:
            yield f"| {escaped(claim.name)} | {escaped(one.check)} | {escaped(one.power)} |"


def _choices(choices: Choices) -> Iterator[str]:
    yield f"\n### Had other choices been made\n\n{escaped(choices.sentence)}\n"
    yield f"| choice | {' | '.join(map(escaped, choices.claims))} |"
    yield f"| --- |{' --- |' * len(choices.claims)}"
    for row in choices.rows:
        said = " | ".join(f"**{one.answer}**" if one.other else one.answer for one in row.cells)
        yield f"| {escaped(row.words)} | {said} |"


def _rows(check: CheckTable) -> Iterator[str]:
    for row in check.rows:
        role = f" ({row.role})" if row.role != "measure" else ""
        words = f"{escaped(row.words)}{role}: " if row.words else ""
        told = f"{words}{escaped(row.name)} | {_told(row.estimate)} | {row.estimate.n}"
        yield f"| {escaped(check.name)} | {told} |"
    for one in check.missing:
        yield f"| {escaped(check.name)} | no {escaped(one)} | – | – |"


def _told(estimate: Estimate) -> str:
    if estimate.n < 2 or estimate.low != estimate.low:
        return number(estimate.value)
    return f"{number(estimate.value)} \\[{number(estimate.low)}, {number(estimate.high)}\\]"


def _methods(methods: Methods) -> Iterator[str]:
    """The matrix of means; their intervals are on the page and in the records."""
    names = [one.name for one in methods.methods]
    taus = {frozenset((one.one, one.other)): one.tau.value for one in methods.pairs}
    yield "\n### Do the methods agree with each other?\n"
    yield escaped(" ".join((methods.sentence, nearest(methods), limits_told(methods))))
    if methods.refused:
        yield f"\nNo ranking from {escaped(', '.join(methods.refused))}."
    yield "\nMean Kendall's τ-b of every two methods, by absolute score:\n"
    yield f"| method | kind | texts | {' | '.join(map(escaped, names))} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(names)}"
    for one in methods.methods:
        found = (taus.get(frozenset((one.name, other)), nan) for other in names)
        row = " | ".join(map(short, found))
        yield f"| {escaped(one.name)} | {escaped(one.kind)} | {one.texts} | {row} |"


def _identified(found: Identified) -> Iterator[str]:
    """The heads with the most to spare, what that proves, and the means by layer."""
    yield "\n### What of attention can matter, and whose states does it look at?\n"
    for one in found.sentences:
        yield f"- {escaped(one)}"
    if found.sentences:
        yield f"\nWhat this proves: {escaped(found.proves)}"
        yield f"\nWhat it does not prove: {escaped(found.proves_not)}"
    heads = "without effect | keys for each dimension | states that point to their word | own part"
    yield f"\n| of | {heads} |\n| --- | --- | --- | --- | --- |"
    for layer in found.layers:
        own = (layer.share, layer.keys, layer.identified, layer.own)
        yield f"| {layer.name} | {' | '.join(map(_told, own))} |"


def _data(page: Page) -> Iterator[str]:
    yield "\n### Data and method\n"
    for group in page.facts:
        told = ", ".join(f"{escaped(name)}: {escaped(value)}" for name, value in group.rows)
        yield f"- {group.title}: {told}"
