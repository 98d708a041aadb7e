"""Use transformers without progress bars and warnings, and with one-line errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from heedful.core.errors import ModelError


@contextmanager
def loading_transformers(name: str | Path) -> Iterator[Any]:
    """Yield the transformers package, quiet; its errors become one-line ModelErrors."""
    try:
        import transformers
    except ImportError:
        raise ModelError(
            "A transformers model needs transformers: pip install 'heedful[transformers]'."
        ) from None
    with quiet_transformers():
        try:
            yield transformers
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise ModelError(f"{name} cannot be loaded by transformers: {first}") from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and warnings of transformers inside the block."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as library

    logging: Any = library
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub_before, set_hub = hub.get_verbosity(), hub.set_verbosity
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    set_hub(ERROR)  # it logs every retry without a network
    try:
        yield
    finally:
        set_hub(hub_before)
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
