"""What models are made anew from: training texts, and the recipe of a transformer."""

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
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.plan.retraining_settings import RetrainingSettings


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What models are trained on and chosen by; without dev texts some of the first serve."""

    train: Dataset
    dev: Dataset | None

    def require_disjoint(self, data: Dataset) -> None:
        """Refuse to audit on texts that models are trained on or chosen by."""
        for what, one in (("trained on", self.train), ("chosen by", self.dev)):
            if one is not None and one.sha256 == data.sha256:
                raise NotApplicable(
                    f"the texts under audit are those that models are {what}; audit another split"
                )

    def origin(self) -> dict[str, Any]:
        """Names the texts."""
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
    """The training and dev texts, where a check wants them and the data has them."""
    if not retraining_checks(plan) or not labels:
        return None
    limit = RetrainingSettings.of(plan.retraining).limit
    columns, cleaning = plan.fields or None, plan.cleaning
    if train is None:
        there = splits(data, cleaning=cleaning) if isinstance(data, str | Path) else ()
        if "train" not in there:
            return None
        judged = data if set(DEV_NAMES) & set(there) else None
        train, dev = data, dev if dev is not None else judged
    as_planned = partial(read, fields=columns, labels=labels, cleaning=cleaning)
    known = as_planned(train, split="train", limit=limit)
    return TrainingData(known, None if dev is None else as_planned(dev, split="dev"))


def read_finetuning_recipe(subject: Subject, plan: Plan) -> dict[str, Any]:
    """The recipe by which a transformer is tuned anew, where the plan allows that."""
    if (
        not hasattr(subject, "subword_tokenizer")
        or getattr(subject, "task", "") != "classification"
    ):
        raise NotApplicable(f"{subject.family} does not say how to train another one like it")
    chosen = RetrainingSettings.of(plan.retraining)
    if not chosen.transformers:
        raise NotApplicable(
            "transformers are tuned anew only where that is allowed, for it takes long: give "
            "--retrain-transformers, or transformers = true under [retraining] in the plan"
        )
    recorded = dict(read_history(subject, plan).get("recipe", {}))
    if chosen.encoder:
        recorded["encoder"] = chosen.encoder
    if "encoder" not in recorded:
        raise NotApplicable(
            "the model does not say which encoder it was tuned from: name it as encoder under "
            "[retraining] in the plan"
        )
    return recorded


def stat_recipe_files(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes and times of the files that a recipe names: vectors, or the encoder it starts from."""
    found: dict[str, Any] = {}
    for key in ("embeddings", "encoder"):
        path = Path(str(recipe.get(key)))
        chosen = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = {one.name: one.stat() for one in chosen if one.is_file()}
        if stats:
            found[key] = {name: [one.st_size, one.st_mtime_ns] for name, one in stats.items()}
    if "max_tokens" in recipe:  # a transformer's
        found |= {name: version(name) for name in ("transformers", "tokenizers")}
    return found


def read_history(subject: Subject, plan: Plan) -> dict[str, Any]:
    """How the model says it came about."""
    own: dict[str, Any] = getattr(subject, "history", {})
    path = Path(plan.model) / "training.json"
    if own or not path.is_file():
        return own
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotApplicable(f"{path} cannot be read: {error}") from error
    return found if isinstance(found, dict) else {}


def retraining_checks(plan: Plan) -> dict[str, RetrainingCheck]:
    """The plan's checks that have models made anew."""
    return {
        name: one for name, one in plan.build_checks().items() if isinstance(one, RetrainingCheck)
    }
