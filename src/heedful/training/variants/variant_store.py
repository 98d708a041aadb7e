"""Folders of trained variants, named by everything that the result depends on."""

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
from heedful.models.transformer.from_pretrained import load_pretrained
from heedful.models.transformer.new_classifier import save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.loop.epochs import Checkpoint
from heedful.training.variants.models import TrainingContext, UniformTransformer, convert_subject
from heedful.training.variants.texts import EncodedTexts
from heedful.training.variants.variants import (
    TrainedVariant,
    Variant,
    train_variant,
    variant_to_dict,
)

VARIANT_FILE = "lesson.json"  # written last: a folder with this file holds a finished model
MODELS_IN_MEMORY = 2  # most are used one at a time, guided models with their source


@dataclass(frozen=True, eq=False)
class VariantStore:
    """Trains variants of a base model, each in a folder of its own, and loads them.

    `origin` is everything that all variants depend on; `tuning` is the fine-tuning recipe of the
    base model if it is a transformer.
    """

    folder: Path
    base: Subject
    train: EncodedTexts
    dev: EncodedTexts
    origin: Mapping[str, Any]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    loaded: LRUCache[str, TrainedVariant] = field(
        default_factory=lambda: LRUCache(MODELS_IN_MEMORY)
    )

    def key(self, variant: Variant) -> str:
        """A hash of the variant and of everything else that the trained model depends on."""
        versions = {name: version(name) for name in ("heedful", "torch")}
        content = json.dumps(
            [variant_to_dict(variant), dict(self.origin), versions], sort_keys=True
        )
        return blake2b(content.encode(), digest_size=10).hexdigest()

    def variant_folder(self, variant: Variant) -> Path:
        """The folder of a variant."""
        return self.folder / self.key(variant)

    def done(self, variant: Variant) -> bool:
        """Whether the variant is trained."""
        return (self.variant_folder(variant) / VARIANT_FILE).exists()

    def train_variant(self, variant: Variant, progress: Progress = no_progress) -> None:
        """Train the variant in this process, or resume its training."""
        key, folder = self.key(variant), self.variant_folder(variant)
        checkpoint = Checkpoint(folder, {"lesson": key})
        context = TrainingContext(
            self.base,
            self.train,
            self.dev,
            lambda one: self.trained(one).subject,
            self.tuning,
            checkpoint,
            progress,
        )
        trained = train_variant(variant, context)
        _save_variant(trained, folder)
        named = {"key": key, "name": str(variant), "lesson": variant_to_dict(variant)}
        record = json.dumps({**named, **trained.record}, indent=1)
        write_atomic(folder / VARIANT_FILE, record)
        checkpoint.delete()

    def trained(self, variant: Variant) -> TrainedVariant:
        """The trained variant, loaded from its folder; the last few are kept in memory."""
        return self.loaded.get(
            self.key(variant), lambda: _load_variant(self.variant_folder(variant), self.base)
        )

    def record(self, variant: Variant) -> dict[str, Any]:
        """The record of the training, read without the weights."""
        return _read_record(self.variant_folder(variant))


def dependency_order(requested: Sequence[Variant]) -> list[Variant]:
    """Each variant once, after those it needs."""
    ordered: dict[Variant, None] = {}

    def add(variant: Variant) -> None:
        for one in variant.needs:
            add(one)
        ordered[variant] = None

    for one in requested:
        add(one)
    return list(ordered)


def _save_variant(trained: TrainedVariant, folder: Path) -> None:
    if isinstance(trained.subject, RecurrentSubject):
        trained.subject.history.update(trained.record)
        save_model(trained.subject, folder)
    else:
        assert isinstance(trained.subject, TransformerSubject)  # noqa: S101 - the only other kind
        save_classifier(trained.subject, folder, extra_files={})


def _read_record(folder: Path) -> dict[str, Any]:
    path = folder / VARIANT_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise ValueError("it must hold a JSON object")
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}. Remove {folder}.") from error
    return record


def _load_variant(folder: Path, base: Subject) -> TrainedVariant:
    """Load a trained variant; a transformer with the precision and scope of the base model."""
    record = _read_record(folder)
    if (folder / "heedful.json").exists():
        return TrainedVariant(load_model(folder), record)
    assert isinstance(base, TransformerSubject)  # noqa: S101 - the only other kind
    gc.collect()  # a transformers model has reference cycles: frees the one dropped before
    dtype = str(base.model.dtype).removeprefix("torch.")
    subject = load_pretrained(folder, dtype=dtype, scope=base.scope)
    if record["lesson"].get("attention") == "uniform":
        subject = convert_subject(subject, UniformTransformer)
    return TrainedVariant(subject, record)
