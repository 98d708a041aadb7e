"""Where the data sets of a study lie under a folder, and why those do that are not there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import ConfigError, HeedfulError
from heedful.data.resolve import splits
from heedful.reproducing.study import SetOfTexts

NEEDED = ("train", "test")


@dataclass(frozen=True)
class Found:
    """What was found: the data of each set by name, and of the others why they are not run."""

    data: dict[str, str]
    absent: dict[str, str]


def find(sets: Sequence[SetOfTexts], root: Path) -> Found:
    """Look for each set under its usual names, in our form or as it is distributed."""
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; --data-root names the one that data sets lie in.")
    found = Found({}, {})
    for one in sets:
        tried = [_looked(one, root / folder) for folder in one.folders]
        if data := next((data for data, _ in tried if data), None):
            found.data[one.name] = data
        else:
            reasons = [why for _, why in tried if why]
            missing = f"not found under {', '.join(one.folders)}"
            found.absent[one.name] = " ".join((*(reasons or [f"{missing}."]), one.absent)).strip()
    return found


def _looked(one: SetOfTexts, folder: Path) -> tuple[str | None, str]:
    """The name of the data that lies there, or why there is none."""
    if not folder.exists():
        return None, ""
    names = [str(folder), *([f"{one.reader}:{folder}"] if one.reader else [])]
    why = ""
    for name in names:
        try:
            there = splits(name)
        except HeedfulError as error:
            why = why or f"{folder.name}: {error}"
            continue
        if set(NEEDED) <= set(there):
            return name, ""
        lacks = [split for split in NEEDED if split not in there]
        why = why or f"{folder.name} has no {' and no '.join(lacks)} split."
    return None, why
