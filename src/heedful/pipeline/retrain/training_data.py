"""What retraining needs: training data, and the recipe of a transformer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from heedful.checks.retraining_base import RetrainingCheck
from heedful.core.errors import NotApplicable
from heedful.data.dataset import DEV_NAMES, Dataset
from heedful.data.read import DataLike, read, splits
from heedful.models.protocols import Subject
from heedful.pipeline.plan.plan import Plan, RetrainingSettings


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training and dev data; without dev data a part of the training data is set aside."""

    train: Dataset
    dev: Dataset | None

    def require_disjoint(self, data: Dataset) -> None:
        """Raise NotApplicable if the audited texts are also training or dev texts."""
        for what, one in (("trained", self.train), ("selected", self.dev)):
            if one is not None and one.sha256 == data.sha256:
                raise NotApplicable(
                    f"the audited texts are those that models are {what} on; audit another split"
                )

    def origin(self) -> dict[str, Any]:
        """The origin of the texts, part of the key of a retrained model."""
        return {
            name: None if one is None else one.origin()
            for name, one in (("train", self.train), ("dev", self.dev))
        }


def read_training_data(
    data: DataLike,
    plan: Plan,
    labels: Sequence[str],
    *,
    train: DataLike | None,
    dev: DataLike | None,
) -> TrainingData | None:
    """The training and dev data, if a check retrains and the data has them."""
    if not retraining_checks(plan) or not labels:
        return None
    limit = RetrainingSettings.of(plan.retraining).limit
    columns, cleaning = plan.fields or None, plan.cleaning
    if train is None:
        names = splits(data, cleaning=cleaning) if isinstance(data, str | Path) else ()
        if "train" not in names:
            return None
        own_dev = data if set(DEV_NAMES) & set(names) else None
        train, dev = data, dev if dev is not None else own_dev
    as_planned = partial(read, fields=columns, labels=labels, cleaning=cleaning)
    return TrainingData(
        as_planned(train, split="train", limit=limit),
        None if dev is None else as_planned(dev, split="dev"),
    )


def read_finetuning_recipe(subject: Subject, plan: Plan) -> dict[str, Any]:
    """The recipe to fine-tune a transformer by; NotApplicable if the plan does not allow it."""
    if (
        not hasattr(subject, "subword_tokenizer")
        or getattr(subject, "task", "") != "classification"
    ):
        raise NotApplicable(f"{subject.family} has no recipe to retrain it by")
    chosen = RetrainingSettings.of(plan.retraining)
    if not chosen.transformers:
        raise NotApplicable(
            "transformers are retrained on request only, because it takes long: give "
            "--retrain-transformers, or transformers = true under [retraining] in the plan"
        )
    recorded = dict(read_history(subject, plan).get("recipe", {}))
    if chosen.encoder:
        recorded["encoder"] = chosen.encoder
    if "encoder" not in recorded:
        raise NotApplicable(
            "the model does not record which encoder it was fine-tuned from: name it as encoder "
            "under [retraining] in the plan"
        )
    return recorded


def stat_recipe_files(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes and times of the files that a recipe names: word vectors or the pretrained encoder."""
    stats_by_key: dict[str, Any] = {}
    for key in ("embeddings", "encoder"):
        path = Path(str(recipe.get(key)))
        chosen = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = {one.name: one.stat() for one in chosen if one.is_file()}
        if stats:
            stats_by_key[key] = {name: [s.st_size, s.st_mtime_ns] for name, s in stats.items()}
    if "max_tokens" in recipe:  # the recipe of a transformer
        stats_by_key |= {name: version(name) for name in ("transformers", "tokenizers")}
    return stats_by_key


def read_history(subject: Subject, plan: Plan) -> dict[str, Any]:
    """The training history of the model, empty if it has none."""
    own: dict[str, Any] = getattr(subject, "history", {})
    path = Path(plan.model) / "training.json"
    if own or not path.is_file():
        return own
    try:
        history = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotApplicable(f"{path} cannot be read: {error}") from error
    return history if isinstance(history, dict) else {}


def retraining_checks(plan: Plan) -> dict[str, RetrainingCheck]:
    """The checks of the plan that retrain models."""
    built = plan.build_checks().items()
    return {name: one for name, one in built if isinstance(one, RetrainingCheck)}
