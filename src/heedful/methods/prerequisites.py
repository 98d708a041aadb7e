"""Methods that need something to be made first, such as a trained explainer."""

import logging
from functools import cache
from typing import Protocol, runtime_checkable

from heedful.methods.base import methods


@runtime_checkable
class HasPrerequisite(Protocol):
    """A method that applies to no model until one of its settings is given."""

    @property
    def prerequisite_message(self) -> str | None: ...


def missing_prerequisite(part: object) -> str | None:
    """What must be made before a method can be used, and how; None where nothing is missing."""
    return part.prerequisite_message if isinstance(part, HasPrerequisite) else None


def ready_methods() -> tuple[str, ...]:
    """The names of all methods that can be used with their default settings."""
    return tuple(name for name in methods if missing_prerequisite(methods.build(name)) is None)


@cache
def warn_left_out(name: str) -> None:
    """Log a warning that "all" does not include a method, and why; once per process."""
    logging.getLogger("heedful").warning(
        "%s is left out of all methods. %s", name, missing_prerequisite(methods.build(name))
    )
