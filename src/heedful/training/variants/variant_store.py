"""Retrained subjects by content: a folder each, made once, shared by all that ask for the same."""

import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from heedful.core.atomic_files import write_atomic
from heedful.core.cache import LRUCache
from heedful.core.errors import RunError
from heedful.core.timing import Progress, no_progress
from heedful.models.protocols import Subject
from heedful.models.recurrent.model_folder import load_model, save_model
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.loop.checkpoint import delete_checkpoint
from heedful.training.variants.context import (
    CheckpointSlot,
    EncodedTexts,
    TrainedVariant,
    TrainingContext,
    single_thread,
)
from heedful.training.variants.serialisation import variant_to_dict
from heedful.training.variants.variants import Variant

VARIANT_FILE = "lesson.json"  # written last: its folder holds a finished model
IN_MEMORY = 2  # models at once: most are looked at one by one, some are led by another


@dataclass(frozen=True, eq=False)
class VariantStore:
    """The folders of retrained subjects; `origin` is what all of them depend on.

    `tuning` is the recipe by which a transformer came about.
    """

    folder: Path
    base: Subject
    train: EncodedTexts
    dev: EncodedTexts
    origin: Mapping[str, Any]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    loaded: LRUCache[str, TrainedVariant] = field(default_factory=lambda: LRUCache(IN_MEMORY))

    def key(self, variant: Variant) -> str:
        """Names the lesson and everything else its outcome depends on."""
        made_by = {name: version(name) for name in ("heedful", "torch")}
        content = json.dumps([variant_to_dict(variant), dict(self.origin), made_by], sort_keys=True)
        return blake2b(content.encode(), digest_size=10).hexdigest()

    def place(self, variant: Variant) -> Path:
        """The lesson's folder."""
        return self.folder / self.key(variant)

    def done(self, variant: Variant) -> bool:
        """Whether the subject is there."""
        return (self.place(variant) / VARIANT_FILE).exists()

    def train_variant(self, variant: Variant, progress: Progress = no_progress) -> None:
        """Make the subject in this process, or go on where its making was cut off."""
        key, place = self.key(variant), self.place(variant)
        context = TrainingContext(
            self.base, self.train, self.dev, lambda one: self.trained(one).subject, self.tuning
        )
        with single_thread():
            trained = variant.train_variant(context, CheckpointSlot.at(place, key, progress))
        _save_variant(trained, place)
        record = {
            "key": key,
            "name": str(variant),
            "lesson": variant_to_dict(variant),
            **trained.record,
        }
        write_atomic(place / VARIANT_FILE, json.dumps(record, indent=1))
        delete_checkpoint(place)

    def trained(self, variant: Variant) -> TrainedVariant:
        """The subject, read from its folder; the last few are kept in memory."""
        return self.loaded.get(
            self.key(variant), lambda: _load_variant(self.place(variant), self.base)
        )

    def record(self, variant: Variant) -> dict[str, Any]:
        """How the training went, without reading the weights."""
        return _record(self.place(variant))


def dependency_order(asked: Sequence[Variant]) -> list[Variant]:
    """Each lesson once, after those it needs."""
    found: dict[Variant, None] = {}

    def add(variant: Variant) -> None:
        for one in variant.needs:
            add(one)
        found[variant] = None

    for one in asked:
        add(one)
    return list(found)


def _save_variant(trained: TrainedVariant, place: Path) -> None:
    if isinstance(trained.subject, RecurrentSubject):
        save_model(trained.subject, place)
        return
    from heedful.training.variants.transformer_variants import save_finetuned

    save_finetuned(trained.subject, place)


def _record(place: Path) -> dict[str, Any]:
    try:
        found = json.loads((place / VARIANT_FILE).read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it must hold a JSON object")
    except (OSError, ValueError) as error:
        raise RunError(
            f"{place / VARIANT_FILE} cannot be read: {error}. Remove {place}."
        ) from error
    return found


def _load_variant(place: Path, base: Subject) -> TrainedVariant:
    record = _record(place)
    if (place / "heedful.json").exists():
        return TrainedVariant(load_model(place), record)
    from heedful.training.variants.transformer_variants import load_finetuned

    gc.collect()  # transformers models refer to themselves: only now is one that was dropped gone
    return TrainedVariant(load_finetuned(place, record["lesson"], base), record)
