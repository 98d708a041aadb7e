"""A model folder: weights as safetensors, everything else as JSON, never pickle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.core.atomic_files import remove_file, save_atomic, write_atomic
from heedful.core.errors import HeedfulError, ModelError, is_out_of_memory
from heedful.models.loading.errors import one_line_errors, shown
from heedful.models.loading.files import MOST_BYTES
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import Vocabulary, WordTokenizer

MODEL_SCHEMA, QUERY_MODEL_SCHEMA = 1, 2  # models with a query need a newer reader
FLOAT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # no 8-bit floats
MODEL_WEIGHTS_FILE, MODEL_SETTINGS_FILE = "model.safetensors", "heedful.json"
VOCABULARY_FILE = "vocabulary.json"
SETTING_TYPES = {"labels": list, "max_words": int | None, "history": dict}


def save_model(subject: RecurrentSubject, folder: Path) -> None:
    """Write the model folder."""
    weights = {name: _as_kept(one) for name, one in subject.network.state_dict().items()}
    shape = asdict(subject.network.shape)
    settings = {
        "schema": QUERY_MODEL_SCHEMA if shape["query"] else MODEL_SCHEMA,
        "family": subject.family,
        "shape": shape if shape["query"] else {k: v for k, v in shape.items() if k != "query"},
        "labels": subject.labels,
        "tokenizer": asdict(subject.tokenizer),
        "max_words": subject.max_words,
        "history": subject.history,
    }
    # settings go first and come back last: an interrupted save never mixes an old and a new model
    remove_file(folder / MODEL_SETTINGS_FILE)
    save_tensors(folder / MODEL_WEIGHTS_FILE, weights)
    write_atomic(folder / VOCABULARY_FILE, json.dumps(subject.vocabulary.words, indent=0))
    write_atomic(folder / MODEL_SETTINGS_FILE, json.dumps(settings, indent=1))


def _as_kept(weight: Tensor) -> Tensor:
    """A weight in float32 where nothing of it is lost, else as it is."""
    own = weight.detach().contiguous()
    single = own.float()
    return single if torch.equal(single.to(own.dtype), own) else own


def save_tensors(
    path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file atomically."""

    def save(draft: str) -> None:
        try:
            save_file(tensors, draft, metadata)
        except SafetensorError as error:  # raised for a full disk, too
            raise OSError(str(error)) from error

    save_atomic(path, save)


def load_model(folder: Path, *, dtype: torch.dtype = torch.float64) -> RecurrentSubject:
    """Read a model folder.

    Audits run in float64: ranks of importances must not depend on how texts were batched, and in
    float32 the last bits of a matrix product do.
    """
    with one_line_errors(f"{folder} cannot be loaded"):
        return _load_model(folder, dtype)


def _load_model(folder: Path, dtype: torch.dtype) -> RecurrentSubject:
    settings = _read_json(folder / MODEL_SETTINGS_FILE, kind=dict)
    if settings.get("schema") not in (MODEL_SCHEMA, QUERY_MODEL_SCHEMA):
        raise ModelError(
            f"{folder / MODEL_SETTINGS_FILE} has schema {settings.get('schema')!r}; "
            f"this reads {MODEL_SCHEMA} and {QUERY_MODEL_SCHEMA}."
        )
    try:
        shape = Shape(**settings["shape"])
        vocabulary = Vocabulary(tuple(map(str, _read_json(folder / VOCABULARY_FILE, kind=list))))
        tokenizer = WordTokenizer(**settings["tokenizer"])
        for key, kind in SETTING_TYPES.items():
            if not isinstance(settings[key], kind):
                raise TypeError(f"{key} must be of type {kind}, not {settings[key]!r}")
        labels = tuple(map(str, settings["labels"]))
        weights = _read_weights(shape, folder / MODEL_WEIGHTS_FILE)
        network = AttentionClassifier(shape).to(dtype)  # at once: a copy in float32 would round
        network.load_state_dict(weights)
        limit, history = settings["max_words"], settings["history"]
        subject = RecurrentSubject(network, vocabulary, tokenizer, labels, limit, history)
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{folder / MODEL_SETTINGS_FILE} is incomplete or damaged: {error}."
        ) from error
    except RuntimeError as error:  # sizes beyond every machine
        if is_out_of_memory(error):
            raise
        raise ModelError(
            f"{folder / MODEL_SETTINGS_FILE} describes a network that cannot be built."
        ) from error
    except ModelError:
        raise
    except HeedfulError as error:
        raise ModelError(f"{folder} is not a usable model folder: {error}") from error
    network.eval().requires_grad_(False)
    return subject


def _read_weights(shape: Shape, path: Path) -> dict[str, Tensor]:
    """The weights, checked against the shape of the network."""
    with torch.device("meta"):  # sizes only: damaged settings could claim all the memory
        expected = AttentionClassifier(shape).state_dict()
    if not path.is_file():
        raise ModelError(
            f"{path} is missing; a model folder holds {MODEL_WEIGHTS_FILE}, "
            f"{MODEL_SETTINGS_FILE}, {VOCABULARY_FILE}."
        )
    try:
        weights: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read as safetensors: {error}.") from error
    if wrong := sorted(expected.keys() ^ weights.keys()):
        raise ModelError(
            f"{path} and {MODEL_SETTINGS_FILE} name different weights, such as {wrong[0]!r}."
        )
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape or tensor.dtype not in FLOAT_DTYPES:
            raise ModelError(
                f"{path}: {name} is {tuple(tensor.shape)} {tensor.dtype}; "
                f"{MODEL_SETTINGS_FILE} needs {tuple(expected[name].shape)} of floating point."
            )
        if not bool(tensor.isfinite().all()):
            raise ModelError(f"{path}: {name} holds values that are not finite.")
    return weights


def _read_json(path: Path, *, kind: type) -> Any:
    try:
        if not path.is_file():
            raise ModelError(
                f"No heedful model at {path.parent}: {path.name} is missing. Train one with "
                f"`heedful train DATA --out {path.parent}`, or give the folder of one."
            )
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ModelError(f"{shown(path)} has {size:,} bytes; it may have {MOST_BYTES:,}.")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        end = str(path)[-500:]
        raise ModelError(f"{end} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:  # recursion: brackets nested too deeply
        raise ModelError(f"{path} is not readable JSON: {error}.") from error
    if not isinstance(content, kind):
        raise ModelError(f"{path} must hold a JSON {kind.__name__}, not {type(content).__name__}.")
    return content
