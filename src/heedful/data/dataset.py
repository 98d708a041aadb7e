"""Data sets that are read as streams, and the sources they are read from."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from heedful.core.errors import ConfigError, DataError
from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.data.cleaning.filters import Selection
from heedful.data.columns import map_columns
from heedful.data.labels import build_label_index, sort_labels
from heedful.data.sources.row_schema import BadLine, LeftOut, read_cluster, read_row
from heedful.data.sources.validation import BadRows, LeftOutRows, Scan

DEV_NAMES = ("dev", "validation", "valid", "val")
SINGLE_SPLIT = ("all",)  # of a file or table that stands for any split

corpora = Registry("corpus")
"""Corpora by name (`sample:movies`, `synthetic:needle`); each builds a `Corpus`."""

NumberedRow = tuple[int, Mapping[str, object] | BadLine | LeftOut]
RowReader = Callable[[], Iterator[NumberedRow]]


@runtime_checkable
class Source(Protocol):
    """Rows with their line numbers; every iteration reads them again."""

    @property
    def name(self) -> str:
        """The name given by the user."""
        ...

    def sha256(self) -> str:
        """Hex digest of the file's bytes, or of the rows where there is no file."""
        ...

    def __iter__(self) -> Iterator[NumberedRow]: ...


@runtime_checkable
class Countable(Protocol):
    """A source that knows, before it is read, how many good rows it can have at most."""

    def most_good_rows(self) -> int | None:
        """There are not more good rows than this; None where that is not known."""
        ...


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows without a file, read again by every iteration."""

    name: str
    read: RowReader
    digest: Callable[[], str] | None = None
    rows: int | None = None  # how many there are, where that is known without reading them

    def sha256(self) -> str:
        """Hex digest: the given one, or that of the rows as canonical JSON."""
        return self.digest() if self.digest else rows_sha256(self)

    def most_good_rows(self) -> int | None:
        """There are not more good rows than this; None where that is not known."""
        return self.rows

    def __iter__(self) -> Iterator[NumberedRow]:
        return self.read()


@dataclass(frozen=True, eq=False)
class Corpus:
    """Named data with splits; a single split named "all" stands for any split."""

    name: str
    rows: Mapping[str, RowReader]

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self.rows)

    def __call__(self, split: str) -> RowSource:
        """The source of a split."""
        single = self.splits == SINGLE_SPLIT
        chosen = SINGLE_SPLIT[0] if single else pick_split(split, self.rows, name=self.name)
        return RowSource(self.name, self.rows[chosen])


def pick_split(split: str, available: Iterable[str], *, name: str) -> str:
    """The available split of that name; dev, validation, valid and val are synonyms."""
    present = tuple(available)
    synonyms: tuple[str, ...] = DEV_NAMES if split in DEV_NAMES else ()
    for wanted in (split, *synonyms):
        if wanted in present:
            return wanted
    raise DataError(
        f"{name} has no split {split!r}. It has: {', '.join(present) or 'none'}. "
        "Choose one of these with --split."
    )


def rows_sha256(rows: Iterable[NumberedRow]) -> str:
    """Digest of rows without a file: canonical JSON, one row per line."""
    digest = hashlib.sha256()
    for line, row in rows:
        try:
            text = json.dumps(_hashable_row(row), sort_keys=True, default=_to_json)
        except (TypeError, ValueError) as why:
            raise DataError(
                f"Row {line} cannot be written as JSON ({why}). "
                "Rows must map column names to text, numbers or lists."
            ) from why
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()


def _hashable_row(row: Mapping[str, object] | BadLine | LeftOut) -> object:
    if isinstance(row, BadLine | LeftOut):
        return {"bad" if isinstance(row, BadLine) else "left out": row.reason}
    return dict(row)


def _to_json(value: object) -> object:
    """Arrays and dates as JSON; other values (an image, say) as the name of their type."""
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    return type(value).__name__


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples that are read from a source by every iteration; only the current row is in memory.

    `labels` are the class names that an example's `label` indexes: those of the data in order, or
    those the data set was built with. `bad` counts bad rows and `sha256` identifies the whole
    source; both stay the same in a sample. `whole` is the number of good rows, `size` the number of
    rows of this data set. A `selection` cleans rows and keeps those in `kept`; `left_out` counts
    the others, and those that the reader left out. `cluster` is the column that says which texts
    belong together, such as sentences of one document.
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
    selection: Selection | None = None
    kept: Bool[np.ndarray, "whole"] | None = None
    left_out: LeftOutRows = field(default_factory=LeftOutRows)
    cluster: str | None = None

    @classmethod
    def build(
        cls,
        source: Source,
        *,
        split: str = "test",
        fields: Mapping[str, str] | None = None,
        labels: Sequence[str] | None = None,
        labelled: bool = True,
        selection: Selection | None = None,
        cluster: str | None = None,
    ) -> "Dataset":
        """Scan the source once: count rows, collect labels, and raise DataError for unusable data.

        If `labelled` is False, labels are not read: every label is −1.
        """
        if labels is not None and (not labels or len(set(labels)) < len(labels)):
            raise ConfigError(f"labels must be distinct names, at least one; got {list(labels)}.")
        columns = map_columns(fields)
        allowed = None if labels is None else tuple(labels)
        cleaning = None if selection is None else selection.cleaning
        most = source.most_good_rows() if isinstance(source, Countable) else None
        scan = Scan(source.name, columns, allowed, labelled, cleaning, cluster, most)
        for line, raw in source:
            scan.add(line, raw)
        bad = scan.finish()
        names = sort_labels(scan.labels) if labels is None else tuple(labels)
        whole = cls(source, split, columns, names, bad, "", scan.good, scan.good, labelled)
        return replace(whole, cluster=cluster)._selected(selection, scan)

    def _selected(self, selection: Selection | None, scan: Scan) -> "Dataset":
        """Keep the rows of the selection; a part of a source has a digest of its own."""
        digest, left, kept = self.source.sha256(), scan.left_out, None
        if selection is not None:
            selection.require_labels(labelled=self.labelled)
            lengths = np.array([words for words, _ in scan.cleaned], dtype=np.int64)
            kept, gone = selection.select_rows(lengths, [label for _, label in scan.cleaned])
            left = left + gone
            if not kept.any():
                raise DataError(
                    f"{self.name}: {selection.cleaning.name} leaves no row of split "
                    f"{self.split!r} ({LeftOutRows(left)}). Choose another --cleaning."
                )
            if selection.part:
                part = f"{digest} {selection.cleaning.name} {selection.part}"
                digest = hashlib.sha256(part.encode()).hexdigest()
        size = self.whole if kept is None else int(kept.sum())
        left_out = LeftOutRows(dict(left))
        return replace(
            self, sha256=digest, size=size, selection=selection, kept=kept, left_out=left_out
        )

    @property
    def name(self) -> str:
        """The name of the data as given by the user."""
        return self.source.name

    @property
    def cleaning(self) -> str | None:
        """The name of the cleaning of its texts."""
        return self.selection.cleaning.name if self.selection else None

    def origin(self) -> list[Any]:
        """An identity of the texts as plain JSON: equal for equal texts."""
        identity = [self.sha256, self.split, dict(self.columns), len(self)]
        return identity if self.selection is None else [*identity, repr(self.selection)]

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Example]:
        find, index, sampled = build_label_index(self.labels), 0, self._sample_mask()
        for _, raw in self.source:
            if isinstance(raw, BadLine | LeftOut):
                continue
            row = read_row(raw, self.columns, labelled=self.labelled)
            if isinstance(row, BadLine):
                continue
            label = find(row.label) if self.labelled else -1
            if label is None:
                continue
            if sampled is None or (index < len(sampled) and sampled[index]):
                row = row if self.selection is None else self.selection.cleaning.clean_row(row)
                optional = row.tokens, row.rationale, row.pair, row.word_scores
                known = {at for name in row.candidates or () if (at := find(name)) is not None}
                allowed = None if row.candidates is None else tuple(sorted(known))
                cluster = read_cluster(raw, self.cluster)
                yield Example(index, row.text, label, *optional, allowed, cluster)
            index += 1
            if index == self.whole:
                return
        raise DataError(
            f"{self.name} had {self.whole} good rows when it was first read and has {index} now. "
            "Data must not change while it is used; start again."
        )

    def sample(self, limit: int) -> "Dataset":
        """The same data set with a fixed random sample of `limit` rows, which keep their indices.

        Files are often sorted by class, or alternate classes, so that neither the first rows nor
        every tenth are a fair sample. A smaller sample is a subset of a larger one.
        """
        if limit < 1:
            raise ConfigError(f"A limit must be at least 1; got {limit}.")
        return replace(self, size=min(limit, self.size))

    def _sample_mask(self) -> Bool[np.ndarray, "whole"] | None:
        """Which good rows belong to the sample; None for all."""
        if self.size == self.whole:
            return None
        kept = np.arange(self.whole) if self.kept is None else np.flatnonzero(self.kept)
        mixed = generator(0, "rows of a limit").permutation(len(kept))
        mask = np.zeros(self.whole, dtype=bool)
        mask[kept[mixed[: self.size]]] = True
        return mask
