"""Methods for which something must be made first: without it they can serve no model at all."""

import logging
from functools import cache
from typing import Protocol, runtime_checkable

from heedful.methods.base import methods


@runtime_checkable
class HasPrerequisite(Protocol):
    """A method that lacks something unless it is set, and says what and how to come by it."""

    @property
    def lacks(self) -> str | None: ...


def missing_prerequisite(part: object) -> str | None:
    """Why a method can serve no model as it is set; None of most."""
    return part.lacks if isinstance(part, HasPrerequisite) else None


def ready_methods() -> tuple[str, ...]:
    """All methods that may serve with their usual settings."""
    return tuple(name for name in methods if missing_prerequisite(methods.build(name)) is None)


@cache
def warn_left_out(name: str) -> None:
    """Say on stderr, or in the program's log, why "all" is without a method; once in a process."""
    logging.getLogger("heedful").warning(
        "%s is left out of all methods. %s", name, missing_prerequisite(methods.build(name))
    )
