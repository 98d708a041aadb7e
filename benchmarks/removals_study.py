"""Methods beside their controls on SST and on the ERASER reviews: removal, and what people say.

    python -m benchmarks.removals_study --data-root DIR --minilm DIR --work runs/removals > PAGE.md

The BiLSTM is trained on each corpus, MiniLM is tuned on part of SST; on the reviews, which are ten
times as long as it can be tuned on here, the same model is audited. An interrupted study goes on
where it stopped.
"""

import argparse
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import torch

import heedful
from benchmarks.chance import random_losses
from heedful.core.records import CheckResult
from heedful.models.recurrent.model_folder import save_model
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.numerics.tensor.erasure_metrics import diagnosticity
from heedful.training.fit import finetune
from heedful.training.recipe import FineTuning

METHODS = ("gradient", "input_x_gradient", "integrated_gradients", "leave_one_out")
LONG = METHODS[:3]  # deleting each of 700 words takes 700 passes
SHOWN = ("comprehensiveness", "sufficiency", "beyond_random", "flip", "diagnosticity", "worst")
POINTS = ("auprc", "token_f1", "iou_f1", "beyond_random")
TEXTS = {"sst": 100, "eraser_movies": 20}
LONG_OF_MINILM = 10, {"max_length": 256}  # reviews of 512 tokens cost it five CPU minutes each
TUNED_ON = 2000
ORDERS = 5


def main() -> None:
    """Train what is missing, audit, and print the page."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--data-root", type=Path, required=True)
    asked.add_argument("--minilm", required=True, help="the folder of the pretrained encoder")
    asked.add_argument("--work", type=Path, default=Path("runs/removals"))
    given = asked.parse_args()
    print(INTRODUCTION.format(today=date.today().isoformat(), tuned=TUNED_ON))
    for corpus, texts in TEXTS.items():
        data = given.data_root / corpus
        for name, model in _models(corpus, given).items():
            print(f"\n## {corpus}, {name}\n")
            few = name == "MiniLM" and corpus == "eraser_movies"
            limit, choices = LONG_OF_MINILM if few else (texts, {})
            asked = Asked(corpus, str(model), str(data), limit, choices)
            _print(_audited(asked, given.work / f"{corpus}-{name}"))
            _chance(asked)


def _models(corpus: str, given: argparse.Namespace) -> dict[str, Path]:
    """Folders of the models; what is not there is trained."""
    bilstm, minilm = given.work / f"bilstm-{corpus}", given.work / "minilm-sst"
    if not (bilstm / "heedful.json").exists():
        epochs = 8 if corpus == "sst" else 4
        recipe = heedful.Recipe(embeddings="glove", epochs=epochs, max_words=1000)
        save_model(heedful.fit(*_splits(given.data_root / corpus), recipe), bilstm)
    if not (minilm / "config.json").exists():
        train, dev = _splits(given.data_root / "sst", TUNED_ON)
        finetune(train, dev, FineTuning(encoder=given.minilm, epochs=2), out=minilm)
    return {"BiLSTM": bilstm, "MiniLM": minilm}


def _splits(data: Path, limit: int | None = None) -> tuple[object, object]:
    train = heedful.read(str(data), split="train", limit=limit)
    return train, heedful.read(str(data), split="dev", labels=train.labels, limit=limit)


def _ways(corpus: str) -> tuple[str, ...]:
    return ("deletion", "masking") if corpus == "sst" else ("masking",)


@dataclass(frozen=True)
class Asked:
    """A model on some texts of a corpus, and how it is loaded."""

    corpus: str
    model: str
    data: str
    limit: int
    choices: dict[str, int]


def _audited(asked: Asked, out: Path) -> "heedful.Run":
    corpus = asked.corpus
    methods = METHODS if corpus == "sst" else LONG
    settings = {
        "faithfulness": {
            "methods": methods,
            "ways": _ways(corpus),
            "draws": 0,
            "perturbations": 0,  # integrated gradients ten times over would be most of the work
            "orders": 3,
            "steps": 5,
        }
    }
    checks = ["faithfulness"]
    if corpus == "eraser_movies":
        checks, settings = (
            [*checks, "plausibility"],
            settings | {"plausibility": {"methods": methods}},
        )
    plan = heedful.Plan(
        asked.model,
        asked.data,
        checks=tuple(checks),
        settings=settings,
        limit=asked.limit,
        subject=asked.choices,
    )
    return heedful.audit(asked.model, asked.data, plan=plan, out=out)


def _chance(asked: Asked) -> None:
    """Random orders, held against others as any method is; the mean over those of a text."""
    subject = heedful.load(asked.model, **asked.choices)
    texts = heedful.read(asked.data, limit=asked.limit, labels=subject.labels)
    way = _ways(asked.corpus)[0]
    lost = torch.from_numpy(random_losses(subject, list(texts), orders=2 * ORDERS, way=way))
    some, others = lost[:ORDERS], lost[ORDERS:]
    beyond, better = (some - others.mean(0)).mean(0), diagnosticity(some, others).mean(0)
    found = estimate_means({"beyond": beyond.numpy(), "better": better.numpy()})
    print(
        f"Random orders, held against {ORDERS} others: beyond random {found['beyond']}, "
        f"diagnosticity {found['better']}; 0 and ½ are expected.\n",
        flush=True,
    )


def _print(run: "heedful.Run") -> None:
    found, manifest = run.verdict.checks, run.manifest
    texts = manifest["data"]["texts"]
    print(f"{texts} texts, {manifest['truncated']} of them cut to what the model can read.\n")
    for check, measures in (("faithfulness", SHOWN), ("plausibility", POINTS)):
        if check in found:
            _table(found[check], measures)
            print(f"\n{found[check].why}\n")


def _table(result: CheckResult, measures: tuple[str, ...]) -> None:
    columns = [result.by_method(one) for one in measures]
    print("| method | " + " | ".join(f"`{one}`" for one in measures) + " |")
    print("| --- " * (len(measures) + 1) + "|")
    for name in columns[0]:
        cells = (str(column.get(name, "–")) for column in columns)
        print(f"| {name} | " + " | ".join(cells) + " |")


INTRODUCTION = """# Removing what methods name: SST and the ERASER movie reviews

{today}. Means over texts with 95 % intervals. `random` is the mean of three random
orders, against which `beyond_random` and `diagnosticity` are measured; `uniform` removes words as
they stand in the text. MiniLM was tuned on {tuned} sentences of SST for two epochs; of reviews it
reads the first 256 tokens. Removal is by deletion on SST, by masking on the reviews, where leaving
out each of 700 words in turn is too much for `leave_one_out`. Made by
`python -m benchmarks.removals_study`."""

if __name__ == "__main__":
    main()
