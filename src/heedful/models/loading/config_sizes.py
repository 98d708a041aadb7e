"""The config of a transformers folder, held against its weights before anything is built.

Each layer has a weight of its own, and each width, each head and each class is a part of some
dimension of a weight. Whatever a config asks for beyond that is not in the file.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.core.errors import ModelError
from heedful.models.loading.errors import shortened, shown
from heedful.models.loading.weights_header import WeightSizes

LAYERS = {
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    *("decoder_layers", "num_decoder_layers", "num_encoder_layers"),
}
WIDTHS = {
    *("hidden_size", "n_embd", "d_model", "dim", "embedding_size", "head_dim", "d_kv"),
    *("intermediate_size", "n_inner", "hidden_dim", "d_ff", "d_inner", "ffn_dim"),
    *("encoder_ffn_dim", "decoder_ffn_dim", "word_embed_proj_dim", "vocab_size"),
    *("num_attention_heads", "n_head", "n_heads", "num_heads", "num_key_value_heads"),
    *("encoder_attention_heads", "decoder_attention_heads", "num_labels"),
}
POSITIONS = {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"}
COUNTED = re.compile(r"(^|_)(layers?|heads?|experts|blocks)(_size|_dim)?$")  # names of other sizes
SHARED_LAYERS = 64  # layers of ALBERT share their weights
MOST_POSITIONS = 2**17  # without weights of their own, computed when the model is built
MOST_ROTARY_POSITIONS = 2**24  # computed for the text at hand
KERNELS = re.compile(r"(^|_)(attn|attention|experts)_implementation")


def check_config(config: Mapping[str, Any], path: Path, sizes: WeightSizes) -> None:
    """Require sizes that the weights can have, and nothing that leads out of the folder."""
    values = list(_values(config))
    rotary = any("rope" in name or "rotary" in name for _, name, _ in values)
    for where, name, value in values:
        called = f"{shown(path)}: {where}{shortened(name)}"
        if name == "transformers_weights" and value is not None:
            raise ModelError(f"{called} names other weights; keep them in model.safetensors.")
        if KERNELS.search(name) and "/" in str(value):
            raise ModelError(
                f"{called} is {shortened(repr(value))}; code from the hub is never run. Remove it."
            )
        for one in value if isinstance(value, list) else [value]:
            _check_size(called, name, one, sizes, rotary=rotary)
    names = config.get("id2label")
    if isinstance(names, (dict, list)) and len(names) > sizes.largest:
        raise ModelError(
            f"{shown(path)}: id2label names {len(names):,} classes; the largest dimension of the "
            f"weights is {sizes.largest:,}. Name the classes that the model has."
        )


def _check_size(called: str, name: str, value: Any, sizes: WeightSizes, *, rotary: bool) -> None:
    strict = name in LAYERS or name in WIDTHS
    if value is None or (not strict and type(value) is not int):
        return
    if type(value) is not int:
        raise ModelError(f"{called} must be a whole number, not {shortened(repr(value))}.")
    most = _most(name, sizes, rotary=rotary)
    if most is not None and not (1 if strict else -1) <= value <= most:
        raise ModelError(
            f"{called} is {shortened(value)}; with the {sizes.count:,} weights of this folder, of "
            f"{sizes.largest:,} rows or columns at most, it must lie between 1 and {most:,}. Its "
            "config and its weights do not belong together."
        )


def _most(name: str, sizes: WeightSizes, *, rotary: bool) -> int | None:
    """The largest value of a size; None for what is no size, or only bounds a part of the model."""
    if name in LAYERS:
        return max(sizes.count, SHARED_LAYERS)
    if name in WIDTHS:
        return sizes.largest
    if name in POSITIONS:
        return max(sizes.largest, MOST_ROTARY_POSITIONS if rotary else MOST_POSITIONS)
    return max(sizes.largest, sizes.count) if COUNTED.search(name) else None


def _values(
    config: Mapping[str, Any], where: str = "", depth: int = 4
) -> Iterator[tuple[str, str, Any]]:
    """Every key of a config and of the configs in it, with where it stands."""
    for name, value in config.items():
        yield where, name, value
        inner = isinstance(value, dict) and (
            name.endswith("config") or name in ("encoder", "decoder", "generator")
        )
        if inner and depth:
            yield from _values(value, f"{where}{shortened(name)}.", depth - 1)


def check_class_names(config: Mapping[str, Any], path: Path) -> None:
    """Require a name of its own for each class of a classifier; without id2label they are numbered.

    transformers takes `null` as two numbered classes, whatever the weights have: it is refused.
    """
    if "id2label" not in config:
        return
    names = config["id2label"]
    wanted = f"{shown(path)}: id2label must name the classes 0, 1, 2 … by texts that differ"
    if not isinstance(names, dict) or not names:
        raise ModelError(
            f"{wanted}; it is {shortened(repr(names))}. Name them, or remove id2label to have them "
            "numbered."
        )
    if sorted(names, key=lambda one: (len(one), one)) != [str(n) for n in range(len(names))]:
        raise ModelError(f"{wanted}; it names {shortened(', '.join(map(repr, names)))}.")
    for number, name in names.items():
        if not isinstance(name, str) or not _is_text(name):
            raise ModelError(f"{wanted}; that of {number} is {shortened(repr(name))}.")
    counts = Counter(names.values())
    if (twice := counts.most_common(1)[0])[1] > 1:
        raise ModelError(f"{wanted}; two are called {shortened(repr(twice[0]))}.")
    count = config.get("num_labels")
    if count is not None and count != len(names):
        raise ModelError(f"{wanted}; it names {len(names)}, and num_labels is {count}.")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
