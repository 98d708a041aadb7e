"""Labels: from any value of a row to a class name, and from class names to indices."""

import re
from collections.abc import Callable, Iterable

import numpy as np

INTEGER = re.compile(r"-?[0-9]{1,18}")
WHOLE_FLOAT = re.compile(r"(-?[0-9]{1,18})\.0+")


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN or only white space."""
    value = _plain(value)
    if isinstance(value, float):
        return value != value
    return value is None or (isinstance(value, str) and not value.strip())


def is_encodable(text: str) -> bool:
    """False for text with half a surrogate pair: it cannot be hashed or written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_label(value: object) -> str | None:
    """The class name of a label, or None where it is neither a whole number nor a name.

    Booleans become "false" and "true"; 1, 1.0, "1" and "1.0" are one class, because CSV and
    pandas turn one into the other.

    >>> [parse_label(value) for value in (1.0, " 1.0", True, "good", 0.5)]
    ['1', '1', 'true', 'good', None]
    """
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else None
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str) or not value.strip() or not is_encodable(value):
        return None
    name = value.strip()
    whole = WHOLE_FLOAT.fullmatch(name)
    return str(int(whole[1])) if whole else name


def sort_labels(names: Iterable[str]) -> tuple[str, ...]:
    """Class names in order: by number when all are integers, else by name.

    >>> sort_labels({"10", "9"}), sort_labels({"10", "9", "b"})
    (('9', '10'), ('10', '9', 'b'))
    """
    known = sorted(names)
    if all(INTEGER.fullmatch(name) for name in known):
        known.sort(key=int)
    return tuple(known)


def build_label_index(labels: tuple[str, ...]) -> Callable[[str], int | None]:
    """Build a function from a row's class name to its index in `labels`, or to None.

    Models and data often spell a class differently. A name is looked up as it is, then ignoring
    case (if that is unambiguous); an integer is a position, unless labels are integers themselves.

    >>> find = build_label_index(("NEGATIVE", "POSITIVE"))
    >>> find("POSITIVE"), find("positive"), find("1"), find("2")
    (1, 1, 1, None)
    """
    exact = {name: index for index, name in enumerate(labels)}
    folded = {name.casefold(): index for name, index in exact.items()}
    if len(folded) < len(exact):
        folded = {}
    numbered = any(INTEGER.fullmatch(name) for name in labels)
    positions = {} if numbered else {str(index): index for index in range(len(labels))}

    def find(name: str) -> int | None:
        if name in exact:
            return exact[name]
        return folded.get(name.casefold(), positions.get(name))

    return find
