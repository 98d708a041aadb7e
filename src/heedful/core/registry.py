"""Names for parts: one registry per kind, filled by decorators and by plug-ins."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from heedful.core.errors import ConfigError, UnknownName, show_value

PartT = TypeVar("PartT")


class Registry:
    """Parts of one kind by name; iterating gives the names in the order they were registered.

    A package adds parts of its own by an entry point in the group `heedful.<kind>s`. While one of
    them cannot be loaded, every use of the registry is refused with the reason.
    """

    accepted = "a class or a function"

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Any] = {}
        self._plugins_loaded = False

    def register(self, name: str) -> Callable[[PartT], PartT]:
        """Give a class or function its public name."""

        def remember(part: PartT) -> PartT:
            if name in self._parts:
                raise ConfigError(f"Two {self.kind}s want the name {name!r}; choose another.")
            self._parts[name] = part
            return part

        return remember

    def __getitem__(self, name: str) -> Any:
        self._load_plugins()
        if name not in self._parts:
            raise UnknownName.among(self.kind, name, self)
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(tuple(self._parts))

    def __contains__(self, name: object) -> bool:
        self._load_plugins()
        return name in self._parts

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def build(self, name: str, /, **settings: Any) -> Any:
        """Make the part with these settings; an unknown setting is an error."""
        part = self[name]
        known = [f.name for f in fields(part) if f.init] if is_dataclass(part) else []
        if extra := sorted(set(settings) - set(known)):
            allowed = ", ".join(known) or "none"
            raise ConfigError(
                f"{self.kind} {name!r} has no setting {show_value(extra[0])}. Settings: {allowed}."
            )
        return part(**settings)

    def name_of(self, part: object) -> str:
        """The name under which the class of a part was registered."""
        for name in self:
            if self._parts[name] is type(part):
                return name
        raise UnknownName(f"{part!r} is of no registered {self.kind}; register its class first.")

    def summary(self, name: str) -> str:
        """The first line of the part's documentation."""
        return (self[name].__doc__ or "").strip().partition("\n")[0]

    def _load_plugins(self) -> None:
        """All or none: an error leaves the registry as it was, and comes again at the next use."""
        if self._plugins_loaded:
            return
        found: dict[str, Any] = {}
        origin: dict[str, str] = {}
        for plugin in entry_points(group=f"heedful.{self.kind}s"):
            name, part = plugin.name, self._load(plugin)
            if found.get(name, self._parts.get(name, part)) is not part:
                raise ConfigError(
                    f"Two {self.kind}s want the name {name!r}: that of {_described(plugin)} and "
                    f"that of {origin.get(name, 'heedful itself')}. Rename it in its package, or "
                    "remove the package."
                )
            found[name], origin[name] = part, _described(plugin)
        self._parts.update(found)
        self._plugins_loaded = True

    def _load(self, plugin: EntryPoint) -> Any:
        """The part, whatever can go wrong in a package of somebody else's."""
        refused = f"The plug-in {plugin.name!r} of {_described(plugin)} cannot be loaded"
        mend = "Mend its package, or remove it"
        try:
            part = plugin.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}".rstrip(".: ")
            raise ConfigError(f"{refused}: {why}. {mend}.") from error
        if not self._accepts(part):
            raise ConfigError(f"{refused}: it must be {self.accepted}, not {part!r}. {mend}.")
        return part

    def _accepts(self, part: object) -> bool:
        return callable(part)


def _described(plugin: EntryPoint) -> str:
    package = "an unknown package" if plugin.dist is None else f"the package {plugin.dist.name}"
    return f"{package} ({plugin.value})"
