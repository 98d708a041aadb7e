"""Where the data sets of a study lie under a folder, and why those do that are not there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import ConfigError, HeedfulError
from heedful.data.read import splits
from heedful.studies.study import StudyDataset

NEEDED_SPLITS = ("train", "test")


@dataclass(frozen=True)
class FoundData:
    """What was found: the data of each set by name, and of the others why they are not run."""

    data: dict[str, str]
    absent: dict[str, str]


def find_data(sets: Sequence[StudyDataset], root: Path) -> FoundData:
    """Look for each set under its usual names, in our form or as it is distributed."""
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; --data-root names the one that data sets lie in.")
    found = FoundData({}, {})
    for one in sets:
        tried = [_try_name(one, name) for name in _candidate_names(one, root)]
        if data := next((data for data, _ in tried if data), None):
            found.data[one.name] = data
        else:
            reasons = [why for _, why in tried] or [f"not found under {', '.join(one.folders)}."]
            found.absent[one.name] = " ".join((*dict.fromkeys(reasons), one.absent)).strip()
    return found


def _candidate_names(one: StudyDataset, root: Path) -> Iterator[str]:
    """What its data may be called: our form first, unless the reader knows files alike better."""
    for place in (root / folder for folder in one.folders):
        table = place.with_name(f"{place.name}.csv")
        if one.reader_first and table.is_file():
            yield f"{one.reader}:{table}"
        if not place.exists():
            continue
        read = f"{one.reader}:{place}{f'@{one.part}' if one.part else ''}"
        own, theirs = [str(place)], [read] if one.reader else []
        yield from (*theirs, *own) if one.reader_first else (*own, *theirs)


def _try_name(one: StudyDataset, name: str) -> tuple[str | None, str]:
    """The name if data lies there, or why there is none."""
    try:
        there = splits(name, cleaning=one.cleaning or None)
    except HeedfulError as error:
        return None, f"{name}: {error}"
    if set(NEEDED_SPLITS) <= set(there):
        return name, ""
    lacks = [split for split in NEEDED_SPLITS if split not in there]
    return None, f"{name} has no {' and no '.join(lacks)} split."
