"""What an explanation is asked for: which methods, made with which settings, of what."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from heedful.core.errors import ConfigError
from heedful.methods import Method, methods
from heedful.numerics.tensor.target import TargetValue

Granularity = Literal["word", "token"]
MethodsLike = str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None
MethodSettings = Mapping[str, Mapping[str, Any]]

ALL_METHODS = "all"
SLOW_METHODS = (
    "flow",
    "lime",
    "kernel_shap",
    "shapley",
    "diffmask",
)  # or trained first; only if asked
PATENTED_METHODS = ("lrp", "relevance_rollout")  # these too: not everybody may use them
PLAYERS = {"word": "words", "token": "tokens"}
TYPE_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a name"}


@dataclass(frozen=True)
class ExplainRequest:
    """Methods by name with their settings, the class to explain, and how finely.

    `of` is given to every method that knows the choice. Without a target the predicted class of
    each text is explained.
    """

    methods: MethodSettings
    target: str | None = None
    granularity: str = "word"
    of: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _require_one("granularity", self.granularity, Granularity)
        if self.of is not None:
            _require_one("of", self.of, TargetValue)

    def built(self) -> "BuiltMethods":
        """The methods, made; one that cannot explain `of` is refused beforehand."""
        parts, refused = {}, {}
        for name, given in self.methods.items():
            hints = _setting_types(name)
            usual = {"players": PLAYERS[self.granularity], "of": self.of}
            added = {
                key: value
                for key, value in usual.items()
                if value is not None and key in hints and key not in given
            }
            if "of" in added and not _is_type(self.of, hints["of"]):
                refused[name] = f"of must be {_describe_type(hints['of'])} here, not {self.of!r}."
            else:
                parts[name] = methods.build(name, **added, **given)
        return BuiltMethods(
            parts, refused, {name: _non_default(name, self.methods[name]) for name in parts}
        )


@dataclass(frozen=True)
class BuiltMethods:
    """Methods ready for use, those that are not and why, and what was set of the former."""

    parts: Mapping[str, Method]
    refused: Mapping[str, str] = field(default_factory=dict)
    settings: MethodSettings = field(default_factory=dict)

    @property
    def alone(self) -> bool:
        """Whether a single method was asked for; its refusal is then an error."""
        return len(self.parts) + len(self.refused) == 1

    @property
    def lean(self) -> bool:
        """Whether none of them looks at attention, so that passes may leave it out."""
        return all(part.kind != "attention" for part in self.parts.values())


def default_methods() -> tuple[str, ...]:
    """All methods but the slow ones, the patented ones and the controls."""
    kinds = {name: getattr(methods[name], "kind", None) for name in methods}
    left_out = {*SLOW_METHODS, *PATENTED_METHODS}
    return tuple(name for name, kind in kinds.items() if kind != "control" and name not in left_out)


def resolve_methods(wanted: MethodsLike, settings: MethodSettings | None = None) -> MethodSettings:
    """Methods by name with their settings, from whatever form they were asked for in.

    Names, a mapping from names to settings, a text of names between commas, or "all"; nothing
    means the usual ones. `settings` come on top.
    """
    chosen = {name: _require_mapping(name, given) for name, given in _requested_names(wanted)}
    for name, more in (settings or {}).items():
        _setting_types(name)  # an unknown method is told as such
        if name not in chosen:
            raise ConfigError(
                f"{name}.{next(iter(more), '…')} was set, but {name} is not among the methods: "
                f"{', '.join(chosen)}. Ask for it too."
            )
        chosen[name] |= more
    for name, given in chosen.items():
        _require_settings(name, given)
    return chosen


def _requested_names(wanted: MethodsLike) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(wanted, str):
        wanted = tuple(name.strip() for name in wanted.split(",") if name.strip())
    if isinstance(wanted, Mapping) and wanted:
        yield from wanted.items()
        return
    names = tuple(wanted or default_methods())
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"methods must be names, or a mapping from names; got {names!r}.")
    yield from ((name, {}) for name in (methods if ALL_METHODS in names else names))


def _require_mapping(name: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"The settings of {name} must be a mapping, not {given!r}.")
    return dict(given)


def _require_settings(name: str, given: Mapping[str, Any]) -> None:
    hints = _setting_types(name)
    for key, value in given.items():
        if key not in hints:
            known = ", ".join(hints) or "none"
            raise ConfigError(f"method {name!r} has no setting {key!r}. Settings: {known}.")
        if not _is_type(value, hints[key]):
            raise ConfigError(f"{name}.{key} must be {_describe_type(hints[key])}, not {value!r}.")
    methods.build(name, **given)  # whatever else it refuses


def _setting_types(name: str) -> dict[str, Any]:
    """The settings of a method with their types."""
    part: Any = methods[name]
    if not is_dataclass(part):
        return {}
    hints = get_type_hints(part)
    return {one.name: hints[one.name] for one in fields(part) if one.init}


def _non_default(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was set to something else than usual; `of` is told apart."""
    part: Any = methods[name]
    usual = {one.name: one.default for one in fields(part)} if is_dataclass(part) else {}
    own_settings = {key: value for key, value in given.items() if key != "of"}
    return {key: one for key, one in own_settings.items() if usual.get(key, MISSING) != one}


def _require_one(name: str, value: object, allowed: Any) -> None:
    if value not in get_args(allowed):
        raise ConfigError(f"{name} must be {_describe_type(allowed)}, not {value!r}.")


def _is_type(value: object, hint: Any) -> bool:
    """Whether a value is of a type, as far as it is a plain one; True is no number."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_is_type(value, one) for one in get_args(hint))
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (hint is float and isinstance(value, float))
    return isinstance(value, hint) if isinstance(hint, type) else True


def _describe_type(hint: Any) -> str:
    if get_origin(hint) is Literal:
        *first, last = map(str, get_args(hint))
        return f"{', '.join(first)} or {last}" if first else last
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_describe_type(one) for one in get_args(hint) if one is not type(None))
    return TYPE_WORDS.get(hint, getattr(hint, "__name__", str(hint)))
