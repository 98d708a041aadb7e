"""A model card's section on attention, below a YAML block with its figures.

The block has the schema in which model cards keep evaluations (`model-index`). Every string in it
stands in double quotes on one line, so no text can end the block, begin a tag or become a number.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from pathlib import PurePath
from typing import Any

from heedful.core.errors import ShapeError
from heedful.core.records import Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.pages.section_render import (
    escape_markdown,
    format_interval,
    render_table_markdown,
)
from heedful.report.sections.claims import EvidenceRow, build_claims, leading_figures
from heedful.report.sections.provenance import list_limits
from heedful.report.sections.retrained_models import describe_models
from heedful.report.sections.verdict_summary import build_verdict_card, places_table
from heedful.results.run_records import sanitise_text

CARD_MARK = "<!-- written by heedful report --card -->"
ANSWERS = {"faithful": "**Yes.**", "unfaithful": "**No.**", "undecided": "**Not settled.**"}
USES = {
    "faithful": "Attention may be shown as a ranking of words for texts like these. It does not "
    "say which class a word speaks for, nor what words do together.",
    "unfaithful": "Do not present attention as the reason for a prediction.",
    "undecided": "Do not rely on attention as the reason for a prediction until more texts, or "
    "other ones, settle it.",
}
MANY = 1000  # more classes than this are the words of a language model
DIGITS = 6
OLDER_DEGREE = "Attention between shuffled attention (0) and the gradient (1)"
DEGREE = "Order of all words by attention, between chance (0) and a ranking by influence itself (1)"
ANSWER = "Does attention explain this model, as a ranking of words by removal?"
SOURCE = "heedful"
KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def render_model_card(verdict: Verdict, manifest: Mapping[str, Any]) -> str:
    """The block of figures and the section, from the verdict and the manifest alone."""
    section = "\n".join(_lines(verdict, manifest))
    return f"{front_matter(model_index(verdict, manifest))}\n{CARD_MARK}\n\n{section}\n"


def _lines(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[str]:
    level = manifest.get("level", 0.95)
    yield "## Attention as explanation\n"
    yield "**Question.** Does this model's attention tell which words its predictions rest on?\n"
    named = {**manifest["model"], "name": model_name(manifest)}  # no place on someone's disk
    card = build_verdict_card(verdict, {**manifest, "model": named})
    if card.chance:
        yield f"**{_shown(card.chance)}**\n"
    yield f"**Answer.** {ANSWERS[card.answer]} {_shown(f'{card.headline} {card.why}')}\n"
    if card.attention:
        yield f"{_shown(card.attention)}\n"
    if card.places:
        yield f"**Places.** {_shown(card.scale)}\n"
        yield f"{render_table_markdown(places_table(card))}\n"
    else:
        yield f"**Degree.** {_shown(describe_degree(verdict, level))}\n"
    if card.flips:
        yield f"**Predictions that change.** {_shown(card.flips)}\n"
    if card.scope:
        yield f"{_shown(card.scope)}\n"
    use = (USES[card.answer], _shown(card.instead), _shown(card.command))
    yield f"**What to use.** {' '.join(filter(None, use))}\n"
    if card.score:
        yield f"**The model.** {_shown(card.score)}\n"
    yield f"**Texts.** {_shown(card.texts)}\n"
    yield "### What was found\n"
    yield "| claim | found | in words | rests on |\n| --- | --- | --- | --- |"
    for claim in build_claims(verdict, manifest):
        found = "; ".join(_format_evidence(one) for one in claim.evidence) or "–"
        yield f"| {_shown(claim.name)} | {_shown(claim.answer)} | {_shown(claim.words)} | {found} |"
    yield f"\nFigures are means over texts with {100 * level:g} % intervals.\n"
    yield "### Data and method\n"
    yield from (f"- {line}" for line in _data(manifest))
    yield "\n### Limits\n"
    yield from (f"- {_shown(line)}" for line in list_limits(verdict, manifest))


def _shown(text: str) -> str:
    return escape_markdown(sanitise_text(text))


def _format_evidence(one: EvidenceRow) -> str:
    figures = ", ".join(
        f"{figure.measure.label or figure.name} {format_interval(figure.estimate)}"
        for figure in one.figures
    )
    found = figures or one.missing
    return _shown(f"{one.check}: {found}" if found else one.check)


def _alone(estimate: Estimate) -> bool:
    """Whether it has no interval."""
    return estimate.n < 2 or isnan(estimate.low)


def describe_degree(verdict: Verdict, level: float) -> str:
    """The degree in a sentence, or that there is none."""
    degree = verdict.degree
    if degree is None or not degree.estimate.n or isnan(degree.estimate.value):
        return "Not measured: the influence of words was not examined, or is undefined."
    scale = DEGREE if degree.of == "order" else OLDER_DEGREE
    found = degree.estimate
    ends = "" if _alone(found) else f"{100 * level:g} % interval, "
    return f"{scale}: {format_interval(found)} ({ends}n = {found.n} texts)."


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


def model_index(verdict: Verdict, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The block for the top of a card: one result, a metric for each leading figure.

    A metric's interval, level and number of texts stand in its `args`.
    """
    many = len(manifest.get("labels", ())) > MANY
    kind, task = (
        ("text-generation", "Text generation")
        if many
        else ("text-classification", "Text classification")
    )
    result = {
        "task": {"type": kind, "name": task},
        "dataset": _dataset(manifest["data"]),
        "metrics": list(_metrics(verdict, manifest)),
    }
    return {
        "tags": ["attention", "explainability", SOURCE],
        "model-index": [{"name": model_name(manifest), "results": [result]}],
    }


def model_name(manifest: Mapping[str, Any]) -> str:
    """The model as the run calls it; of a place on someone's disk only the last part.

    >>> model_name({"model": {"name": "/home/me/models/mine"}})
    'mine'
    """
    name = str(manifest["model"]["name"])
    return sanitise_text(PurePath(name).name or name if name.startswith(("/", "~", ".")) else name)


def _dataset(data: Mapping[str, Any]) -> dict[str, Any]:
    name, split = (sanitise_text(str(data[key])) for key in ("name", "split"))
    kind, config = name, ""
    if name.startswith("hf:"):
        kind, _, config = name.removeprefix("hf:").partition("@")
    args = {"sha256": sanitise_text(str(data.get("sha256") or "")), "texts": data.get("texts")}
    named = {"type": kind, "name": name, **({"config": config} if config else {})}
    return {**named, "split": split, "args": args}


def _metrics(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    level = manifest.get("level", 0.95)
    version = sanitise_text(str((manifest.get("versions") or {}).get("heedful", "")))
    answer, args = sanitise_text(verdict.answer), {"version": version}
    yield {"type": f"{SOURCE}_answer", "value": answer, "name": ANSWER, "args": args}
    for claim, found in verdict.claims.items():
        kind, name = sanitise_text(f"{SOURCE}_claim_{claim}"), sanitise_text(f"Claim: {claim}")
        yield {"type": kind, "value": sanitise_text(found.answer), "name": name}
    if verdict.degree is not None and not isnan(verdict.degree.estimate.value):
        label = DEGREE if verdict.degree.of == "order" else OLDER_DEGREE
        yield _metric(f"{SOURCE}_degree", label, verdict.degree.estimate, level)
    yield from _verdict_metrics(verdict, level)
    for check, result in verdict.checks.items():
        spec = find_spec(check, manifest)
        for one in leading_figures(spec, result):
            if not isnan(one.estimate.value):
                name = f"{check}.{one.name}"
                label = f"{one.measure.label} ({name})" if one.measure.label else name
                kind = f"{SOURCE}_{check}_{one.name}".replace(" (", "_").replace(")", "")
                yield _metric(sanitise_text(kind), sanitise_text(label), one.estimate, level)


def _verdict_metrics(verdict: Verdict, level: float) -> Iterator[dict[str, Any]]:
    """Places, flips and the model's own score, where the run has them."""
    found = {f"place_{name}": (f"Place: {name}", one) for name, one in verdict.places.items()}
    if flips := verdict.flips:
        words = "Predictions that change without 20 % of the words"
        found["flips_attention"] = (f"{words}, by attention", flips.attention)
        found["flips_random"] = (f"{words}, at random", flips.random)
    if verdict.score is not None:
        found["accuracy"] = ("Accuracy on the audited texts", verdict.score.accuracy)
    for name, (words, estimate) in found.items():
        if estimate.n and not isnan(estimate.value):
            yield _metric(sanitise_text(f"{SOURCE}_{name}"), sanitise_text(words), estimate, level)


def _metric(kind: str, name: str, estimate: Estimate, level: float) -> dict[str, Any]:
    args: dict[str, Any] = {"n": estimate.n}
    if not _alone(estimate):
        ends = {"low": _rounded(estimate.low), "high": _rounded(estimate.high)}
        args = {**ends, "level": level, **args}
    return {"type": kind, "value": _rounded(estimate.value), "name": name, "args": args}


def _rounded(value: float) -> float:
    return round(value, DIGITS) + 0.0


def front_matter(values: Mapping[str, Any]) -> str:
    """The block at the top of a model card, between its two lines of dashes.

    >>> print(front_matter({"tags": ["a: b"], "value": 1e-7}), end="")
    ---
    tags:
    - "a: b"
    value: 1.0e-07
    ---
    """
    return "\n".join(("---", *_block(values, 0), "---")) + "\n"


def _block(value: Any, depth: int) -> Iterator[str]:
    """The lines of a table or a list; the items of a list are as deep as their key."""
    space = "  " * depth
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not KEY.fullmatch(key):
                raise ShapeError(f"A key of the block must be a plain name, not {key!r}.")
            if _nested(item):
                yield f"{space}{key}:"
                yield from _block(item, depth + isinstance(item, Mapping))
            else:
                yield f"{space}{key}: {_scalar(item)}"
        return
    for item in value:
        first, *rest = _block(item, depth + 1) if _nested(item) else (_scalar(item),)
        yield f"{space}- {first.strip()}"
        yield from rest


def _nested(value: Any) -> bool:
    return bool(value) and isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return f'"{"".join(map(_sign, value))}"'
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, int | Mapping | Sequence):  # empty ones
        return json.dumps(value)  # true, null, {} and [] are the same in JSON
    raise ShapeError(f"The block holds text, numbers, lists and tables, not {value!r}.")


def _sign(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    code = ord(sign)
    if 0xD800 <= code <= 0xDFFF:  # half a sign, which no file can hold
        return "\N{REPLACEMENT CHARACTER}"
    wide = 2 if code < 0x100 else 4 if code < 0x10000 else 8
    return f"\\{dict(zip((2, 4, 8), 'xuU', strict=True))[wide]}{code:0{wide}x}"


def _number(value: float) -> str:
    """Older readers take 1e-7 for text: a number has a point."""
    if not isfinite(value):
        return "null"
    text = repr(value)
    whole, e, power = text.partition("e")
    return f"{whole if '.' in whole else f'{whole}.0'}{e}{power}"
