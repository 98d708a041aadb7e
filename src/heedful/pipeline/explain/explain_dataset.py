"""Explain every text of a data set, batch by batch, into one Parquet file."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.atomic_files import save_output
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, DataError, NotApplicable, RunError
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.data.dataset import Dataset
from heedful.data.read import DataLike, read
from heedful.models.protocols import Subject
from heedful.pipeline.audit.job import retry_in_halves
from heedful.pipeline.explain.explain_text import TextExplainer
from heedful.pipeline.explain.request import ExplainRequest
from heedful.results.explanation import TextExplanation
from heedful.results.outputs import output_path, require_output
from heedful.results.tables import import_pandas

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
EXPLANATION_SCHEMA = pa.schema(
    {
        "instance": pa.int64(),
        **dict.fromkeys(("predicted", "label", "target", "method", "kind"), pa.string()),
        "signed": pa.bool_(),
        "of": pa.string(),
        "tokens": pa.list_(pa.string()),
        "scores": pa.list_(pa.float64()),
    }
)
TEXTS_PER_CHUNK = 1024  # texts that are sorted by length into batches
PARQUET_SUFFIX = ".parquet"
MIN_GROUP_ROWS = 1000  # in smaller row groups most bytes would be metadata
LABEL_PROBE_ROWS = 100  # rows in which to look for a column of labels


@dataclass(frozen=True)
class ExplainCounts:
    """Counts of texts and rows; those of several batches can be added.

    `refused` maps a method to the number of texts it did not apply to, and the first reason.
    """

    texts: int = 0
    rows: int = 0
    no_words: int = 0
    truncated: int = 0
    halved: int = 0
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def __add__(self, other: "ExplainCounts") -> "ExplainCounts":
        refused = dict(self.refused)
        for name, (count, reason) in other.refused.items():
            before, first = refused.get(name, (0, reason))
            refused[name] = (before + count, first)
        return ExplainCounts(
            self.texts + other.texts,
            self.rows + other.rows,
            self.no_words + other.no_words,
            self.truncated + other.truncated,
            self.halved + other.halved,
            refused,
        )


def explain_batches(
    subject: Subject, examples: Iterable[Example], request: ExplainRequest, *, max_batch_tokens: int
) -> Iterator[tuple[list[Row], ExplainCounts]]:
    """Yield rows of `EXPLANATION_SCHEMA` and counts, a batch of texts of similar length at a time.

    At most TEXTS_PER_CHUNK texts are in memory.
    """
    explainer = TextExplainer(subject, request, max_batch_tokens=max_batch_tokens)
    rest = iter(examples)
    while chunk := [subject.encode(one) for one in islice(rest, TEXTS_PER_CHUNK)]:
        kept = [one for one in chunk if one.explained_tokens]
        yield [], ExplainCounts(no_words=len(chunk) - len(kept))
        halved = list[list[int]]()
        batches = batches_for(subject, kept, max_batch_tokens=max_batch_tokens)
        work = partial(_explain_batch, explainer, kept)
        yield from retry_in_halves(batches, work, halved=halved.append)
        yield [], ExplainCounts(halved=len(halved))


def _explain_batch(
    explainer: TextExplainer, kept: Sequence[Encoded], batch: list[int]
) -> tuple[list[Row], ExplainCounts]:
    texts = [kept[row] for row in batch]
    counts = ExplainCounts(len(texts), truncated=sum(text.truncated for text in texts))
    rows: list[Row] = []
    for text, found in zip(texts, explainer.explain(texts), strict=True):
        rows += _rows(text, found, explainer.subject.labels)
        counts += ExplainCounts(refused={name: (1, why) for name, why in found.refused.items()})
    return rows, counts + ExplainCounts(rows=len(rows))


def _rows(text: Encoded, found: TextExplanation, labels: Sequence[str]) -> Iterator[Row]:
    for name, one in found.methods.items():
        yield {
            "instance": text.index,
            "predicted": found.predicted,
            "label": None if text.label < 0 else labels[text.label],
            "target": found.target,
            "method": name,
            "kind": one.kind,
            "signed": one.signed,
            "of": one.of,
            "tokens": found.tokens,
            "scores": one.scores,
        }


@dataclass(frozen=True)
class DataExplanations:
    """The file with the scores of a data set, and counts of its texts."""

    path: Path
    counts: ExplainCounts
    bad_rows: str
    left_out: str = ""

    def to_dataframe(self) -> "pd.DataFrame":
        """Read the file: one row per text and method, in the order of the data."""
        frame: pd.DataFrame = import_pandas().read_parquet(self.path)
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

    def require_other(self, out: Path) -> None:
        """Refuse to write over the data."""
        if not isinstance(self.data, str | Path) or not out.exists():
            return
        named = output_path(self.data)
        if named.exists() and named.samefile(out):
            raise RunError(f"{out} is the data itself. Choose another out.")

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
    source.require_other(out)
    data, total = source.read(subject), ExplainCounts()

    def save(draft: str) -> None:
        nonlocal total
        batches = explain_batches(subject, data, request, max_batch_tokens=source.max_batch_tokens)
        waiting: list[Row] = []
        with pq.ParquetWriter(draft, EXPLANATION_SCHEMA, compression="zstd") as file:
            for rows, counts in batches:
                total += counts
                waiting += rows
                if len(waiting) >= MIN_GROUP_ROWS:
                    _write_group(file, waiting)
                    waiting = []
                progress(total.texts + total.no_words, len(data), "explain")
            _require_rows(total)
            _write_group(file, waiting)
            origin = json.dumps(_origin(subject, data, request, total), default=str)
            file.add_key_value_metadata({"heedful": origin})

    save_output(out, save)
    left_out = str(data.left_out) if data.left_out.total else ""
    return DataExplanations(out, total, str(data.bad), left_out)


def _write_group(file: pq.ParquetWriter, rows: list[Row]) -> None:
    if rows:
        table = pa.Table.from_pylist(rows, schema=EXPLANATION_SCHEMA)
        file.write_table(table, row_group_size=len(rows))


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
    """Refuse a file that exists, unless it has explanations and may be replaced."""
    require_file(out)
    if not out.exists():
        return
    ours = not out.stat().st_size or is_explanation_file(out)
    if not (ours and overwrite):
        advice = "; in Python overwrite=True replaces it" if ours else ""
        raise RunError(f"{out} exists already. Choose another --out, or remove it{advice}.")


def is_explanation_file(path: Path) -> bool:
    """Whether a file has the columns of explanations, which nothing else has."""
    try:
        return bool(pq.read_schema(path).equals(EXPLANATION_SCHEMA))
    except (pa.ArrowException, OSError):
        return False


def require_file(out: Path) -> None:
    """Refuse a name that no file of scores can have."""
    if out.suffix != PARQUET_SUFFIX:
        raise ConfigError(f"out must name a file that ends in {PARQUET_SUFFIX}, not {str(out)!r}.")
    if out.is_dir():
        raise RunError(f"{out} is a folder; --out must name a file.")
    require_output(out, None)


def _require_rows(total: ExplainCounts) -> None:
    if total.rows:
        return
    if not total.texts:
        raise DataError("No text contains a word to explain; nothing was written.")
    raise NotApplicable(" ".join(reason for _, reason in total.refused.values()))


def _texts(count: int) -> str:
    return f"{count} text{'' if count == 1 else 's'}"
