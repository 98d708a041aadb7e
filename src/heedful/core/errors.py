"""The errors that heedful raises on purpose.

HeedfulError
├── ConfigError           the request cannot be understood
│   └── UnknownName       no registered part of that name
├── DataError             the data cannot be read, or too much of it is bad
├── ModelError            the model folder cannot be read
├── RunError              the run folder cannot be used
├── ShapeError            a value breaks its promised shape
├── NotApplicable         this part cannot be applied to this subject, and why
└── AttentionUnavailable  the model gives no attention weights to audit
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def shorten_name(name: str, *, most: int = 80) -> str:
    """Shorten a name from a file for an error message.

    >>> shorten_name("good"), shorten_name("x" * 10_000, most=5)
    ('good', 'xxxx…')
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def show_value(value: object, *, most: int = 200) -> str:
    """A value as an error message shows it: on one line, shortened, whatever it is.

    >>> show_value("a\\nb"), show_value([1] * 1000, most=8)
    ("'a\\\\nb'", '[1, 1, …')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of 5000 digits, a table in a table in a table
        text = f"a value of type {type(value).__name__} that cannot be printed"
    return shorten_name(" ".join(text.split()), most=most)


def show_message(error: BaseException, *, most: int = 500) -> str:
    """What an error of another library says, on one line, shortened; else what it is.

    >>> show_message(ValueError("no\\n  number")), show_message(ValueError())
    ('no number', 'ValueError')
    """
    return shorten_name(" ".join(str(error).split()), most=most) or type(error).__name__


class HeedfulError(Exception):
    """Base of all errors heedful raises on purpose; the command line shows its message alone."""


class ConfigError(HeedfulError):
    """The request cannot be understood."""


class UnknownName(ConfigError):
    """No registered part has that name."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str]) -> "UnknownName":
        """The error that names the nearest of the known names, and all of them.

        >>> str(UnknownName.among("check", "agrement", ["agreement", "seeds"]))
        "No check is named 'agrement'. Did you mean 'agreement'? Known: agreement, seeds."
        """
        names = tuple(known)
        near = get_close_matches(name, names, n=1) if isinstance(name, str) else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return cls(f"No {kind} is named {show_value(name)}.{hint} Known: {', '.join(names)}.")


class DataError(HeedfulError):
    """The data cannot be read, or too much of it is bad."""


class ModelError(HeedfulError):
    """The model folder cannot be read."""


class RunError(HeedfulError):
    """The run folder cannot be used."""


class ShapeError(HeedfulError):
    """A value breaks its promised shape."""


class NotApplicable(HeedfulError):
    """This part cannot be applied to this subject; the message says why."""


class AttentionUnavailable(HeedfulError):
    """The model gives no attention weights to audit."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out.

    torch raises `OutOfMemoryError` on graphics cards and a RuntimeError that names the failed
    allocation elsewhere; this module must not import torch.
    """
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or "allocate" in str(error)


@contextmanager
def file_errors(refusal: str) -> Iterator[None]:
    """Turn the operating system's errors in the block into a RunError that begins with `refusal`.

    >>> with file_errors("Cannot write x"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    heedful.core.errors.RunError: Cannot write x: No space left on device.
    """
    try:
        yield
    except OSError as error:
        raise RunError(f"{refusal}: {error.strerror or error}.") from error
