"""Subjects for the table of methods: planted ones whose decisive word is known, and SST's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import heedful
from heedful.data.dataset import Dataset
from heedful.methods import methods
from heedful.models.protocols import Subject
from heedful.models.recurrent.model_folder import save_model
from heedful.planted import Case, TrainedCase
from heedful.training.fit_diffmask import evaluate_gates

FEWER = {"lime": {"samples": 300}, "kernel_shap": {"samples": 300}}
LEFT_OUT = ("uniform", "shapley")  # a control by itself; 2^20 passes for a text of 20 words
BY_HAND = ("honest-peaked", "hidden", "frozen", "leaky")
COMPILED = ("compiled-copy", "compiled-early")
TRAINED = ("trained-peaked", "trained-beside", "trained-away", "trained-leaky")
PLANTED_TEXTS, SST_TEXTS, TUNED_ON = 25, 100, 2000
MASKING = {  # a layer is told once in seven steps: MiniLM has more and smaller ones
    "BiLSTM": heedful.Masking(epochs=6),
    "MiniLM": heedful.Masking(epochs=3, batch=8),
}


@dataclass(frozen=True)
class Group:
    """Subjects of one kind, each with its texts; `settings` of methods that need some."""

    title: str
    members: Mapping[str, tuple[Subject, Dataset]]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remark: str = ""

    @property
    def asked(self) -> dict[str, Mapping[str, Any]]:
        """Every method with its settings; DiffMask where an explainer was trained."""
        chosen = {**FEWER, **self.settings}
        names = (one for one in methods if one not in LEFT_OUT)
        return {one: chosen.get(one, {}) for one in names if one != "diffmask" or one in chosen}


def planted() -> Iterator[Group]:
    """Cases with one decisive word a text: written by hand, trained, compiled to transformers."""
    yield Group(
        "Planted, written by hand", dict(_case(Case(one, "middle", 20, 1), one) for one in BY_HAND)
    )
    trained = dict(_case(TrainedCase(one, 20, 1), one) for one in TRAINED)
    yield Group("Planted, trained: classifiers of the 2019 papers", trained)
    compiled = dict(_case(Case(one, "middle", 20, 1), one) for one in COMPILED)
    yield Group("Planted, compiled: transformers", compiled)


def _case(case: Case | TrainedCase, name: str) -> tuple[str, tuple[Subject, Dataset]]:
    """The subject, and its texts with the decisive word marked."""
    plant = case.plant if isinstance(case, Case) else case.accepted_attempt.plant
    rows = []
    for row in case.texts(PLANTED_TEXTS):
        words = row["text"].split()
        decisive = [at for at, word in enumerate(words) if int(word[1:]) < plant.cues]
        if len(decisive) != 1:
            raise ValueError(f"{name}: {len(decisive)} decisive words in {row['text']!r}.")
        rows.append({**row, "tokens": words, "rationale": decisive})
    return name, (case.subject, heedful.read(rows, labels=case.subject.labels))


def sst(data: Path, work: Path) -> Iterator[Group]:
    """The sentences of the treebank, before a BiLSTM and before MiniLM."""
    for name, make in (("BiLSTM", _bilstm), ("MiniLM", _minilm)):
        folder = make(data, work / name)
        subject = heedful.load(folder)
        gates = work / f"{name}-gates"
        train, dev, test = (
            heedful.read(str(data), split=split, labels=subject.labels, limit=limit)
            for split, limit in (("train", TUNED_ON), ("dev", 300), ("test", SST_TEXTS))
        )
        recipe = MASKING[name]
        made = heedful.fit_diffmask(subject, train, recipe, dev=dev, out=gates)
        kl, left = evaluate_gates(made, subject, test)
        yield Group(
            f"SST, {name}",
            {name: (subject, test)},
            {"diffmask": {"explainer": str(gates)}},
            f"DiffMask (ε {recipe.epsilon:g}), {recipe.epochs} epochs of batches of "
            f"{recipe.batch} on {len(train)} sentences, {made.history['cpu_seconds']:.0f} CPU "
            f"seconds; on the test sentences KL by layer {_row(kl)}, share of words left "
            f"{_row(left)}.",
        )


def _row(numbers: Sequence[float]) -> str:
    return ", ".join(f"{one:.3f}" for one in numbers)


def _bilstm(data: Path, out: Path) -> Path:
    if not (out / "heedful.json").exists():
        train, dev = (heedful.read(str(data), split=split) for split in ("train", "dev"))
        save_model(heedful.fit(train, dev, heedful.Recipe(embeddings="glove", epochs=8)), out)
    return out


def _minilm(data: Path, out: Path) -> Path:
    if not (out / "config.json").exists():
        train = heedful.read(str(data), split="train", limit=TUNED_ON)
        dev = heedful.read(str(data), split="dev", labels=train.labels, limit=500)
        heedful.finetune(train, dev, heedful.FineTuning(encoder="minilm", epochs=2), out=out)
    return out
