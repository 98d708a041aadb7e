"""One net around loading: what goes wrong in other libraries becomes one line with its cause."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.core.errors import HeedfulError, ModelError, is_out_of_memory

MOST_SIGNS, LONGEST_LINE = 400, 1500  # of a cause or a name that is shown, and of a message
LEFT_ALONE = (HeedfulError, KeyboardInterrupt, SystemExit, GeneratorExit)


class MemoryRanOut(ModelError, MemoryError):
    """Memory ran out while a model was loaded, which says nothing about the model."""


@contextmanager
def one_line_errors(failure: str) -> Iterator[None]:
    """Turn every foreign error in the block into a ModelError that begins with `failure`.

    Memory that runs out is a `MemoryRanOut`; our own errors and interruptions stay what they are.
    Panics of libraries written in Rust are no `Exception`, so that all others are caught.

    >>> with one_line_errors("x cannot be loaded"):
    ...     raise AttributeError("no\\nattribute")
    Traceback (most recent call last):
    heedful.core.errors.ModelError: x cannot be loaded: AttributeError: no attribute
    """
    try:
        yield
    except LEFT_ALONE as error:
        if isinstance(error, HeedfulError) and len(str(error)) > LONGEST_LINE:
            raise type(error)(shortened(error, LONGEST_LINE)) from error
        raise
    except BaseException as error:
        if is_out_of_memory(error):
            raise MemoryRanOut(
                f"{shortened(failure)}: memory ran out; free some, or use a machine with more."
            ) from error
        raise ModelError(f"{shortened(failure)}: {cause(error)}") from error


def cause(error: BaseException) -> str:
    """An error in one line: what it says, after its type where that says more."""
    lines = str(error).strip().splitlines()
    if lines and isinstance(error, (OSError, ImportError)):
        return shortened(lines[0])  # the others give advice on transformers
    said = shortened(" ".join(str(error).split()))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shortened(text: object, most: int = MOST_SIGNS) -> str:
    """A text that fits into a line; of a longer one its beginning and its end.

    >>> shortened("ab")
    'ab'
    """
    whole = str(text)
    half = most // 2
    return whole if len(whole) <= most else f"{whole[:half]} … {whole[-half:]}"


def shown(path: Path, name: str = "") -> str:
    """A path, or a file in a folder, as it stands in messages."""
    return shortened(path / name if name else path)
