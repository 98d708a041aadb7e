"""Find the data sets of a study under a folder, and say why the others are missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import ConfigError, HeedfulError
from heedful.data.read import splits
from heedful.studies.study import StudyDataset

NEEDED_SPLITS = ("train", "test")


@dataclass(frozen=True)
class FoundData:
    """The location of each set by name, and for missing sets the reason."""

    data: dict[str, str]
    absent: dict[str, str]


def find_data(sets: Sequence[StudyDataset], root: Path) -> FoundData:
    """Look for each set under its usual names, in heedful's format or as it is distributed."""
    if not root.is_dir():
        raise ConfigError(f"--data-root must be a folder with data sets; {root} is not a folder.")
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
    """The names to try: heedful's format first, unless the set is `reader_first`."""
    for place in (root / folder for folder in one.folders):
        table = place.with_name(f"{place.name}.csv")
        if one.reader_first and table.is_file():
            yield f"{one.reader}:{table}"
        if not place.exists():
            continue
        distributed = f"{one.reader}:{place}{f'@{one.part}' if one.part else ''}"
        names = [str(place), *([distributed] if one.reader else [])]
        yield from reversed(names) if one.reader_first else names


def _try_name(one: StudyDataset, name: str) -> tuple[str | None, str]:
    """The name if it has the needed splits, else None and the reason."""
    try:
        found = splits(name, cleaning=one.cleaning or None)
    except HeedfulError as error:
        return None, f"{name}: {error}"
    if set(NEEDED_SPLITS) <= set(found):
        return name, ""
    missing = [split for split in NEEDED_SPLITS if split not in found]
    return None, f"{name} has no {' and no '.join(missing)} split."
