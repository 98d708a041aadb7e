"""A school on disk, so that other processes can open it: base model, texts, and where models go."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from heedful.checks import mark
from heedful.core.atomic_files import save_atomic, write_atomic
from heedful.core.errors import ModelError
from heedful.core.values import Example
from heedful.models.load import load_named
from heedful.models.protocols import Fingerprinted, Subject
from heedful.models.recurrent.model_folder import load, save
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.context import Texts
from heedful.training.variants.variant_store import School

ROOM, BASE = "room.json", "base"


def write_room(school: School, *, model: str, choices: Mapping[str, Any]) -> Path | None:
    """Write what a worker needs; None where the base model lives in this process alone."""
    folder = school.folder / "room"
    if isinstance(school.base, RecurrentSubject):
        save(school.base, folder / BASE)
        kind = str(school.base.network.embedding.weight.dtype).removeprefix("torch.")
        where: dict[str, Any] = {"model": str(folder / BASE), "dtype": kind}
    elif Path(model).exists():
        where = {"model": model, "choices": dict(choices)}
    else:
        return None
    for name, texts in (("train", school.train), ("dev", school.dev)):
        save_atomic(folder / f"{name}.jsonl", partial(_write_examples, texts.examples))
    told = {
        **where,
        "folder": str(school.folder),
        "min_words": school.train.min_words,
        "origin": dict(school.origin),
        "tuning": dict(school.tuning),
    }
    write_atomic(folder / ROOM, json.dumps(told))
    return folder / ROOM


def open_room(path: Path) -> School:
    """The school that was written."""
    told = json.loads(path.read_text(encoding="utf-8"))
    base: Subject
    if "dtype" in told:
        base = load(Path(told["model"]), dtype=getattr(torch, told["dtype"]))
    else:
        base = load_named(told["model"], **told["choices"])
    if not isinstance(base, Fingerprinted) or base.fingerprint() != told["origin"]["model"]:
        raise ModelError(f"{told['model']} is another model than the one under audit.")
    train, dev = (
        Texts(base, _read_examples(path.parent / f"{name}.jsonl"), told["min_words"], mark)
        for name in ("train", "dev")
    )
    return School(Path(told["folder"]), base, train, dev, told["origin"], told["tuning"])


def new_school(
    folder: Path,
    base: Subject,
    texts: tuple[Sequence[Example], Sequence[Example]],
    *,
    min_words: int,
    origin: Mapping[str, Any],
    tuning: Mapping[str, Any],
) -> School:
    """A school for a base model and its training and dev texts."""
    train, dev = (Texts(base, one, min_words, mark) for one in texts)
    return School(folder, base, train, dev, origin, tuning)


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
