"""Every method beside every metric, and what a text costs it: planted subjects, and SST.

    python -m benchmarks.methods_table --data-root DIR --work runs/methods > docs/studies/methods.md

Planted are subjects whose decisive word is known. On SST a BiLSTM is trained and MiniLM tuned, and
an explainer of DiffMask is trained for each. An interrupted table goes on where it stopped.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

import heedful
from benchmarks.mass import found as mass_found
from heedful.core.errors import NotApplicable
from heedful.core.records import Estimate
from heedful.core.values import Example
from heedful.data.base import Dataset
from heedful.methods import methods
from heedful.models.base import Subject
from heedful.models.planting import Case
from heedful.models.sitting import Sitting
from heedful.models.store import save
from heedful.stats.interval import estimate_means
from heedful.training.diffmask import measure
from heedful.training.planting import TrainedCase

SHOWN = ("beyond_random", "comprehensiveness", "sufficiency", "flip", "diagnosticity")
FEWER = {"lime": {"samples": 300}, "kernel_shap": {"samples": 300}}
LEFT_OUT = ("uniform", "shapley")  # a control by itself; 2^20 passes for a text of 20 words
BY_HAND = ("honest-peaked", "hidden", "frozen", "leaky")
COMPILED = ("compiled-copy", "compiled-early")
TRAINED = ("trained-peaked", "trained-beside", "trained-away", "trained-leaky")
PLANTED_TEXTS, SST_TEXTS, TUNED_ON, TIMED, ROUNDS = 25, 100, 2000, 8, 3
EPOCHS = {"BiLSTM": 6, "MiniLM": 2}  # of the explainer


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


def main() -> None:
    """Print the page, a group at a time."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--data-root", type=Path, required=True)
    asked.add_argument("--work", type=Path, default=Path("runs/methods"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    print(INTRODUCTION.format(today=date.today().isoformat(), texts=PLANTED_TEXTS))
    for group in chain(planted(), sst(given.data_root / "sst", given.work)):
        tell(group, given.work)


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
    plant = case.plant if isinstance(case, Case) else case.grown.plant
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
        recipe = heedful.Masking(epochs=EPOCHS[name])
        made = heedful.fit_diffmask(subject, train, recipe, dev=dev, out=gates)
        kl, left = measure(made, subject, test)
        yield Group(
            f"SST, {name}",
            {name: (subject, test)},
            {"diffmask": {"explainer": str(gates)}},
            f"DiffMask at its usual settings (ε {recipe.epsilon:g}), {recipe.epochs} epochs on "
            f"{len(train)} sentences, {made.history['cpu_seconds']:.0f} CPU seconds; on the test "
            f"sentences KL by layer {_row(kl)}, share of words left {_row(left)}.",
        )


def _row(numbers: Sequence[float]) -> str:
    return ", ".join(f"{one:.3f}" for one in numbers)


def _bilstm(data: Path, out: Path) -> Path:
    if not (out / "heedful.json").exists():
        train, dev = (heedful.read(str(data), split=split) for split in ("train", "dev"))
        save(heedful.fit(train, dev, heedful.Recipe(embeddings="glove", epochs=8)), out)
    return out


def _minilm(data: Path, out: Path) -> Path:
    if not (out / "config.json").exists():
        train = heedful.read(str(data), split="train", limit=TUNED_ON)
        dev = heedful.read(str(data), split="dev", labels=train.labels, limit=500)
        heedful.finetune(train, dev, heedful.FineTuning(encoder="minilm", epochs=2), out=out)
    return out


def tell(group: Group, work: Path) -> None:
    """Print the group's table; a dash where a method does not serve."""
    values, refused = _faithful(group, work)
    firsts = _firsts(group)
    costs = _costs(group)
    texts = sum(len(data) for _, data in group.members.values())
    print(f"\n## {group.title}\n\n{', '.join(group.members)}; {texts} texts. {group.remark}\n")
    names = [*SHOWN, *(["decisive word first"] if firsts else []), "CPU ms a text", "passes"]
    print("| method | " + " | ".join(names) + " |\n" + "| --- " * (len(names) + 1) + "|")
    for name in [*group.asked, "uniform"]:
        cells = [
            str(values[f"{one}_{name}"]) if f"{one}_{name}" in values else "–" for one in SHOWN
        ]
        if firsts:
            cells.append(f"{firsts[name]:.2f}" if name in firsts else "–")
        cells += [f"{one:.3g}" for one in costs[name]] if name in costs else ["–", "–"]
        if set(cells) != {"–"}:
            print(f"| `{name}` | " + " | ".join(cells) + " |")
    if refused:
        print("\nNot there:\n")
    for name, why in refused.items():
        print(f"- {why}" if why.startswith(name) else f"- {name}: {why}")
    print(flush=True)


def _faithful(group: Group, work: Path) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Means over all texts of the group, by measure and method; and why methods refused."""
    asked = [one for one in group.asked if one != "random"]
    settings = {
        "faithfulness": {
            **{"methods": asked, "ways": ["deletion"], "draws": 0},
            **{"perturbations": 0, "orders": 5, "steps": 10},
        }
    }
    chosen = {name: own for name, own in group.asked.items() if own}
    columns: dict[str, list[np.ndarray]] = {}
    for name, (subject, data) in group.members.items():
        run = heedful.audit(
            subject,
            data,
            checks=["faithfulness"],
            settings=settings,
            methods=chosen,
            out=work / f"audit-{name}",
        )
        frame = run.to_dataframe()
        frame = frame[frame["setting"].isna()]
        for measured, rows in frame.groupby("measure"):
            columns.setdefault(str(measured), []).append(rows["value"].to_numpy())
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    known = {name: one for name, one in whole.items() if np.isfinite(one).any()}
    return dict(estimate_means(known)), _refused(group, asked, known)


def _refused(group: Group, asked: Sequence[str], known: Mapping[str, Any]) -> dict[str, str]:
    """Why a method has no row: what it says of the first subject."""
    subject, data = next(iter(group.members.values()))
    sitting = _sitting(subject, list(data)[:1])
    reasons = {}
    for name in asked:
        if f"comprehensiveness_{name}" not in known:
            try:
                methods.build(name, **group.asked[name])(sitting, sitting.predicted)
            except NotApplicable as reason:
                reasons[name] = str(reason)
    return reasons


def _firsts(group: Group) -> dict[str, float]:
    """How often the decisive word has the largest score, by size; where it is known."""
    marked = (pair for pair in group.members.values() if next(iter(pair[1])).rationale is not None)
    tables = [mass_found(*pair, methods=group.asked) for pair in marked]
    names = {name for table in tables for name in table}
    return {
        name: float(np.mean([table[name][1] for table in tables if name in table]))
        for name in names
    }


def _costs(group: Group) -> dict[str, tuple[float, float]]:
    """CPU milliseconds a text, and as multiples of one pass, each method by itself.

    Interleaved, one thread, medians of the rounds, on texts of the group's first subject.
    """
    subject, data = next(iter(group.members.values()))
    texts = list(data)[:TIMED]
    parts = {name: methods.build(name, **own) for name, own in group.asked.items()}
    spent: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, part in {"": None, **parts}.items():
            sitting = _sitting(subject, texts)
            began = time.process_time()
            try:
                if part is None:
                    with torch.no_grad():
                        sitting.outputs(sitting.batch)
                else:
                    part(sitting, sitting.predicted)
            except NotApplicable:
                continue
            spent.setdefault(name, []).append((time.process_time() - began) / len(texts))
    one_pass = statistics.median(spent.pop(""))
    medians = {name: statistics.median(many) for name, many in spent.items()}
    return {name: (1000 * one, one / one_pass) for name, one in medians.items()}


def _sitting(subject: Subject, texts: Sequence[Example]) -> Sitting:
    encoded = [subject.encode(one) for one in texts]
    return Sitting(subject, subject.batch(encoded), texts=encoded)


INTRODUCTION = """# Every method beside every metric, and what a text costs it

{today}, one thread. Means over texts with 95 % intervals, words deleted in each method's order
(`faithfulness`, five random orders): `beyond_random` is comprehensiveness less that of random
orders, `flip` the share of words to be deleted until the prediction flips (less is better),
`diagnosticity` how often a method beats a random order; `sufficiency` is better the lower.
*Decisive word first*: how often the one word that decides, by construction, has the largest score.
Planted subjects are of middle difficulty, texts of 10 to 30 words, {texts} for each kind; cost is
that of the first subject of a group, each method by itself (in an audit they share passes): CPU
milliseconds, and multiples of one forward pass. LIME and KernelSHAP take 300 samples; `shapley` is
left out (2^20 passes a text). A method that does not serve the subjects says why below the table.
Made by `python -m benchmarks.methods_table`."""

if __name__ == "__main__":
    main()
