"""`python -m benchmarks.diffmask`: DiffMask on its toy task and on reviews, and its cost.

On the toy task (`synthetic:counting`) the places that matter are known: the share of each method's
scores that lies on them, over held-out texts. On `sample:movies` a BiLSTM as in the demo, and an
explainer within its budget on sentences that neither of them has seen. One thread, a few minutes.
"""

import argparse
import copy
import platform
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import torch

import heedful
from benchmarks.counting import accuracy, trained
from heedful import Masking, Recipe
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.training.fit_diffmask import evaluate_gates, fit_diffmask

SPLITS = ("train", "dev", "test")
NAMES = ("attention", "input_x_gradient", "integrated_gradients", "leave_one_out")
TOY = Masking(epochs=24, rate=3e-3, multiplier_rate=0.3, aim=1.0)
MOVIES = Masking(epochs=6)


def share_on_truth(method, subject, data):
    """The mean over texts of the share of |scores| that lies on the words that matter.

    A text without any score counts for nothing; in float32 there would be some.
    """
    known = [subject.encode(one) for one in data]
    context = BatchContext(subject, subject.batch(known))
    scores = method(context, context.predicted).scores.abs().double()
    truth = torch.zeros_like(scores)
    for row, one in enumerate(data):
        truth[row, list(one.rationale)] = 1.0
    return float(((scores * truth).sum(-1) / scores.sum(-1)).nanmean())


def toy(folder: Path, *, seed: int = 0):
    """The counter, its explainer, and the table of shares."""
    train, dev, test = (heedful.read("synthetic:counting", split=one) for one in SPLITS)
    began = time.process_time()
    subject = trained(seed=seed)
    model = time.process_time() - began
    made = fit_diffmask(subject, train, replace(TOY, seed=seed), out=folder, dev=dev)
    texts, exact = list(test), replace(subject, network=copy.deepcopy(subject.network).double())
    parts = {name: methods.build(name) for name in NAMES}
    parts["diffmask"] = methods.build("diffmask", explainer=str(folder))
    shares = {name: share_on_truth(part, exact, texts) for name, part in parts.items()}
    told = {"accuracy": accuracy(subject, test), "model seconds": model, **made.history}
    return shares, told, evaluate_gates(made, subject, texts)


def movies(folder: Path):
    """A BiLSTM, its explainer, and what the gates do to sentences of the test split."""
    train, dev, test = (
        heedful.read("sample:movies", split=one) for one in ("train", "dev", "test")
    )
    subject = heedful.fit(train, dev, Recipe(embeddings="glove", min_words=6, epochs=4))
    made = fit_diffmask(subject, train, MOVIES, out=folder, dev=dev)
    return subject.history, made.history, evaluate_gates(made, subject, test)


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--toy", action="store_true", help="The toy task alone.")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{date.today()}, {platform.machine()}, torch {torch.__version__}, one thread")
    with tempfile.TemporaryDirectory() as folder:
        _tell_toy(*toy(Path(folder, "toy"), seed=chosen.seed))
        if not chosen.toy:
            _tell_movies(*movies(Path(folder, "movies")))


def _tell_toy(shares, told, held):
    print(f"\nsynthetic:counting, a counter that is right on {told['accuracy']:.1%} of test texts")
    print("| method | share of its scores on the places that matter |\n| --- | --- |")
    for name, share in shares.items():
        print(f"| `{name}` | {share:.3f} |")
    _tell_gates(told, held)


def _tell_movies(model, told, held):
    best = model["dev_scores"][model["best_epoch"] - 1]
    print(f"\nsample:movies, BiLSTM with dev score {best:.3f}, {model['cpu_seconds']:.0f} CPU s")
    _tell_gates(told, held)


def _tell_gates(told, held):
    budget, whole = told["recipe"]["epsilon"], told["kl_all_hidden"]
    print(
        f"explainer: {told['cpu_seconds']:.0f} CPU s, best epoch {told['best_epoch']}, "
        f"budget {budget:g}, KL with every word hidden {whole:.3f}"
    )
    print("| layer | mean KL on test | words open |\n| --- | --- | --- |")
    for layer, (moved, kept) in enumerate(zip(*held, strict=True)):
        print(f"| {layer} | {moved:.4f} | {kept:.1%} |", flush=True)


if __name__ == "__main__":
    main()
