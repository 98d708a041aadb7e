"""The registry of checks: descriptions by name. Importing it needs no torch."""

from typing import Any

from heedful.checks.spec import CheckSpec
from heedful.core.errors import ConfigError
from heedful.core.registry import Registry


class CheckRegistry(Registry):
    """Checks by name, in the order they run and are shown; code is imported when it is built.

    A package adds checks by an entry point in the group `heedful.checks` that names a `CheckSpec`.
    """

    accepted = "a heedful.extend.CheckSpec, which names the class of the check"

    def add(self, spec: CheckSpec) -> CheckSpec:
        """Register a check by its description."""
        self.register(spec.name)(spec)
        return spec

    def _accepts(self, part: object) -> bool:
        return isinstance(part, CheckSpec)

    def spec(self, name: str) -> CheckSpec:
        """The description of a check."""
        found: Any = super().__getitem__(name)
        if not isinstance(found, CheckSpec):
            raise ConfigError(
                f"The check {name!r} is registered as {type(found).__name__}; register a "
                "heedful.extend.CheckSpec that names its class instead."
            )
        return found

    def specs(self) -> tuple[CheckSpec, ...]:
        """All descriptions."""
        return tuple(self.spec(name) for name in self)

    def __getitem__(self, name: str) -> Any:
        """The class of a check."""
        return self.spec(name).load()

    def name_of(self, part: object) -> str:
        """The name under which the class of a check was registered."""
        for spec in self.specs():
            if spec.load() is type(part):
                return spec.name
        return super().name_of(part)

    def summary(self, name: str) -> str:
        """The question of a check, and its source."""
        spec = self.spec(name)
        return f"{spec.question} ({spec.source})" if spec.source else spec.question


checks = CheckRegistry("check")


def default_checks() -> tuple[str, ...]:
    """The checks that run when none is named: those that do not retrain and need few passes."""
    return tuple(spec.name for spec in checks.specs() if spec.by_default and not spec.retrains)
