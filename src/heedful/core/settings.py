"""The settings of a part: values checked against the annotations of its dataclass.

An annotation names the type of a setting, and `Annotated` its range:

    samples: Annotated[int, Ge(1)] = 16
    norm: Literal["l1", "l2"] = "l2"

Types are strict: True is not a number and 1.0 is not a whole number, but 1 is a number.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

from heedful.core.errors import ConfigError

PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
Fraction = Annotated[float, Ge(0), Le(1)]
PositiveFraction = Annotated[float, Gt(0), Le(1)]
OpenFraction = Annotated[float, Gt(0), Lt(1)]

PartT = TypeVar("PartT")
TYPE_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a name"}
LIST_WORDS = {int: "whole numbers", float: "numbers", str: "names"}


def setting_types(part: Any) -> dict[str, Any]:
    """The settings of a part with their annotations; none where it is not a dataclass."""
    if not is_dataclass(part):
        return {}
    hints = get_type_hints(part, include_extras=True)
    return {one.name: hints[one.name] for one in fields(part) if one.init}


def check_setting(name: str, value: Any, hint: Any) -> Any:
    """Return the value as its annotation has it, or raise ConfigError.

    A whole number becomes a float and a list a tuple where the annotation says so.

    >>> check_setting("samples", 0, PositiveInt)
    Traceback (most recent call last):
    heedful.core.errors.ConfigError: samples must be a whole number of at least 1, not 0.
    """
    listed = isinstance(value, list) and _takes_tuple(hint)
    try:
        return _validator(hint)(tuple(value) if listed else value)
    except ValidationError:
        raise ConfigError(f"{name} must be {describe_type(hint)}, not {value!r}.") from None


def _takes_tuple(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Annotated, Union, UnionType):
        return any(map(_takes_tuple, get_args(hint)))
    return origin is tuple


def check_settings(part: Any, settings: Mapping[str, Any], *, prefix: str = "") -> dict[str, Any]:
    """Check the given settings of a part; errors name a setting as `prefix` and its own name.

    Keys that are not settings of the part raise ConfigError as well.
    """
    hints = setting_types(part)
    for key in settings:
        if key not in hints:
            known = ", ".join(hints) or "none"
            raise ConfigError(f"There is no setting {prefix}{key}. Settings: {known}.")
    return {key: check_setting(prefix + key, one, hints[key]) for key, one in settings.items()}


def check_on_init(part: type[PartT], *, prefix: str = "") -> type[PartT]:
    """Make a dataclass check its settings whenever an instance is made."""
    if not is_dataclass(part) or "_settings_checked" in part.__dict__:
        return part
    init = part.__init__

    @wraps(init)
    def checked_init(self: Any, *args: Any, **settings: Any) -> None:
        init(self, *args, **settings)
        settings = {key: getattr(self, key) for key in setting_types(part)}
        check_settings(part, settings, prefix=prefix)

    part.__init__ = checked_init  # type: ignore[method-assign]
    part._settings_checked = True  # type: ignore[attr-defined]
    return part


def describe_type(hint: Any) -> str:
    """An annotation in words, as the end of "must be …".

    >>> describe_type(PositiveInt | None), describe_type(Literal["l1", "l2"])
    ('a whole number of at least 1', 'l1 or l2')
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        filled = ", at least one" if MinLen(1) in arguments else ""
        return f"{describe_type(arguments[0])}{_describe_range(arguments[1:])}{filled}"
    if origin is Literal:
        *first, last = map(str, arguments)
        return f"{', '.join(first)} or {last}" if first else last
    if origin in (Union, UnionType):
        return " or ".join(describe_type(one) for one in arguments if one is not NoneType)
    if origin is tuple:
        unpacked = get_origin(arguments[0]) in (Annotated, Union, UnionType)
        base, *limits = get_args(arguments[0]) if unpacked else arguments[:1]
        return f"a list of {LIST_WORDS.get(base) or describe_type(base)}{_describe_range(limits)}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    return TYPE_WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _describe_range(limits: Any) -> str:
    low = next((one for one in limits if isinstance(one, Ge | Gt)), None)
    high = next((one for one in limits if isinstance(one, Le | Lt)), None)
    if isinstance(low, Ge) and isinstance(high, Le):
        return f" between {low.ge} and {high.le}"
    words = {Ge: "of at least", Gt: "above", Le: "of at most", Lt: "below"}
    parts = [f"{words[type(one)]} {_limit(one)}" for one in (low, high) if one is not None]
    return f" {' and '.join(parts)}" if parts else ""


def _limit(one: Any) -> Any:
    return getattr(one, type(one).__name__.lower())


@cache
def _validator(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, type) and is_dataclass(hint):
        return TypeAdapter(InstanceOf[hint]).validate_python
    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(hint, config=config).validate_python
