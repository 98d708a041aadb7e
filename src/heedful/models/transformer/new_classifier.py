"""A new classifier on a pretrained encoder, and the transformers folder that it is kept in."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from heedful.core.atomic_files import remove_file, save_atomic, write_atomic
from heedful.core.errors import ModelError, RunError
from heedful.models.load import HUB_ID_PATTERN
from heedful.models.recurrent.model_folder import MODEL_SETTINGS_FILE
from heedful.models.transformer.bundled_encoders import resolve_encoder
from heedful.models.transformer.from_pretrained import from_model
from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.models.transformer.subject import TransformerSubject

CONFIG_FILE = "config.json"  # a folder without it is no model


def new_classifier(
    encoder: str, labels: Sequence[str], *, seed: int, max_tokens: int
) -> tuple[TransformerSubject, list[str]]:
    """A classifier of these labels in float32, and the names of its weights that are new.

    They are drawn by the seed, whatever state torch's own stream is in. The seam is proved here:
    an encoder that could not be audited is refused before it is trained, not after.
    """
    encoder = resolve_encoder(encoder)
    _require_encoder(encoder)
    try:
        model, tokenizer, new = _load_with_new_head(encoder, labels, seed=seed)
    except ModelError as error:
        if Path(encoder).exists():
            raise
        raise ModelError(
            f"{encoder} is no folder here, and as a hub id it did not work: {error}"
        ) from error
    _require_pretrained(encoder, new, inside=model.base_model_prefix)
    subject = from_model(model, tokenizer)
    pieces = replace(subject.pieces, longest=min(subject.max_length, max_tokens))
    return replace(subject, pieces=pieces), new


def save_classifier(subject: TransformerSubject, folder: Path, *, beside: dict[str, str]) -> None:
    """Write the transformers folder, and the files `beside` it; config.json, the last, makes it."""
    tokenizer = subject.pieces.tokenizer
    tokenizer.model_max_length = subject.max_length  # an audit cuts texts where training did
    with loading_transformers(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=folder, prefix="."))
            try:
                subject.model.save_pretrained(draft)
                tokenizer.save_pretrained(draft)
                _move_into_place(draft, folder, beside)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        except (OSError, SafetensorError) as error:  # the latter is its word for a full disk
            raise RunError(f"Cannot write {folder}: {error}.") from error


def _load_with_new_head(
    encoder: str, labels: Sequence[str], *, seed: int
) -> tuple[Any, Any, list[str]]:
    """The model, its tokenizer, and the names of the weights that were not in the folder."""
    with loading_transformers(encoder) as transformers, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(encoder, trust_remote_code=False)
        try:
            model, told = transformers.AutoModelForSequenceClassification.from_pretrained(
                encoder,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                num_labels=len(labels),
                id2label=dict(enumerate(labels)),
                label2id={name: number for number, name in enumerate(labels)},
                problem_type="single_label_classification",
                ignore_mismatched_sizes=True,  # the head of a classifier of more or fewer classes
                output_loading_info=True,
            )
        except (SafetensorError, RuntimeError) as error:
            raise ModelError(f"The weights of {encoder} cannot be used: {error}.") from error
    return (
        model,
        tokenizer,
        sorted(set(told["missing_keys"]) | {name for name, *_ in told["mismatched_keys"]}),
    )


def _move_into_place(draft: Path, folder: Path, beside: dict[str, str]) -> None:
    """Never half old, half new: what is cut off half-way is no model."""
    remove_file(folder / CONFIG_FILE)
    remove_file(folder / MODEL_SETTINGS_FILE)
    for name, text in beside.items():
        write_atomic(folder / name, text)
    for file in sorted(draft.iterdir(), key=lambda file: (file.name == CONFIG_FILE, file.name)):
        save_atomic(folder / file.name, partial(os.replace, file))


def _require_encoder(name: str) -> None:
    folder = Path(name)
    if (folder / MODEL_SETTINGS_FILE).exists():
        raise ModelError(f"{name} is a heedful model; an encoder is a transformers folder.")
    if folder.exists() and not (folder / CONFIG_FILE).is_file():
        raise ModelError(f"{name} is no transformers folder: {CONFIG_FILE} is missing.")
    if not folder.exists() and not HUB_ID_PATTERN.fullmatch(name) and "/" in name:
        raise ModelError(f"No encoder at {name}: give a transformers folder or a hub id.")


def _require_pretrained(encoder: str, new: Sequence[str], *, inside: str) -> None:
    """A head and a pooler may be new; an encoder without some of its weights is a mistake."""
    odd = [name for name in new if name.startswith(f"{inside}.") and "pooler" not in name]
    if inside and odd:
        raise ModelError(
            f"{encoder} has no fitting weights for {odd[0]} and {len(odd) - 1} more: "
            "its weights and its config.json do not belong together."
        )
