"""Retraining in other processes: a variant store on disk, and the worker that opens it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.core.atomic_files import save_atomic, write_atomic
from heedful.core.errors import ConfigError, DataError, ModelError, NotApplicable
from heedful.core.process_pool import ReportProgress, TaskFunction
from heedful.core.values import Example
from heedful.models.load import load_subject
from heedful.models.protocols import HasFingerprint, Subject
from heedful.models.recurrent.model_folder import load_model, save_model
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.texts import EncodedTexts
from heedful.training.variants.variant_store import VariantStore
from heedful.training.variants.variants import Variant, variant_from_dict

WORKER_FOLDER, SETTINGS_FILE, BASE_MODEL_FOLDER = "worker_input", "settings.json", "base"
REFUSALS = (NotApplicable, ConfigError, DataError, ModelError)
"""Reasons why one variant cannot be trained; checks that do not need it go on."""


def train_or_refuse(
    variant_store: VariantStore, variant: Variant, report_progress: ReportProgress
) -> str | None:
    """Train a variant in this process; return the reason if it cannot be trained."""
    try:
        variant_store.train_variant(variant, lambda done, total, message: report_progress(message))  # noqa: ARG005
    except REFUSALS as reason:
        return str(reason)
    return None


def new_variant_store(
    folder: Path,
    base: Subject,
    texts: Sequence[Sequence[Example]],
    *,
    min_words: int,
    origin: Mapping[str, Any],
    tuning: Mapping[str, Any],
) -> VariantStore:
    """A variant store for a base model and its training and dev texts."""
    train, dev = (EncodedTexts(base, one, min_words, mark_hidden_words) for one in texts)
    return VariantStore(folder, base, train, dev, origin, tuning)


def write_worker_input(
    variant_store: VariantStore, *, model: str, choices: Mapping[str, Any]
) -> Path | None:
    """Write what a worker needs; None if the base model exists in this process only.

    `model` is the folder of a transformer, `choices` the options that it was loaded with.
    """
    folder = variant_store.folder / WORKER_FOLDER
    if isinstance(variant_store.base, RecurrentSubject):
        save_model(variant_store.base, folder / BASE_MODEL_FOLDER)
        dtype = str(variant_store.base.network.embedding.weight.dtype).removeprefix("torch.")
        source: dict[str, Any] = {"model": str(folder / BASE_MODEL_FOLDER), "dtype": dtype}
    elif Path(model).exists():
        source = {"model": model, "choices": dict(choices)}
    else:
        return None
    for name, texts in (("train", variant_store.train), ("dev", variant_store.dev)):
        save_atomic(folder / f"{name}.jsonl", partial(_write_examples, texts.examples))
    settings = {
        **source,
        "folder": str(variant_store.folder),
        "min_words": variant_store.train.min_words,
        "origin": dict(variant_store.origin),
        "tuning": dict(variant_store.tuning),
    }
    write_atomic(folder / SETTINGS_FILE, json.dumps(settings))
    return folder / SETTINGS_FILE


def read_worker_input(path: Path) -> VariantStore:
    """Open the variant store that `write_worker_input` has written."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    base: Subject
    if "dtype" in settings:
        base = load_model(Path(settings["model"]), dtype=getattr(torch, settings["dtype"]))
    else:
        base = load_subject(settings["model"], **settings["choices"])
    if not isinstance(base, HasFingerprint) or base.fingerprint() != settings["origin"]["model"]:
        raise ModelError(f"{settings['model']} is another model than the audited one.")
    return new_variant_store(
        Path(settings["folder"]),
        base,
        [_read_examples(path.parent / f"{name}.jsonl") for name in ("train", "dev")],
        **{name: settings[name] for name in ("min_words", "origin", "tuning")},
    )


def _write_examples(examples: Sequence[Example], draft: str) -> None:
    with open(draft, "w", encoding="utf-8") as file:  # noqa: PTH123 - a draft's name is a string
        for one in examples:
            file.write(json.dumps(asdict(one)) + "\n")


def _read_examples(path: Path) -> list[Example]:
    def with_tuples(row: dict[str, Any]) -> dict[str, Any]:  # JSON writes them as lists
        return {name: tuple(one) if isinstance(one, list) else one for name, one in row.items()}

    with path.open(encoding="utf-8") as lines:
        return [Example(**with_tuples(json.loads(line))) for line in lines]


def open_worker(input_file: str) -> TaskFunction:
    """The function that trains one variant in a worker process."""
    open_store = cache(partial(read_worker_input, Path(input_file)))

    def train(raw: dict[str, Any], report_progress: ReportProgress) -> str | None:
        try:
            variant_store = open_store()
        except REFUSALS as reason:
            return str(reason)
        return train_or_refuse(variant_store, variant_from_dict(raw), report_progress)

    return train
