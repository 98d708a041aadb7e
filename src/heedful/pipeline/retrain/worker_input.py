"""A school on disk, so that other processes can open it: base model, texts, and where models go."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.core.atomic_files import save_atomic, write_atomic
from heedful.core.errors import ModelError
from heedful.core.values import Example
from heedful.models.load import load_subject
from heedful.models.protocols import HasFingerprint, Subject
from heedful.models.recurrent.model_folder import load_model, save_model
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.context import EncodedTexts
from heedful.training.variants.variant_store import VariantStore

WORKER_INPUT_FILE, BASE_MODEL_FOLDER = "room.json", "base"


def write_worker_input(
    variant_store: VariantStore, *, model: str, choices: Mapping[str, Any]
) -> Path | None:
    """Write what a worker needs; None where the base model lives in this process alone."""
    folder = variant_store.folder / "room"
    if isinstance(variant_store.base, RecurrentSubject):
        save_model(variant_store.base, folder / BASE_MODEL_FOLDER)
        kind = str(variant_store.base.network.embedding.weight.dtype).removeprefix("torch.")
        where: dict[str, Any] = {"model": str(folder / BASE_MODEL_FOLDER), "dtype": kind}
    elif Path(model).exists():
        where = {"model": model, "choices": dict(choices)}
    else:
        return None
    for name, texts in (("train", variant_store.train), ("dev", variant_store.dev)):
        save_atomic(folder / f"{name}.jsonl", partial(_write_examples, texts.examples))
    settings = {
        **where,
        "folder": str(variant_store.folder),
        "min_words": variant_store.train.min_words,
        "origin": dict(variant_store.origin),
        "tuning": dict(variant_store.tuning),
    }
    write_atomic(folder / WORKER_INPUT_FILE, json.dumps(settings))
    return folder / WORKER_INPUT_FILE


def read_worker_input(path: Path) -> VariantStore:
    """The school that was written."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    base: Subject
    if "dtype" in settings:
        base = load_model(Path(settings["model"]), dtype=getattr(torch, settings["dtype"]))
    else:
        base = load_subject(settings["model"], **settings["choices"])
    if not isinstance(base, HasFingerprint) or base.fingerprint() != settings["origin"]["model"]:
        raise ModelError(f"{settings['model']} is another model than the one under audit.")
    train, dev = (
        EncodedTexts(
            base,
            _read_examples(path.parent / f"{name}.jsonl"),
            settings["min_words"],
            mark_hidden_words,
        )
        for name in ("train", "dev")
    )
    return VariantStore(
        Path(settings["folder"]), base, train, dev, settings["origin"], settings["tuning"]
    )


def new_variant_store(
    folder: Path,
    base: Subject,
    texts: tuple[Sequence[Example], Sequence[Example]],
    *,
    min_words: int,
    origin: Mapping[str, Any],
    tuning: Mapping[str, Any],
) -> VariantStore:
    """A school for a base model and its training and dev texts."""
    train, dev = (EncodedTexts(base, one, min_words, mark_hidden_words) for one in texts)
    return VariantStore(folder, base, train, dev, origin, tuning)


def _write_examples(examples: Sequence[Example], draft: str) -> None:
    with open(draft, "w", encoding="utf-8") as file:  # noqa: PTH123 - a draft's name is a string
        for one in examples:
            file.write(json.dumps(asdict(one)) + "\n")


def _read_examples(path: Path) -> list[Example]:
    found = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            for name in ("tokens", "rationale", "word_scores", "candidates"):
                raw[name] = None if raw[name] is None else tuple(raw[name])
            found.append(Example(**raw))
    return found
