"""Run one cell of a study: train, test and audit a model.

Finished steps are not repeated, so that an interrupted cell resumes where it stopped.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.api.functions import audit
from heedful.checks.retraining_base import RetrainingCheck
from heedful.core.atomic_files import write_atomic
from heedful.core.batch import Encoded
from heedful.core.errors import HeedfulError
from heedful.core.process_pool import ReportProgress, TaskFunction
from heedful.data.dataset import DEV_NAMES, Dataset
from heedful.data.read import read, splits
from heedful.models.load import load_subject
from heedful.models.protocols import Subject
from heedful.models.recurrent.model_folder import save_model
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.stats.classification_scores import accuracy, f1, roc_auc
from heedful.pipeline.plan.plan import Plan
from heedful.studies.grid import CELL_FILE, OWN_ATTENTION, StudyCell
from heedful.training.fit import HISTORY_FILE, finetune, fit
from heedful.training.loop.predictions import predict_all
from heedful.training.recipe import FineTuning, Recipe

MODEL, RUN, TRAINED = "model", "run", "trained.json"


def run_cell(cell: StudyCell, out: Path) -> dict[str, Any]:
    """Run the cell, write its record last, and return it."""
    place = cell.place(out)
    trained = _train_or_load(cell, place)
    subject = load_subject(place / MODEL)
    if isinstance(subject, RecurrentSubject):
        subject.network.double()  # ties and tiny differences must not depend on float32 rounding
    test = _read(cell, "test", subject.labels)
    started = time.process_time()
    performance = _performance(subject, [subject.encode(one) for one in test])
    plan = Plan(
        str(place / MODEL),
        cell.data,
        checks=cell.checks,
        settings=cell.settings,
        limit=cell.limits.get("test"),
        cleaning=cell.cleaning or None,
    )
    train = dev = None
    if any(isinstance(one, RetrainingCheck) for one in plan.build_checks().values()):
        train, dev = _read(cell, "train", subject.labels), _dev(cell, subject.labels)
    run = audit(subject, test, plan=plan, out=place / RUN, train=train, dev=dev)
    record = {
        **asdict(cell),
        "performance": performance,
        "texts": {**trained["texts"], "test": len(test)},
        "epochs": trained["epochs"],
        "best_epoch": trained["best_epoch"],
        "cpu_seconds": {
            "training": trained["cpu_seconds"],
            "audit": round(time.process_time() - started, 1),
            **{name: round(one["cpu"], 1) for name, one in run.manifest["seconds"].items()},
        },
        "versions": run.manifest["versions"],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomic(place / CELL_FILE, json.dumps(record, indent=1))
    return record


def _read(cell: StudyCell, split: str, labels: Sequence[str] | None = None) -> Dataset:
    limit, cleaning = cell.limits.get(split), cell.cleaning or None
    return read(cell.data, split=split, labels=labels, limit=limit, cleaning=cleaning)


def _dev(cell: StudyCell, labels: Sequence[str]) -> Dataset | None:
    names = splits(cell.data, cleaning=cell.cleaning or None)
    return _read(cell, "dev", labels) if set(DEV_NAMES) & set(names) else None


def _train_or_load(cell: StudyCell, place: Path) -> dict[str, Any]:
    """The record of the model's training; train it if there is none."""
    if (place / TRAINED).exists():
        existing: dict[str, Any] = json.loads((place / TRAINED).read_text(encoding="utf-8"))
        return existing
    train = _read(cell, "train")
    dev = _dev(cell, train.labels)
    history = (_tune if cell.attention == OWN_ATTENTION else _fit)(cell, train, dev, place / MODEL)
    record = {
        "texts": {"train": history["data"]["texts"], "dev": history["dev"]["texts"]},
        "epochs": len(history["dev_scores"]),
        "best_epoch": history["best_epoch"],
        "cpu_seconds": history["cpu_seconds"],
        "torch": version("torch"),
    }
    write_atomic(place / TRAINED, json.dumps(record, indent=1))
    return record


def _fit(cell: StudyCell, train: Dataset, dev: Dataset | None, out: Path) -> Mapping[str, Any]:
    given = {**cell.recipe, "embeddings": cell.recipe.get("embeddings") or None}
    recipe = Recipe(encoder=cell.encoder, attention=cell.attention, seed=cell.seed, **given)
    subject = fit(train, dev, recipe, kept=out.parent / "training")
    save_model(subject, out)
    return subject.history


def _tune(cell: StudyCell, train: Dataset, dev: Dataset | None, out: Path) -> Mapping[str, Any]:
    finetune(train, dev, FineTuning(cell.encoder, seed=cell.seed, **cell.recipe), out=out)
    history: Mapping[str, Any] = json.loads((out / HISTORY_FILE).read_text(encoding="utf-8"))
    return history


def _performance(subject: Subject, texts: Sequence[Encoded]) -> dict[str, float]:
    """Accuracy, and for two classes F1 of the second class and ROC-AUC."""
    outputs = predict_all(subject, texts).probabilities.numpy()
    gold = np.array([one.label for one in texts])
    scores = {"accuracy": accuracy(outputs.argmax(1), gold)}
    if outputs.shape[1] == 2:
        scores |= {"f1": f1(outputs.argmax(1), gold), "roc_auc": roc_auc(outputs[:, 1], gold)}
    return scores


def open_worker(out: str) -> TaskFunction:
    """The function that runs one cell in a worker process."""
    torch.set_num_threads(1)

    def run(raw: dict[str, Any], report_progress: ReportProgress) -> str | None:  # noqa: ARG001
        try:
            run_cell(StudyCell.from_json(json.dumps(raw)), Path(out))
        except HeedfulError as error:
            return str(error)
        return None

    return run
