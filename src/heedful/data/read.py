"""Read data of any form into a `Dataset`: a path, a name, a DataFrame, rows."""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from heedful.core.errors import ConfigError, shorten_name
from heedful.data.cleaning.presets import get_cleaning
from heedful.data.cleaning.splits import require_same_cleaning, select_source, splits_after_cleaning
from heedful.data.columns import parse_fields
from heedful.data.dataset import (
    SINGLE_SPLIT,
    Corpus,
    Dataset,
    NumberedRow,
    RowSource,
    Source,
    corpora,
)
from heedful.data.readers import open_reader, readers
from heedful.data.sources.folders import equal_splits, path_source, path_splits
from heedful.data.sources.hub import HUB_PREFIX, hub_source, hub_splits
from heedful.data.sources.row_schema import BadLine

if TYPE_CHECKING:
    import pandas as pd

FRAME_BATCH = 1024  # rows of a DataFrame that are converted at a time
DataLike = Union[str, Path, Dataset, "pd.DataFrame", Iterable[Mapping[str, Any]]]


def read(
    data: DataLike,
    *,
    split: str = "test",
    fields: str | Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
    limit: int | None = None,
    labelled: bool = True,
    cleaning: str | None = None,
    cluster: str | None = None,
) -> Dataset:
    """Read data of any form; only counts and labels are kept in memory.

    `data` is a file, a folder, `hf:NAME[@CONFIG]`, `sample:NAME`, `synthetic:NAME`, `READER:PATH`
    (such as `sst:trees`), a DataFrame, an iterable of dicts, or a `Dataset` (which keeps its
    split). `fields` maps columns, `labels` are the class names of the model, `limit` is the size of
    a random sample, `labelled` is False for texts without labels. `cleaning` names the cleaning of
    a paper (`heedful list cleanings`). `cluster` is a column of ids: texts with the same id belong
    together, such as sentences of one document.

    >>> [e.label for e in read([{"text": "fine", "label": 1}, {"text": "dull", "label": 0}])]
    [1, 0]
    """
    mapped = parse_fields(fields) if isinstance(fields, str) else fields
    if isinstance(data, Dataset):
        require_same_cleaning(cleaning, data.cleaning)
        cluster = data.cluster if cluster is None else cluster
        found = _reread(data, mapped, labels, labelled=labelled, cluster=cluster)
    else:
        build = partial(Dataset.build, split=split, fields=mapped, labels=labels, cluster=cluster)
        if cleaning is None:
            found = build(_source(data, split), labelled=labelled)
        else:
            step, there, open_split = get_cleaning(cleaning), _splits(data), partial(_source, data)
            source, selection = select_source(step, split, there, open_split)
            found = build(source, labelled=labelled, selection=selection)
    return found if limit is None else found.sample(limit)


def splits(data: DataLike, *, cleaning: str | None = None) -> tuple[str, ...]:
    """The splits of the data; `("all",)` where one file or table stands for any split.

    >>> splits("synthetic:needle")
    ('train', 'dev', 'test')
    """
    if isinstance(data, Dataset):
        return (data.split,)
    there = _splits(data)
    return there if cleaning is None else splits_after_cleaning(get_cleaning(cleaning), there)


def describe_equal_splits(data: str) -> str:
    """A sentence where splits of a folder are the same file; empty where all differ.

    Then scores on dev or test are scores on texts that the model was trained on.
    """
    if _corpus(data) is not None or data.startswith(HUB_PREFIX):
        return ""
    shown = shorten_name(data, most=500)
    return " ".join(
        f"The splits {', '.join(first)} and {last} of {shown} have the same content: what holds "
        f"for the texts of {last} need not hold for texts that the model was not trained on."
        for *first, last in equal_splits(data)
    )


def digest_data(data: str) -> str:
    """sha256 over all splits of named data; equal rows have equal digests, whatever their path.

    >>> digest_data("synthetic:needle") == digest_data("synthetic:votes")
    False
    """
    parts = " ".join(f"{split} {_source(data, split).sha256()}" for split in _splits(data))
    return hashlib.sha256(parts.encode()).hexdigest()


def _splits(data: Any) -> tuple[str, ...]:
    if not isinstance(data, str | Path):
        return SINGLE_SPLIT
    name = _name(data)
    if (corpus := _corpus(name)) is not None:
        return corpus.splits
    return hub_splits(name) if name.startswith(HUB_PREFIX) else path_splits(name, also=_names())


def _name(data: str | Path) -> str:
    """The name of the data; a Path is taken as it is, so a tilde at its front is no home."""
    name = str(data)
    return f"./{name}" if isinstance(data, Path) and name.startswith("~") else name


def _reread(
    data: Dataset,
    fields: Mapping[str, str] | None,
    labels: Sequence[str] | None,
    *,
    labelled: bool,
    cluster: str | None,
) -> Dataset:
    """Read the same source with other columns or labels; a sample keeps its size."""
    same = labels is None or tuple(labels) == data.labels
    if fields is None and same and (labelled, cluster) == (data.labelled, data.cluster):
        return data
    columns = data.columns if fields is None else fields
    build = partial(Dataset.build, data.source, split=data.split, selection=data.selection)
    whole = build(fields=columns, labels=labels, labelled=labelled, cluster=cluster)
    return whole.sample(len(data))


def _source(data: Any, split: str) -> Source:
    if isinstance(data, str | Path):
        name = _name(data)
        if (corpus := _corpus(name)) is not None:
            return corpus(split)
        if name.startswith(HUB_PREFIX):
            return hub_source(name, split)
        return path_source(name, split, also=_names())
    pandas = sys.modules.get("pandas")  # a DataFrame exists only where pandas is loaded
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return RowSource("DataFrame in memory", partial(_frame_rows, data), rows=len(data))
    if isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        rows = tuple(data)
        return RowSource("rows in memory", partial(_object_rows, rows), rows=len(rows))
    raise ConfigError(
        f"Data must be a path, a name, a DataFrame or a list of dicts; got {type(data).__name__}."
    )


def _object_rows(rows: Sequence[object]) -> Iterator[NumberedRow]:
    """Dicts from column to value, numbered from 1."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, Mapping):
            yield number, {str(column): value for column, value in row.items()}
        else:
            yield number, BadLine("not an object")


def _frame_rows(frame: "pd.DataFrame") -> Iterator[NumberedRow]:
    """The rows of a DataFrame, numbered from 1; its index is ignored."""
    columns = [str(column) for column in frame.columns]
    for start in range(0, len(frame), FRAME_BATCH):
        part = frame.iloc[start : start + FRAME_BATCH].astype(object)
        # pandas has three missing values (NaN, NA, NaT); rows have one.
        cells = part.where(part.notna(), None).itertuples(index=False, name=None)
        for number, row in enumerate(cells, start=start + 1):
            yield number, dict(zip(columns, row, strict=True))


def _names() -> tuple[str, ...]:
    return (*corpora, *(f"{reader}:PATH" for reader in readers))


def _corpus(name: str) -> Corpus | None:
    reader, colon, path = name.partition(":")
    if colon and reader in readers:
        return open_reader(reader, path)
    if name in corpora or name.startswith(("sample:", "synthetic:")):
        corpus: Corpus = corpora.build(name)
        return corpus
    return None
