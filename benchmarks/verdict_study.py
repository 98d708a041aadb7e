"""The verdict on trained models: old answer, new answer, places, controls, second readings, flips.

python -m benchmarks.verdict_study --data-root DIR [--work runs/verdict-study] [--only sst …]
    > docs/studies/verdict-2.md

Trains what is missing (BiLSTM, CNN and average with additive attention on each set, MiniLM on two),
audits it, keeps one line of JSON per model in the work folder, and prints the page. An interrupted
study goes on where it stopped.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch

import heedful
from benchmarks.titration import vars_of
from heedful.checks.attention.agreement.spec import CONTROL, OWN, REFERENCE
from heedful.checks.attention.agreement.spec import RULES as AGREEMENT_RULES
from heedful.checks.influence.names import HALF, MASKING, MEAN, NEAR_FULL, SHUFFLED
from heedful.checks.influence.rules import RANKS_RULES, USED_RULES, Ranking
from heedful.checks.spec import Evidence, apply_rules
from heedful.core.records import Series, Verdict
from heedful.models.recurrent.model_folder import save_model
from heedful.models.transformer.new_classifier import MINILM
from heedful.numerics.stats.bootstrap import estimate_place
from heedful.training.fit import finetune
from heedful.training.recipe import FineTuning

CHECKS = ("influence", "agreement", "permutation", "adversarial")
SETTINGS = {"adversarial": {"steps": 50}}
FEW = {"imdb": 20, "20news_sports": 25}  # costly texts
ENCODERS = ("bilstm", "cnn", "average")
SETS = {  # name: training texts, epochs, audited texts
    "sst": (6920, 6, 300),
    "babi_qa1": (3000, 15, 200),
    "snli": (10000, 4, 200),
    "vader_movie_snippets": (2000, 6, 120),
    "20news_sports": (1167, 6, 50),
    "imdb": (4000, 4, 40),
}
TUNED = {"sst": (2000, 2, 120), "vader_movie_snippets": (2000, 2, 120)}
MAX_WORDS = 400
OLD = {"supports": "faithful", "refutes": "unfaithful", "undecided": "undecided"}


@dataclass(frozen=True)
class Trained:
    """A model of the study."""

    texts: str
    encoder: str
    train: int
    epochs: int
    audited: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.texts}-{self.encoder}"


def models() -> Iterator[Trained]:
    """Every model, those of one set together."""
    yield from (Trained(texts, "minilm", *sizes) for texts, sizes in TUNED.items())
    for texts, sizes in SETS.items():
        yield from (Trained(texts, encoder, *sizes) for encoder in ENCODERS)


def train(one: Trained, data: Path, folder: Path) -> None:
    """Train a model unless it is there."""
    if any((folder / name).exists() for name in ("heedful.json", "config.json")):
        return
    texts = heedful.read(str(data), split="train", limit=one.train)
    try:
        dev = heedful.read(str(data), split="dev", labels=texts.labels, limit=1000)
    except heedful.HeedfulError:
        dev = None  # some sets have none: a part of the training texts is set aside
    if one.encoder == "minilm":
        finetune(texts, dev, FineTuning(MINILM, epochs=one.epochs), out=folder)
        return
    recipe = heedful.Recipe(
        encoder=one.encoder, embeddings="glove", epochs=one.epochs, max_words=MAX_WORDS
    )
    save_model(heedful.fit(texts, dev, recipe), folder)


def old_answer(run: heedful.Run, verdict: Verdict) -> str:
    """The answer of the rule before: agreement with single deletion."""
    frame = run.to_dataframe()
    frame = frame[(frame["check"] == "agreement") & frame["layer"].isna() & frame["seed"].isna()]
    ends = (_values(frame, one) for one in (OWN, CONTROL, REFERENCE))
    evidence = Evidence(verdict.checks, {}, {"agreement": estimate_place(*ends)})
    return OLD[apply_rules(AGREEMENT_RULES, evidence)[0]]


def _values(frame: Any, series: Series) -> Any:
    method = frame["method"]
    mine = method.isna() if series.method is None else method == series.method
    found = frame[(frame["measure"] == series.measure) & mine]
    return found.sort_values("instance")["value"].to_numpy()


def examine(one: Trained, data: Path, work: Path) -> dict[str, Any]:
    """Train and audit one model."""
    folder = work / one.name
    train(one, data, folder / "model")
    subject = heedful.load(str(folder / "model"))
    rows = heedful.read(str(data), split="test", labels=subject.labels, limit=one.audited)
    influence = {"costly_texts": FEW.get(one.texts, 60)}
    settings = {**SETTINGS, "influence": influence}
    run = heedful.audit(
        subject, rows, checks=list(CHECKS), settings=settings, out=folder / "run", min_words=4
    )
    verdict = run.verdict
    evidence = Evidence(verdict.checks, {}, {})
    ranks, used = (apply_rules(rules, evidence) for rules in (RANKS_RULES, USED_RULES))
    found = Ranking(evidence)
    return {
        **asdict(one),
        "accuracy": vars_of(verdict.score.accuracy),
        "majority": round(verdict.score.majority, 3),
        "old": old_answer(run, verdict),
        "answer": verdict.answer,
        "ranks": ranks,
        "used": used,
        "places": {
            part.name: vars_of(part.estimate)
            for part in (found.order, found.mean_order, found.top_set, found.top_word)
        },
        "reliability": vars_of(evidence.of("influence", "reliability")),
        "leverage": vars_of(evidence.of("influence", "leverage_top")),
        "controls": {
            HALF: vars_of(Ranking(evidence, None, HALF).order.estimate),
            SHUFFLED: vars_of(Ranking(evidence, "attention", SHUFFLED).order.estimate),
        },
        "readings": {
            name: vars_of(evidence.of("influence", "order", method="attention", setting=name))
            for name in (MASKING, NEAR_FULL, MEAN)
        },
        "flips": verdict.flips.to_dict(),
        "instead": verdict.instead and [verdict.instead.method, vars_of(verdict.instead.order)],
        "by_method": {
            name: vars_of(estimate)
            for name, estimate in evidence.results["influence"].by_method("order").items()
        },
    }


def interval(numbers: list[float]) -> str:
    """A value with its interval."""
    value, low, high = numbers
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def flips_sentence(row: Mapping[str, Any]) -> str:
    """The flips of a model in words."""
    flips = row["flips"]
    best = flips["best_method"]
    named = f"; of {best['method']} {best['value']:.0%}" if best else ""
    own, random, most = (flips[name]["value"] for name in ("attention", "random", "best_set"))
    return (
        f"Without the 20 % of the words that attention names the prediction changes in {own:.0%} "
        f"of the texts{named}; best set found {most:.0%}; as many at random {random:.0%}."
    )


def page(rows: list[Mapping[str, Any]]) -> str:
    """The study as Markdown."""
    lines = [INTRODUCTION.format(today=date.today().isoformat())]
    lines += [
        "| set | model | accuracy | old answer | answer | order | mean over texts | top words | "
        "top word | reliability | leverage |",
        "| --- | --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        places = " | ".join(interval(one) for one in row["places"].values())
        lines.append(
            f"| {row['texts']} | {row['encoder']} | {row['accuracy'][0]:.2f} | {row['old']} | "
            f"{row['answer']} | {places} | {interval(row['reliability'])} | "
            f"{interval(row['leverage'])} |"
        )
    lines += ["", *summary(rows)]
    lines += [
        "",
        "## Controls and second readings",
        "",
        "*Half*: influence from one half of the orders, scored on the other. *Shuffled*: "
        "attention on other words.",
        "",
        "| set | model | half | shuffled | masking | near-full | mean over texts |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        cells = " | ".join(
            interval(one) for one in (*row["controls"].values(), *row["readings"].values())
        )
        lines.append(f"| {row['texts']} | {row['encoder']} | {cells} |")
    lines += ["", "## In words", ""]
    for row in rows:
        lines += [
            f"**{row['texts']}, {row['encoder']}** — *ranks*: {row['ranks'][0]}. {row['ranks'][1]} "
            f"*used*: {row['used'][0]}. {row['used'][1]} {flips_sentence(row)}",
            "",
        ]
    lines += [
        "## Order by method",
        "",
        "| set | model | methods, best first |",
        "| --- | --- | --- |",
    ]
    for row in rows:
        known = {n: v for n, v in row["by_method"].items() if v[0] == v[0]}
        best = sorted(known, key=lambda name: -known[name][0])
        cells = ", ".join(f"{name} {known[name][0]:.2f}" for name in best)
        lines.append(f"| {row['texts']} | {row['encoder']} | {cells} |")
    return "\n".join(lines) + "\n"


CLAUSES = {  # how reasons of an undecided claim begin
    "There is no yardstick": "no yardstick",
    "Attention answers differently": "parts of the texts answer differently",
    "Texts answer differently": "texts answer differently",
    "Two readings disagree": "two readings disagree",
    "The places do not decide": "an interval contains the middle",
}


def summary(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """How many models have each answer, and which clause leaves *ranks* undecided."""
    answers = Counter(row["answer"] for row in rows)
    counts = ", ".join(f"{number} {answer}" for answer, number in answers.most_common())
    why = [row["ranks"][1] for row in rows if row["ranks"][0] == "undecided"]
    clauses = Counter(
        next((name for start, name in CLAUSES.items() if one.startswith(start)), one) for one in why
    )
    listed = "; ".join(f"{name}: {number}" for name, number in clauses.most_common())
    yield f"Of {len(rows)} models: {counts}."
    if listed:
        yield f"What leaves *ranks* undecided: {listed}."


INTRODUCTION = """# The verdict on trained models

{today}. Each model is trained with few epochs on part of its set, then audited on test texts. *Old
answer*: that of the rule before, agreement with deleting single words. Places run from chance (0)
to a ranking by influence itself (1). Made by `python -m benchmarks.verdict_study`.

The demo's BiLSTM (`heedful demo`, 902 sentences) is undecided, because two readings disagree: order
is 0.634 [0.619, 0.647] where words are deleted, and 0.479 [0.442, 0.512] where they are masked. Its
other places are 1.190 [1.127, 1.257] and 0.739 [0.704, 0.772].
"""


def main() -> None:
    """Train, audit, print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--data-root", type=Path, required=True)
    asked.add_argument("--work", type=Path, default=Path("runs/verdict-study"))
    asked.add_argument("--only", nargs="*", help="names such as sst-bilstm; all by default")
    asked.add_argument("--page-only", action="store_true", help="print what is there")
    given = asked.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for one in models():
        kept = given.work / f"{one.name}.json"
        wanted = not given.only or one.name in given.only
        if not kept.exists() and wanted and not given.page_only:
            row = examine(one, given.data_root / one.texts, given.work)
            kept.write_text(json.dumps(row), "utf-8")
        if kept.exists():
            rows.append(json.loads(kept.read_text("utf-8")))
    print(page(rows))


if __name__ == "__main__":
    main()
