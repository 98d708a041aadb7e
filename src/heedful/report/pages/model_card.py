"""A model card's section on attention, for people who were not there; and its block of figures."""

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any

from heedful.core.records import Estimate, Verdict
from heedful.report.pages.model_index import model_index, model_name
from heedful.report.pages.section_render import escape_markdown, format_interval
from heedful.report.pages.yaml_block import front_matter
from heedful.report.sections.claims import ClaimRow, EvidenceRow, build_claims
from heedful.report.sections.provenance import list_limits
from heedful.report.sections.retrained_models import describe_models
from heedful.results.audited_attention import read_audited_attention
from heedful.results.run_records import sanitise_text

CARD_MARK = "<!-- written by heedful report --card -->"
ANSWERS = {
    "faithful": "**Yes.** By and large, words with more attention are those the prediction rests "
    "on.",
    "unfaithful": "**No.** Attention does not tell which words the prediction rests on.",
    "undecided": "**Not settled.** These texts do not tell whether attention names the words the "
    "prediction rests on.",
}
USES = {
    "faithful": "Attention may be shown as a ranking of words for texts like these. It does not "
    "say why a word matters, nor what words do together.",
    "unfaithful": "Do not show attention as the reason of a prediction. None of the methods that "
    "were tried is certain to do better.",
    "undecided": "Do not rely on attention as the reason of a prediction until more texts, or "
    "other ones, settle it.",
}
UNMEASURED = "Not measured: agreement with deletion was not examined, or is undefined."
INSTEAD = (
    "Do not show attention as the reason of a prediction. Of the methods that were tried, one "
    "ranks words certainly more as deleting them does:"
)


def render_model_card(verdict: Verdict, manifest: Mapping[str, Any]) -> str:
    """The block of figures and the section, from the verdict and the manifest alone."""
    section = "\n".join(_lines(verdict, manifest))
    return f"{front_matter(model_index(verdict, manifest))}\n{CARD_MARK}\n\n{section}\n"


def _lines(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[str]:
    level = manifest.get("level", 0.95)
    yield "## Attention as explanation\n"
    yield "**Question.** Does this model's attention tell which words its predictions rest on?\n"
    answer = ANSWERS.get(verdict.answer, _shown(verdict.answer))
    yield f"**Answer.** {answer} {_shown(verdict.why)}\n"
    if (audited := read_audited_attention(manifest)) is not None:
        yield f"{_shown(audited.sentence)}\n"
    degree = verdict.degree.estimate if verdict.degree else None
    yield f"**Degree.** {describe_degree(degree, level)}\n"
    yield f"**What to use.** {describe_use(verdict)}\n"
    yield "### What was found\n"
    yield "| claim | found | in words | rests on |\n| --- | --- | --- | --- |"
    for claim in build_claims(verdict, manifest):
        found = "; ".join(_format_evidence(one) for one in claim.evidence) or "–"
        yield f"| {_shown(claim.name)} | {_shown(claim.answer)} | {_words(claim)} | {found} |"
    yield f"\nFigures are means over texts with {100 * level:g} % intervals.\n"
    yield "### Data and method\n"
    yield from (f"- {line}" for line in _data(manifest))
    yield "\n### Limits\n"
    yield from (f"- {_shown(line)}" for line in list_limits(verdict, manifest))


def _shown(text: str) -> str:
    return escape_markdown(sanitise_text(text))


def _words(claim: ClaimRow) -> str:
    return _shown(claim.words)


def _format_evidence(one: EvidenceRow) -> str:
    figures = [
        f"{_shown(figure.measure.label or figure.name)} {format_interval(figure.estimate)}"
        for figure in one.figures
    ]
    if figures:
        return f"{_shown(one.check)}: {', '.join(figures)}"
    return _shown(f"{one.check}: {one.missing}" if one.missing else one.check)


def describe_degree(degree: Estimate | None, level: float) -> str:
    """The degree in a sentence, or that there is none."""
    if degree is None or not degree.n or isnan(degree.value):
        return UNMEASURED
    ends = f"{100 * level:g} % interval, " if degree.n > 1 and not isnan(degree.low) else ""
    return (
        "On a scale from attention shuffled among the words (0) to the gradient (1), by agreement "
        f"with what deleting words does, it stands at {format_interval(degree)} "
        f"({ends}n = {degree.n} texts)."
    )


def describe_use(verdict: Verdict) -> str:
    """What may be shown to people, given this verdict."""
    if verdict.answer == "unfaithful" and verdict.instead is not None:
        return f"{INSTEAD} {_shown(str(verdict.instead))}"
    return USES.get(verdict.answer, USES["undecided"])


def _data(manifest: Mapping[str, Any]) -> Iterator[str]:
    data = manifest["data"]
    short, cut = manifest.get("too_short", 0), manifest.get("truncated", 0)
    texts = int(data["texts"]) - short
    yield (
        f"Data: {_shown(str(data['name']))}, split {_shown(str(data['split']))}, sha256 "
        f"`{_digest(data.get('sha256'))}`"
    )
    left = f"{short} too short and left out, {cut} cut to what the model reads"
    yield f"Texts: {texts} audited, {left}"
    yield f"Rows: {_shown(str(data.get('bad_rows', 'not recorded')))}"
    if cleaned := [str(data[key]) for key in ("cleaning", "left_out") if data.get(key)]:
        yield f"Cleaning: {_shown('; '.join(cleaned))}"
    model = manifest["model"]
    family = f" ({_shown(str(model['family']))})" if model.get("family") else ""
    yield f"Model: {_shown(model_name(manifest))}{family}, sha256 `{_digest(model.get('sha256'))}`"
    versions = ", ".join(f"{name} {one}" for name, one in (manifest.get("versions") or {}).items())
    yield f"Method: {_shown(str(manifest.get('interval', '')))}; seed {manifest.get('seed')}"
    yield f"Versions: {_shown(versions)}"
    if made := describe_models(manifest):
        yield _shown(made)


def _digest(value: Any) -> str:
    """A fingerprint as it may stand between backticks."""
    return "".join(sign for sign in str(value or "none") if sign.isalnum() or sign in "-._:")
