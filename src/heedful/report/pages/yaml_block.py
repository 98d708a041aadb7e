"""A small, strict writer of YAML: what it writes reads back the same, whatever text it holds.

Strings stand in double quotes on one line, so no text can end the block, begin a tag or turn into
a number; keys are names of ours.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from heedful.core.errors import ShapeError

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
WORDS = {True: "true", False: "false", None: "null"}


def front_matter(values: Mapping[str, Any]) -> str:
    """The block at the top of a model card, between its two lines of dashes.

    >>> print(front_matter({"tags": ["a: b"], "value": 1e-7}), end="")
    ---
    tags:
    - "a: b"
    value: 1.0e-07
    ---
    """
    return "\n".join(("---", *_mapping(values, 0), "---")) + "\n"


def _mapping(values: Mapping[str, Any], depth: int) -> Iterator[str]:
    space = "  " * depth
    for key, value in values.items():
        if not KEY.fullmatch(key):
            raise ShapeError(f"A key of the block must be a plain name, not {key!r}.")
        if _nested(value):
            yield f"{space}{key}:"
            deeper = depth + isinstance(value, Mapping)  # items of a list stand below their key
            yield from _block(value, deeper)
        else:
            yield f"{space}{key}: {_scalar(value)}"


def _block(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _mapping(value, depth)
        return
    space = "  " * depth
    for item in value:
        lines = list(_block(item, depth + 1)) if _nested(item) else [_scalar(item)]
        yield f"{space}- {lines[0].strip() if _nested(item) else lines[0]}"
        yield from lines[1:]


def _nested(value: Any) -> bool:
    return bool(value) and isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return WORDS[value]
    if isinstance(value, str):
        return f'"{"".join(map(_sign, value))}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, Sequence):
        return "[]"
    raise ShapeError(f"The block holds text, numbers, lists and tables, not {value!r}.")


def _sign(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    code = ord(sign)
    if 0xD800 <= code <= 0xDFFF:  # half a sign, which no file can hold
        return "\N{REPLACEMENT CHARACTER}"
    wide = 2 if code < 0x100 else 4 if code < 0x10000 else 8
    return f"\\{dict(zip((2, 4, 8), 'xuU', strict=True))[wide]}{code:0{wide}x}"


def _number(value: float) -> str:
    """Older readers take 1e-7 for text: a number has a point."""
    if not isfinite(value):
        return WORDS[None]
    text = repr(value)
    whole, e, power = text.partition("e")
    return f"{whole if '.' in whole else f'{whole}.0'}{e}{power}"
