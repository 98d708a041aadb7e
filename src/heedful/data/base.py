"""A data set that is read as a stream, and what it is read from."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from heedful.core.errors import ConfigError, DataError
from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.data.fields import columns_of
from heedful.data.labels import label_finder, sort_labels
from heedful.data.rows import BadLine, read_row
from heedful.data.scan import BadRows, Scan

DEV = ("dev", "validation", "valid", "val")

corpora = Registry("corpus")
"""Corpora by name (`sample:movies`, `synthetic:needle`); a part is a `Corpus`."""

Numbered = tuple[int, Mapping[str, object] | BadLine]


@runtime_checkable
class Source(Protocol):
    """Rows with their line numbers; iterating again reads again, so nothing need be kept."""

    @property
    def name(self) -> str:
        """What the user called it."""
        ...

    def sha256(self) -> str:
        """Hex digest of the file's bytes, or of the rows where there is no file of its own."""
        ...

    def __iter__(self) -> Iterator[Numbered]: ...


@runtime_checkable
class Corpus(Protocol):
    """A registered corpus: its splits, and a source for each."""

    @property
    def splits(self) -> tuple[str, ...]: ...

    def __call__(self, split: str) -> Source: ...


def pick_split(split: str, available: Iterable[str], *, name: str) -> str:
    """The available split that was asked for; dev, validation, valid and val are one."""
    have = tuple(available)
    same: tuple[str, ...] = DEV if split in DEV else ()
    for wanted in (split, *same):
        if wanted in have:
            return wanted
    raise DataError(
        f"{name} has no split {split!r}. It has: {', '.join(have) or 'none'}. "
        "Choose one of these with --split."
    )


def rows_sha256(rows: Iterable[Numbered]) -> str:
    """Digest of rows that have no file of their own: canonical JSON, one row a line."""
    digest = hashlib.sha256()
    for line, row in rows:
        try:
            text = json.dumps(_reason(row), sort_keys=True, default=_plain)
        except (TypeError, ValueError) as why:
            raise DataError(
                f"Row {line} cannot be written as JSON ({why}). "
                "Rows must map column names to text, numbers or lists."
            ) from why
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()


def _numbers(names: Iterable[str], find: Callable[[str], int | None]) -> tuple[int, ...]:
    """The classes of these names; a name that is no class could never be the answer."""
    found = (find(name) for name in names)
    return tuple(sorted({number for number in found if number is not None}))


def _reason(row: Mapping[str, object] | BadLine) -> object:
    return {"bad": row.reason} if isinstance(row, BadLine) else dict(row)


def _plain(value: object) -> object:
    """Arrays and dates as JSON; of what else a column may hold (an image, say) only its kind."""
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    return type(value).__name__


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples read from a source as often as they are asked for; only the current row is held.

    `labels` are the class names an example's `label` points into: those of the data in order, or
    those the data set was built with. `bad` tells what was left out of all rows, `sha256` names
    the source as a whole; both stay the same when only some rows are taken. `whole` is how many
    good rows there are, `size` how many of them are given out.
    """

    source: Source
    split: str
    columns: Mapping[str, str]
    labels: tuple[str, ...]
    bad: BadRows
    sha256: str
    size: int
    whole: int
    labelled: bool = True

    @classmethod
    def build(
        cls,
        source: Source,
        *,
        split: str = "test",
        fields: Mapping[str, str] | None = None,
        labels: Sequence[str] | None = None,
        labelled: bool = True,
    ) -> "Dataset":
        """Scan the source once: count, find the labels, and refuse what is not fit for use.

        Where `labelled` is False, labels are neither asked for nor looked at: every one is −1.
        """
        if labels is not None and (not labels or len(set(labels)) < len(labels)):
            raise ConfigError(f"labels must be distinct names, at least one; got {list(labels)}.")
        columns = columns_of(fields)
        allowed = None if labels is None else tuple(labels)
        scan = Scan(source.name, columns, allowed, labelled=labelled)
        for line, raw in source:
            scan.add(line, raw)
        bad = scan.finish()
        names = sort_labels(scan.labels) if labels is None else tuple(labels)
        return cls(
            source, split, columns, names, bad, source.sha256(), scan.good, scan.good, labelled
        )

    @property
    def name(self) -> str:
        """The data as the user named it."""
        return self.source.name

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Example]:
        find, index, taken = label_finder(self.labels), 0, self._taken()
        for _, raw in self.source:
            if isinstance(raw, BadLine):
                continue
            row = read_row(raw, self.columns, labelled=self.labelled)
            if isinstance(row, BadLine):
                continue
            label = find(row.label) if self.labelled else -1
            if label is None:
                continue
            told = row.tokens, row.rationale, row.pair, row.word_scores
            allowed = None if row.candidates is None else _numbers(row.candidates, find)
            if taken is None or (index < len(taken) and taken[index]):
                yield Example(index, row.text, label, *told, allowed)
            index += 1
            if index == self.whole:
                return
        raise DataError(
            f"{self.name} had {self.whole} good rows when it was first read and has {index} now. "
            "It must not change while it is used; start again."
        )

    def sample(self, limit: int) -> "Dataset":
        """The same data set with `limit` of its rows, always the same; they keep their numbers.

        Files often hold one class after the other, or by turns, so that neither the first rows nor
        every tenth are a fair sample. Fewer rows are some of more.
        """
        if limit < 1:
            raise ConfigError(f"A limit must be at least 1; got {limit}.")
        return replace(self, size=min(limit, self.size))

    def _taken(self) -> Bool[np.ndarray, "whole"] | None:
        """Which good rows are given out; None for all."""
        if self.size == self.whole:
            return None
        taken = np.zeros(self.whole, dtype=bool)
        taken[generator(0, "rows of a limit").permutation(self.whole)[: self.size]] = True
        return taken
