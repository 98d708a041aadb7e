"""Validation of one row of any source: a text, a class name, optional annotations of tokens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from heedful.data.labels import is_encodable, is_missing, parse_label


@dataclass(frozen=True, slots=True)
class BadLine:
    """A row that cannot be used, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A valid row that does not belong to the data set as it is read, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ValidRow:
    """A row that can be used; its label is a class name."""

    text: str
    label: str
    tokens: tuple[str, ...] | None
    rationale: tuple[int, ...] | None
    pair: str | None = None
    word_scores: tuple[float, ...] | None = None
    candidates: tuple[str, ...] | None = None


def read_cluster(raw: Mapping[str, object], column: str | None) -> str | None:
    """The id of a row's cluster, a name or a whole number; None where the cell holds neither.

    >>> read_cluster({"document": 7}, "document")
    '7'
    """
    return None if column is None else parse_label(raw.get(column))


class _BadCell(Exception):
    """Carries the reason of a bad cell to read_row."""


def read_row(
    raw: Mapping[str, object], columns: Mapping[str, str], *, labelled: bool = True
) -> ValidRow | BadLine:
    """Validate one row; `columns` maps fields to columns.

    A premise and a hypothesis, or a paragraph and a question, are the two texts of a pair; messages
    are a chat, kept as JSON. The rationale of a paragraph in sentences may index sentences.
    """
    cell = {field: raw.get(column) for field, column in columns.items()}
    try:
        text, pair = _texts(cell)
        label = _label(cell.get("label")) if labelled else ""
        tokens = _tokens(cell.get("tokens"))
        rationale, scores = cell.get("rationale"), cell.get("word_scores")
        candidates = _candidates(cell.get("candidates"), label if labelled else None)
        if is_missing(rationale) and is_missing(scores):
            return ValidRow(text, label, tokens, None, pair, None, candidates)
        # without tokens, words at white space are counted: models tokenize differently
        count = len(text.split()) if tokens is None else len(tokens)
        units = _sentences(cell) if tokens is None else None
        marked, numbers = _rationale(rationale, count, units), _word_scores(scores, count)
        return ValidRow(text, label, tokens, marked, pair, numbers, candidates)
    except _BadCell as bad:
        return BadLine(str(bad))


def _texts(cell: Mapping[str, object]) -> tuple[str, str | None]:
    def present(*fields: str) -> bool:
        return not any(is_missing(cell.get(field)) for field in fields)

    if present("text"):
        return _text(cell["text"]), None
    if present("premise", "hypothesis"):
        return _text(cell["premise"]), _text(cell["hypothesis"])
    if present("paragraph", "question"):
        paragraph = cell["paragraph"]
        joined = paragraph if isinstance(paragraph, str) else " ".join(_parse_list(paragraph))
        return _text(joined), _text(cell["question"])
    if present("messages"):
        turns = _as_list(cell["messages"], "bad messages")
        return _text(json.dumps(turns, ensure_ascii=False)), None
    raise _BadCell("no text")


def _parse_list(value: object) -> list[str]:
    return [_text(sentence) for sentence in _as_list(value, "no text")]


def _sentences(cell: Mapping[str, object]) -> list[int] | None:
    """The number of tokens of each sentence, where the text is a list of sentences."""
    value = cell.get("paragraph")
    if not is_missing(cell.get("text")) or is_missing(value) or isinstance(value, str):
        return None
    return [len(sentence.split()) for sentence in _parse_list(value)]


def _candidates(value: object, label: str | None) -> tuple[str, ...] | None:
    """The names of the candidate classes; the label must be one of them."""
    if is_missing(value):
        return None
    names = [parse_label(one) for one in _as_list(value, "bad candidates")]
    known = tuple(name for name in names if name is not None)
    if not known or len(known) < len(names):
        raise _BadCell("bad candidates")
    if label is not None and label not in known:
        raise _BadCell("label not among candidates")
    return known


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _BadCell("no text")
    if not is_encodable(value):
        raise _BadCell("not UTF-8")
    return value


def _label(value: object) -> str:
    if is_missing(value):
        raise _BadCell("no label")
    name = parse_label(value)
    if name is None:
        raise _BadCell("bad label")
    return name


def _tokens(value: object) -> tuple[str, ...] | None:
    if is_missing(value):
        return None
    tokens = _as_list(value, "bad tokens")
    words = tuple(token for token in tokens if isinstance(token, str) and is_encodable(token))
    if not words or len(words) < len(tokens):
        raise _BadCell("bad tokens")
    return words


def _rationale(value: object, bound: int, sentences: list[int] | None) -> tuple[int, ...] | None:
    """Token indices, sorted; `[[2, 4]]` is the span of tokens 2 and 3, `[2, 4]` two tokens.

    If the lengths of `sentences` are given, indices count sentences.
    """
    if is_missing(value):
        return None
    marked: set[int] = set()
    starts = range(bound + 1) if sentences is None else [*accumulate(sentences, initial=0)]
    for part in _as_list(value, "bad rationale"):
        start, end = _span(part)
        if not 0 <= start < end < len(starts):
            raise _BadCell("bad rationale")
        marked.update(range(starts[start], starts[end]))
    return tuple(sorted(marked))


def _span(part: Any) -> tuple[int, int]:
    if _is_index(part):
        return int(part), int(part) + 1
    ends = _as_list(part, "bad rationale")
    if len(ends) != 2 or not all(map(_is_index, ends)):
        raise _BadCell("bad rationale")
    return int(ends[0]), int(ends[1])


def _word_scores(value: object, count: int) -> tuple[float, ...] | None:
    """One number per token."""
    if is_missing(value):
        return None
    scores = _as_list(value, "bad word_scores")
    if len(scores) != count or not all(map(_is_number, scores)):
        raise _BadCell("bad word_scores")
    return tuple(map(float, scores))


def _is_number(value: object) -> bool:
    """Whether a value is a finite number; a whole one must have 64 bits, as in any other tool."""
    if isinstance(value, int):
        return not isinstance(value, bool) and -(2**63) <= value < 2**64
    return isinstance(value, float | np.number) and bool(np.isfinite(value))


def _is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _as_list(value: Any, reason: str) -> list[Any]:
    """Convert an array, or a JSON list in a string (as in a CSV cell), to a list."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _BadCell(reason) from None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise _BadCell(reason)
    return list(value)
