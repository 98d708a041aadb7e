"""What every reader of a manifest relies on."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from math import isfinite
from typing import Any

Test = Callable[[Any], bool]


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and isfinite(value)


def _share(value: Any) -> bool:
    return _number(value) and 0 < value < 1


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _objects(value: Any) -> bool:
    """An object of objects."""
    return isinstance(value, dict) and all(map(_object, value.values()))


REQUIRED: dict[str, tuple[Test, str]] = {
    "data": (_object, "an object"),
    "model": (_object, "an object"),
    "versions": (_object, "an object"),
    "level": (_share, "a number between 0 and 1"),
    "seed": (lambda value: type(value) is int, "a whole number"),
    "interval": (_text, "text"),
    "seconds": (_objects, "an object of objects"),
    "too_short": (_whole, "a whole number"),
    "truncated": (_whole, "a whole number"),
}
OPTIONAL: dict[str, tuple[Test, str]] = {
    "labels": (_texts, "a list of names"),
    "checks": (_objects, "an object of objects"),
    "methods": (_objects, "an object of objects"),
    "retrained": (
        lambda value: isinstance(value, list) and all(map(_object, value)),
        "a list of objects",
    ),
}
INNER: Mapping[str, Mapping[str, tuple[Test, str]]] = {
    "model": {"name": (_text, "text")},
    "data": {
        "name": (_text, "text"),
        "split": (_text, "text"),
        "texts": (_whole, "a whole number"),
        "bad_rows": (_text, "text"),
    },
}


def manifest_fault(found: Any) -> str:
    """The first value that is not of its kind, or ""; what is not there is no fault."""
    if not isinstance(found, dict):
        return "it must hold a JSON object"
    return next(_faults(found), "")


def missing_from_manifest(found: Mapping[str, Any]) -> str:
    """The first value that a report cannot do without and that is not there, or ""."""
    missing = (name for name in REQUIRED if name not in found)
    inner = (f"{part}.{name}" for part in INNER for name in INNER[part] if name not in found[part])
    return next(chain(missing, inner), "")


def _faults(found: Mapping[str, Any]) -> Iterator[str]:
    yield from _wrong(found, REQUIRED | OPTIONAL, "")
    for part, wanted in INNER.items():
        yield from _wrong(found.get(part, {}), wanted, f"{part}.")
    for check, one in found.get("seconds", {}).items():
        if not (_number(one.get("cpu")) and _number(one.get("wall"))):
            yield f"seconds.{check[:60]!r} must hold the numbers cpu and wall"


def _wrong(
    values: Mapping[str, Any], wanted: Mapping[str, tuple[Test, str]], place: str
) -> Iterator[str]:
    for name, (test, words) in wanted.items():
        if name in values and not test(values[name]):
            yield f"{place}{name} must be {words}, not {repr(values[name])[:60]}"
