"""The settings of a part: values checked against the annotations of its dataclass.

An annotation names the type of a setting, and `Annotated` its range:

    samples: Annotated[int, Ge(1)] = 16
    norm: Literal["l1", "l2"] = "l2"

Types are strict: True is not a number and 1.0 is not a whole number, but 1 is a number.

Every whole number that work or memory grows with has a ceiling too, far beyond what anybody needs:
a number typed with too many digits is refused at once, and not after days. Only an error about a
number above it tells of a ceiling.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

from heedful.core.errors import ConfigError, shorten_name, show_value


class Ceiling:
    """Marks an annotation whose upper bound is not worth a word unless a number is above it."""


MOST_REPEATS = 10**6  # a second for each draw, step or epoch would make it eleven days
MOST_MODELS = 10**4  # a minute for each model that is trained would make it a week
LARGEST_COUNT = 10**9  # texts, words or tokens: more than the memory of one machine holds
WIDEST_LAYER = 10**5  # numbers in a vector; a matrix of that many by that many takes 40 GB

PositiveInt = Annotated[int, Ge(1), Le(LARGEST_COUNT), Ceiling()]
NonNegativeInt = Annotated[int, Ge(0), Le(LARGEST_COUNT), Ceiling()]
Repeats = Annotated[int, Ge(1), Le(MOST_REPEATS), Ceiling()]
NoneOrRepeats = Annotated[int, Ge(0), Le(MOST_REPEATS), Ceiling()]
AnyRepeats = Annotated[int, Le(MOST_REPEATS), Ceiling()]  # the part itself says how few may be
Width = Annotated[int, Le(WIDEST_LAYER), Ceiling()]
Seed = Annotated[int, Ge(-(2**63)), Le(2**63 - 1)]
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
    except ValidationError as error:
        above = all(one["type"] == "less_than_equal" for one in error.errors())
        words = describe_type(hint, above=above)
        raise ConfigError(f"{name} must be {words}, not {show_value(value)}.") from None


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
            shown = shorten_name(" ".join(f"{prefix}{key}".split()))
            raise ConfigError(f"There is no setting {shown}. Settings: {known}.")
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


def describe_type(hint: Any, *, above: bool = False) -> str:
    """An annotation in words, as the end of "must be …"; `above` its ceiling.

    >>> describe_type(PositiveInt | None), describe_type(Literal["l1", "l2"])
    ('a whole number of at least 1', 'l1 or l2')
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        filled = ", at least one" if MinLen(1) in arguments else ""
        limits = list(arguments[1:])
        if any(isinstance(one, Ceiling) for one in limits):
            limits = [one for one in limits if isinstance(one, Le) == above]
        return f"{describe_type(arguments[0])}{_describe_range(limits)}{filled}"
    if origin is Literal:
        *first, last = map(str, arguments)
        return f"{', '.join(first)} or {last}" if first else last
    if origin in (Union, UnionType):
        some = (one for one in arguments if one is not NoneType)
        return " or ".join(describe_type(one, above=above) for one in some)
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
