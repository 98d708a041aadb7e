"""The scores of a data set, written to one Parquet file as they are found."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.auditing.explain_data import Counts, ScoreRow, explain_batches
from heedful.auditing.explain_request import Request
from heedful.core.errors import ConfigError, DataError, NotApplicable, RunError
from heedful.core.files import save_atomic
from heedful.core.progress import Progress, silent
from heedful.data.base import Dataset
from heedful.data.resolve import Data, read
from heedful.models.base import Subject
from heedful.runner.explanations import DataExplanations

ROWS = pa.schema(
    [
        ("instance", pa.int64()),
        ("predicted", pa.string()),
        ("label", pa.string()),
        ("target", pa.string()),
        ("method", pa.string()),
        ("kind", pa.string()),
        ("signed", pa.bool_()),
        ("of", pa.string()),
        ("tokens", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
    ]
)
ENDING = ".parquet"
GROUP = 1000  # rows at least in a group: smaller ones would be mostly headings
FIRST_ROWS = 100  # rows in which a column of labels would show


@dataclass(frozen=True)
class Source:
    """Which rows of which data are explained, and how many tokens at once."""

    data: Data
    split: str = "test"
    fields: str | Mapping[str, str] | None = None
    limit: int | None = None
    cleaning: str | None = None
    max_batch_tokens: int = 20_000

    def read(self, subject: Subject) -> Dataset:
        """The texts; with labels where the data has some: an explanation needs none.

        A paper's cleaning may draw its texts by label, so that there labels must be.
        """
        given = partial(read, self.data, split=self.split, fields=self.fields, limit=self.limit)
        if self.cleaning is not None:
            return given(labels=subject.labels, cleaning=self.cleaning)
        plain = given(labelled=False)
        column = plain.columns.get("label")
        first = (raw for _, raw in islice(plain.source, FIRST_ROWS))
        known = any(isinstance(raw, Mapping) and column in raw for raw in first)
        if not known or not getattr(subject, "labelled", True):
            return plain
        return read(plain, labels=subject.labels)


def explain_to_file(
    subject: Subject,
    source: Source,
    request: Request,
    *,
    out: Path,
    progress: Progress = silent,
) -> DataExplanations:
    """Explain every text; the file appears whole or not at all."""
    _require_file(out)
    data, total = source.read(subject), Counts()

    def save(draft: str) -> None:
        nonlocal total
        found = explain_batches(subject, data, request, max_batch_tokens=source.max_batch_tokens)
        with _Writer(draft) as writer:
            for rows, counts in found:
                total += counts
                writer.add(rows)
                progress(total.texts + total.no_words, len(data), "explain")
            _require_some(total)
            writer.tell(_origin(subject, data, request, total))

    save_atomic(out, save)
    left_out = str(data.left_out) if data.left_out.total else ""
    return DataExplanations(out, total, str(data.bad), left_out)


class _Writer:
    """Gathers rows into groups of some size."""

    def __init__(self, path: str) -> None:
        self._file = pq.ParquetWriter(path, ROWS, compression="zstd")
        self._waiting: list[pa.Table] = []

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, rows: Sequence[ScoreRow]) -> None:
        if rows:
            self._waiting.append(_table(rows))
        if sum(one.num_rows for one in self._waiting) >= GROUP:
            self._flush()

    def tell(self, origin: dict[str, Any]) -> None:
        """Write what is left, and where all of it comes from."""
        self._flush()
        self._file.add_key_value_metadata({"heedful": json.dumps(origin, default=str)})

    def _flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting)
            self._file.write_table(group, row_group_size=group.num_rows)
            self._waiting = []


def _table(rows: Iterable[ScoreRow]) -> pa.Table:
    plain = [
        {
            "instance": one.instance,
            "predicted": one.predicted,
            "label": one.label,
            "target": one.target,
            "method": one.method,
            "kind": one.scores.kind,
            "signed": one.scores.signed,
            "of": one.scores.of,
            "tokens": one.tokens,
            "scores": one.scores.scores,
        }
        for one in rows
    ]
    return pa.Table.from_pylist(plain, schema=ROWS)


def _origin(subject: Subject, data: Dataset, request: Request, total: Counts) -> dict[str, Any]:
    """What the rows depend on, and what was counted, for whoever finds the file alone."""
    return {
        "schema": 1,
        "family": subject.family,
        "data": {"name": data.name, "split": data.split, "sha256": data.sha256},
        "request": asdict(request),
        "counts": asdict(total),
    }


def _require_file(out: Path) -> None:
    if out.suffix != ENDING:
        raise ConfigError(f"out must name a file that ends in {ENDING}, not {str(out)!r}.")
    if out.is_dir():
        raise RunError(f"{out} is a folder; --out must name a file.")


def _require_some(total: Counts) -> None:
    if total.rows:
        return
    if not total.texts:
        raise DataError("No text holds a word to explain; nothing was written.")
    raise NotApplicable(" ".join(reason for _, reason in total.refused.values()))
