"""Jain & Wallace's taus on SST, ours beside the published, over seeds.

    python -m benchmarks.sst_2019 DATA --out docs/studies/sst-2019.md

DATA is the folder of SST as the authors cleaned it (train, dev and test). One line per trained
model is kept in a .jsonl beside the page, so an interrupted study goes on where it stopped.
"""

import argparse
import json
import platform
import statistics
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

from scipy import stats

SEEDS = range(5)
SETUPS = {  # name: (attention, embeddings, published τ_g, τ_loo, τ_g-loo)
    "additive, GloVe-50": ("additive", "glove", (0.35, 0.29, 0.66)),
    "dot, GloVe-50": ("dot", "glove", (0.07, 0.06, 0.71)),
    "additive, random 300": ("additive", None, None),
}
TAUS = ("tau_gradient", "tau_leave_one_out", "tau_gradient_leave_one_out")


def study(job):
    """Train and audit one model; agreement only."""
    name, seed, data = job
    import numpy as np
    import torch

    import heedful
    from heedful.numerics.stats.classification_scores import accuracy
    from heedful.training.loop.predictions import predict_all

    torch.set_num_threads(1)
    attention, embeddings, _ = SETUPS[name]
    train = heedful.read(data, split="train")
    dev, test = (heedful.read(data, split=s, labels=train.labels) for s in ("dev", "test"))
    recipe = heedful.Recipe(attention=attention, embeddings=embeddings, seed=seed, min_words=6)
    subject = heedful.fit(train, dev, recipe)
    subject.network.double()
    texts = [one for one in map(subject.encode, test) if one.explained_tokens >= 6]
    outputs = predict_all(subject, texts).probabilities.numpy()
    gold = np.array([one.label for one in texts])
    run = heedful.audit(subject, test, checks=["agreement", "permutation"], min_words=6)
    checks = run.verdict.checks
    found = checks["agreement"].estimates | checks["permutation"].estimates
    return {
        "setup": name,
        "seed": seed,
        "accuracy": accuracy(outputs.argmax(1), gold),
        "texts": len(texts),
        "epoch": subject.history["best_epoch"],
        "answer": run.verdict.answer,
        "degree": run.verdict.degree.estimate.value,
        **{measure: one.value for measure, one in found.items()},
    }


def over_seeds(values):
    """Mean with the t interval over seeds."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean:.3f} ± {half:.3f}"


def page(rows):
    """The study as Markdown."""
    lines = [
        "# SST, BiLSTM: the taus of Jain & Wallace (2019) over seeds",
        "",
        f"{date.today().isoformat()}, Python {platform.python_version()}, 2 cores, one thread a "
        f"model. {len(SEEDS)} seeds each: mean ± half of the 95 % t interval over seeds. Test "
        f"texts of at least 6 words ({rows[0]['texts']}). Published: the authors' result files.",
        "",
        "| set-up | accuracy | τ gradient | τ leave-one-out | τ gradient, leave-one-out | degree |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, (_, _, published) in SETUPS.items():
        mine = [row for row in rows if row["setup"] == name]
        if not mine:
            continue
        columns = ("accuracy", *TAUS, "degree")
        cells = [over_seeds([row[c] for row in mine]) for c in columns]
        if published:
            for place, figure in enumerate(published, 1):
                cells[place] += f" ({figure:.2f})"
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "In brackets: published. Each model:",
        "",
        "| set-up | seed | accuracy | " + " | ".join(TAUS) + " | median_tvd | answer |",
        "| --- " * 8 + "|",
    ]
    for row in sorted(rows, key=lambda row: (row["setup"], row["seed"])):
        numbers = " | ".join(f"{row[c]:.3f}" for c in ("accuracy", *TAUS, "median_tvd"))
        lines.append(f"| {row['setup']} | {row['seed']} | {numbers} | {row['answer']} |")
    return "\n".join(lines) + "\n" + READING


READING = """
## Reading

- Additive attention agrees with leave-one-out better than dot attention does in every seed, as
  published.
- τ leave-one-out of additive attention is where the paper has it; τ gradient and the agreement of
  the two references are lower, and dot attention agrees better than in the paper. With random
  vectors of 300 numbers the references agree far better (0.76) and attention far worse, and seeds
  differ by 0.2: the taus hang on the word vectors. The paper's were fastText vectors of 300
  numbers, which we do not have; that is the likely reason, not yet shown by an experiment.
- The answer changes with the seed for additive attention, whose degree lies near the middle, and
  never for dot attention. An audit speaks of one trained model.

## What differs from the paper's set-up

| | paper | here |
| --- | --- | --- |
| word vectors | fastText, 300 | GloVe-50, or random 300 |
| choice of epoch | best dev ROC-AUC, never the first epoch | best dev ROC-AUC, any epoch |
| seeds | not set, one run | five |
| test texts | 1 725: the longest is dropped as well | 1 726 |
| arithmetic of the audit | float32 | float64, importances within 1e-6 of the largest tied |
| leave-one-out and gradient | as published | the same |
"""


def main():
    """Run what is not done yet, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, default=Path("docs/studies/sst-2019.md"))
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    kept = asked.out.with_suffix(".jsonl")
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(row["setup"], row["seed"]) for row in rows}
    jobs = [
        (name, seed, asked.data) for seed in SEEDS for name in SETUPS if (name, seed) not in done
    ]
    with ProcessPoolExecutor(asked.workers) as pool, kept.open("a") as log:
        for row in pool.map(study, jobs):
            rows.append(row)
            log.write(json.dumps(row) + "\n")
            log.flush()
            print({key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()})
    asked.out.write_text(page(rows))
    print(page(rows))


if __name__ == "__main__":
    main()
