"""Write the scores of a data set to one Parquet file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.atomic_files import save_atomic
from heedful.core.errors import ConfigError, DataError, NotApplicable, RunError
from heedful.core.timing import Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.data.read import DataLike, read
from heedful.models.protocols import Subject
from heedful.pipeline.explain.explain_dataset import ExplainCounts, MethodScoreRow, explain_batches
from heedful.pipeline.explain.request import ExplainRequest

if TYPE_CHECKING:
    import pandas as pd

EXPLANATION_SCHEMA = pa.schema(
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
PARQUET_SUFFIX = ".parquet"
MIN_GROUP_ROWS = 1000  # in smaller row groups most bytes would be metadata
LABEL_PROBE_ROWS = 100  # rows in which to look for a column of labels


@dataclass(frozen=True)
class DataExplanations:
    """The file with the scores of a data set, and counts of its texts."""

    path: Path
    counts: ExplainCounts
    bad_rows: str
    left_out: str = ""

    def to_dataframe(self) -> "pd.DataFrame":
        """Read the file: one row per text and method, in the order of the data."""
        try:
            import pandas as pd
        except ImportError:
            raise RunError("to_dataframe needs pandas: pip install pandas.") from None
        frame = pd.read_parquet(self.path)
        return frame.sort_values("instance", kind="stable", ignore_index=True)

    def __str__(self) -> str:
        """What was written, and how many texts are not in it and why."""
        counts = self.counts
        size = f"{self.path.stat().st_size / 1e6:.1f} MB"
        lines = [f"{_texts(counts.texts)} explained, {counts.rows} rows: {self.path} ({size})"]
        if counts.no_words:
            lines.append(f"{_texts(counts.no_words)} without any word left out")
        if counts.truncated:
            lines.append(f"{_texts(counts.truncated)} cut at the model's limit")
        if counts.halved:
            lines.append(f"batches halved because memory ran out: {counts.halved}")
        for name, (count, reason) in counts.refused.items():
            lines.append(f"{name} refused {count} of {_texts(counts.texts)}: {reason}")
        lines += [self.bad_rows] if self.bad_rows != "no bad rows" else []
        lines += [self.left_out] if self.left_out else []
        return "\n".join(lines)


@dataclass(frozen=True)
class ExplainSource:
    """Which rows of which data are explained, and how many tokens at once."""

    data: DataLike
    split: str = "test"
    fields: str | Mapping[str, str] | None = None
    limit: int | None = None
    cleaning: str | None = None
    max_batch_tokens: int = 20_000

    def read(self, subject: Subject) -> Dataset:
        """Read the texts, with labels if the data has some; explanations do not need them.

        A cleaning may split texts by label, so with a cleaning labels are required.
        """
        read_data = partial(read, self.data, split=self.split, fields=self.fields, limit=self.limit)
        if self.cleaning is not None:
            return read_data(labels=subject.labels, cleaning=self.cleaning)
        plain = read_data(labelled=False)
        column = plain.columns.get("label")
        first = (raw for _, raw in islice(plain.source, LABEL_PROBE_ROWS))
        known = any(isinstance(raw, Mapping) and column in raw for raw in first)
        if not known or not getattr(subject, "labelled", True):
            return plain
        return read(plain, labels=subject.labels)


def explain_to_file(
    subject: Subject,
    source: ExplainSource,
    request: ExplainRequest,
    *,
    out: Path,
    progress: Progress = no_progress,
) -> DataExplanations:
    """Explain every text; the file is written completely or not at all."""
    require_file(out)
    data, total = source.read(subject), ExplainCounts()

    def save(draft: str) -> None:
        nonlocal total
        batches = explain_batches(subject, data, request, max_batch_tokens=source.max_batch_tokens)
        with _Writer(draft) as writer:
            for rows, counts in batches:
                total += counts
                writer.add(rows)
                progress(total.texts + total.no_words, len(data), "explain")
            _require_rows(total)
            writer.write_metadata(_origin(subject, data, request, total))

    save_atomic(out, save)
    left_out = str(data.left_out) if data.left_out.total else ""
    return DataExplanations(out, total, str(data.bad), left_out)


class _Writer:
    """Collects rows into row groups of at least MIN_GROUP_ROWS."""

    def __init__(self, path: str) -> None:
        self._file = pq.ParquetWriter(path, EXPLANATION_SCHEMA, compression="zstd")
        self._waiting: list[pa.Table] = []

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, rows: Sequence[MethodScoreRow]) -> None:
        if rows:
            self._waiting.append(_table(rows))
        if sum(one.num_rows for one in self._waiting) >= MIN_GROUP_ROWS:
            self._flush()

    def write_metadata(self, origin: dict[str, Any]) -> None:
        """Write the remaining rows, and the origin of all rows as metadata."""
        self._flush()
        self._file.add_key_value_metadata({"heedful": json.dumps(origin, default=str)})

    def _flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting)
            self._file.write_table(group, row_group_size=group.num_rows)
            self._waiting = []


def _table(rows: Iterable[MethodScoreRow]) -> pa.Table:
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
    return pa.Table.from_pylist(plain, schema=EXPLANATION_SCHEMA)


def _origin(
    subject: Subject, data: Dataset, request: ExplainRequest, total: ExplainCounts
) -> dict[str, Any]:
    """What the rows depend on and the counts, so that the file can be read on its own."""
    return {
        "schema": 1,
        "family": subject.family,
        "data": {"name": data.name, "split": data.split, "sha256": data.sha256},
        "request": asdict(request),
        "counts": asdict(total),
    }


def require_new(out: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be replaced."""
    require_file(out)
    if out.exists() and not overwrite:
        raise RunError(
            f"{out} exists already. Choose another --out, or remove it; in Python overwrite=True "
            "replaces it."
        )


def require_file(out: Path) -> None:
    """Refuse a name that no file of scores can have."""
    if out.suffix != PARQUET_SUFFIX:
        raise ConfigError(f"out must name a file that ends in {PARQUET_SUFFIX}, not {str(out)!r}.")
    if out.is_dir():
        raise RunError(f"{out} is a folder; --out must name a file.")


def _require_rows(total: ExplainCounts) -> None:
    if total.rows:
        return
    if not total.texts:
        raise DataError("No text contains a word to explain; nothing was written.")
    raise NotApplicable(" ".join(reason for _, reason in total.refused.values()))


def _texts(count: int) -> str:
    return f"{count} text{'' if count == 1 else 's'}"
