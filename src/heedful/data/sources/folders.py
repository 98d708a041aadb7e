"""Paths as sources: a single file, or a folder with one file per split."""

import os
from collections import defaultdict
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from heedful.core.errors import DataError
from heedful.data.dataset import DEV_NAMES, SINGLE_SPLIT, pick_split
from heedful.data.sources.files import (
    READERS_BY_EXTENSION,
    FileSource,
    data_errors,
    known_extension,
)

SPLITS = ("train", "dev", "test")
SAVED_BY_DATASETS = ("dataset_dict.json", "state.json")


def path_source(name: str, split: str, *, also: Iterable[str] = ()) -> FileSource:
    """The file of a split; a single file stands for any split.

    `also` are names other than paths to suggest where `name` does not exist.
    """
    files = _path_files(name, also)
    wanted = SINGLE_SPLIT[0] if tuple(files) == SINGLE_SPLIT else _canonical(split)
    found = files[pick_split(wanted, files, name=name)]
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise DataError(f"{name} has several files for split {split!r}: {names}. Keep one.")
    return FileSource(name, found[0])


def path_splits(name: str, *, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The splits of a folder; `("all",)` for a single file."""
    return tuple(_path_files(name, also))


def equal_splits(name: str) -> list[list[str]]:
    """The splits of a folder whose files have the same content; only files of one size are read."""
    if not Path(os.path.expanduser(name)).is_dir():  # noqa: PTH111 - as below
        return []
    alike = defaultdict[tuple[int, str], list[str]](list)
    files = {split: found[0] for split, found in _path_files(name, ()).items() if len(found) == 1}
    sizes = {split: file.stat().st_size for split, file in files.items()}
    for split, size in sizes.items():
        if list(sizes.values()).count(size) > 1:
            alike[size, FileSource(name, files[split]).sha256()].append(split)
    return [splits for splits in alike.values() if len(splits) > 1]


def _path_files(name: str, also: Iterable[str]) -> dict[str, list[Path]]:
    """Files by split, in the order train, dev and test; a single file under "all"."""
    path = _require_existing(name, also)
    if not path.is_dir():
        return {SINGLE_SPLIT[0]: [path]}
    found: dict[str, list[Path]] = {split: [] for split in SPLITS}
    with data_errors(path):
        files = sorted(path.iterdir())
    for file in files:
        ending = known_extension(file)
        split = _canonical(file.name[: -len(ending)]) if ending else None
        if split in found and file.is_file():
            found[split].append(file)
    if not any(found.values()):
        if any((path / mark).exists() for mark in SAVED_BY_DATASETS):
            raise DataError(f"{name} is a folder written by `datasets`. Name it as hf:{name}.")
        raise DataError(
            f"{name} has no train, dev or test file. A folder must hold one file for each split, "
            f"such as test.jsonl; extensions: {', '.join(READERS_BY_EXTENSION)}."
        )
    return {split: files for split, files in found.items() if files}


def _require_existing(name: str, also: Iterable[str]) -> Path:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - Path's own fails on unknown ~user
    with data_errors(path):  # the name may be too long, or a parent not readable
        if path.exists():
            return path
        siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    near = get_close_matches(path.name, [one.name for one in siblings], n=1)
    hints = [str(path.parent / one) for one in near] or get_close_matches(name, list(also), n=1)
    hint = f" Did you mean {hints[0]!r}?" if hints else ""
    raise DataError(
        f"There is no file or folder {name!r}.{hint} DATA is a path, hf:NAME, sample:NAME, "
        "synthetic:NAME or READER:PATH; see `heedful list data`."
    )


def _canonical(split: str) -> str:
    return "dev" if split in DEV_NAMES else split
