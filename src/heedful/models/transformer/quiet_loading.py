"""Use transformers without progress bars and warnings, and with one-line errors."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any

from heedful.core.errors import ModelError
from heedful.models.loading.errors import one_line_errors


@contextmanager
def loading_transformers(name: str | Path) -> Iterator[Any]:
    """Yield the transformers package, quiet; its errors become one-line ModelErrors."""
    try:
        import transformers
    except ImportError:
        raise ModelError(
            "A transformers model needs transformers: pip install 'heedful[transformers]'."
        ) from None
    with quiet_transformers(), one_line_errors(f"{name} cannot be loaded by transformers"):
        yield transformers


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and warnings of transformers and torch inside the block."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as library

    logging: Any = library
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub_before, set_hub = hub.get_verbosity(), hub.set_verbosity
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    set_hub(ERROR)  # it logs every retry without a network
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a refusal is one line
            yield
    finally:
        set_hub(hub_before)
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
