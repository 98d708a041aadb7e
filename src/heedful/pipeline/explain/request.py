"""The request of an explanation: methods with their settings, the class, the granularity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from heedful.core.errors import ConfigError
from heedful.core.settings import check_on_init, check_setting, setting_types
from heedful.methods import Method, methods
from heedful.methods.base import default_methods
from heedful.numerics.tensor.target import TargetValue

Granularity = Literal["word", "token"]
MethodsLike = str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None
MethodSettings = Mapping[str, Mapping[str, Any]]

ALL_METHODS = "all"
PLAYERS = {"word": "words", "token": "tokens"}


@check_on_init
@dataclass(frozen=True)
class ExplainRequest:
    """Methods by name with their settings, the target class, and the granularity.

    `of` is passed to every method that has this setting. Without a target, the predicted class of
    each text is explained.
    """

    methods: MethodSettings
    target: str | None = None
    granularity: Granularity = "word"
    of: TargetValue | None = None
    seed: int = 0

    def build(self) -> "BuiltMethods":
        """Build the methods; one that cannot explain `of` is refused with the reason."""
        parts, refused = {}, {}
        for name, given in self.methods.items():
            types = setting_types(methods[name])
            shared = {"players": PLAYERS[self.granularity], "of": self.of}
            added = {
                key: value
                for key, value in shared.items()
                if value is not None and key in types and key not in given
            }
            try:
                if "of" in added:
                    check_setting("of", self.of, types["of"])
            except ConfigError as reason:
                refused[name] = str(reason)
            else:
                parts[name] = methods.build(name, **added, **given)
        settings = {name: _non_default(name, self.methods[name]) for name in parts}
        return BuiltMethods(parts, refused, settings)


@dataclass(frozen=True)
class BuiltMethods:
    """Methods ready for use, the refused ones with the reason, and settings other than defaults."""

    parts: Mapping[str, Method]
    refused: Mapping[str, str] = field(default_factory=dict)
    settings: MethodSettings = field(default_factory=dict)

    @property
    def single(self) -> bool:
        """Whether a single method was requested; its refusal is then an error."""
        return len(self.parts) + len(self.refused) == 1

    @property
    def lean(self) -> bool:
        """Whether no method reads attention, so that passes may skip it."""
        return all(part.kind != "attention" for part in self.parts.values())


def resolve_methods(wanted: MethodsLike, settings: MethodSettings | None = None) -> MethodSettings:
    """Methods by name with their settings, from any form of request.

    `wanted` is a list of names, a mapping from names to settings, names separated by commas, or
    "all"; an empty request means the default methods. `settings` are added to those in `wanted`.
    """
    chosen: dict[str, dict[str, Any]] = {}
    for name, given in _requested_names(wanted):
        if not isinstance(given, Mapping):
            raise ConfigError(f"The settings of {name} must be a mapping, not {given!r}.")
        chosen[name] = dict(given)
    for name, more in (settings or {}).items():
        methods[name]  # raises UnknownName
        if name not in chosen:
            raise ConfigError(
                f"{name}.{next(iter(more), '…')} was set, but {name} is not among the methods: "
                f"{', '.join(chosen)}. Request it as well."
            )
        chosen[name] |= more
    for name, given in chosen.items():
        methods.build(name, **given)  # raises ConfigError for wrong settings
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


def _non_default(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings that differ from the defaults, without `of`, which is stored apart."""
    part: Any = methods[name]
    default = {one.name: one.default for one in fields(part)} if is_dataclass(part) else {}
    return {
        key: value
        for key, value in given.items()
        if key != "of" and default.get(key, MISSING) != value
    }
