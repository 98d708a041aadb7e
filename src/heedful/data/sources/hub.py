"""Data sets of the Hugging Face hub, or of a folder written by `datasets`."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from heedful.core.errors import DataError
from heedful.data.dataset import SINGLE_SPLIT, NumberedRow, RowSource, pick_split

HUB_PREFIX = "hf:"


def hub_source(name: str, split: str) -> RowSource:
    """The source of a split of `hf:NAME[@CONFIG]`."""
    found = _load(name)
    if isinstance(found, dict):
        found = found[pick_split(split, found, name=name)]
    return RowSource(name, partial(_read_rows, found), rows=len(found))


def _read_rows(rows: Any) -> Iterator[NumberedRow]:
    """The rows of a `datasets.Dataset`, with class labels as names."""
    classes = {
        column: feature.names
        for column, feature in rows.features.items()
        if type(feature).__name__ == "ClassLabel"
    }
    for number, row in enumerate(rows, start=1):
        named = {
            column: names[row[column]] if row[column] >= 0 else None  # −1 is a hidden label
            for column, names in classes.items()
            if isinstance(row.get(column), int)
        }
        yield number, {**row, **named}


def hub_splits(name: str) -> tuple[str, ...]:
    """The splits of `hf:NAME[@CONFIG]`; `("all",)` for a folder with a single one."""
    found = _load(name)
    return tuple(found) if isinstance(found, dict) else SINGLE_SPLIT


def _load(name: str) -> Any:
    """A datasets.Dataset, or a dict of them by split."""
    library = _library()
    wanted = name.removeprefix(HUB_PREFIX)
    folder = Path(os.path.expanduser(wanted))  # noqa: PTH111 - Path forgets a leading "./"
    try:
        if folder.is_dir():
            return library.load_from_disk(str(folder))
        repository, _, config = wanted.partition("@")
        # Since version 4 code of a repository is never run and the argument does not exist.
        old = int(library.__version__.split(".")[0]) < 4
        no_code = {"trust_remote_code": False} if old else {}
        return library.load_dataset(repository, config or None, **no_code)
    except Exception as why:  # `datasets` raises whatever its readers raise
        raise DataError(_load_error(name, why, local=folder.is_dir())) from why


def _library() -> ModuleType:
    try:
        import datasets
    except ImportError as why:
        raise DataError(
            f"hf: needs the `datasets` package ({why}). Run: pip install 'heedful[datasets]'."
        ) from why
    return datasets  # type: ignore[no-any-return]


def _load_error(name: str, why: Exception, *, local: bool) -> str:
    first = next(iter(str(why).splitlines()), type(why).__name__)
    if local:
        return (
            f"{name} is not a folder written by save_to_disk of `datasets`: {first} "
            "For a folder of files leave out hf:."
        )
    if isinstance(why, ConnectionError):
        return f"{name} cannot be loaded: the hub was not reached. {first}. Check the connection."
    return f"{name} cannot be loaded from the hub: {first} Give hf:NAME or hf:NAME@CONFIG."
