"""The rebuttal on SST: what retraining, guiding, adversaries and deceivers show, beside the papers.

    python -m benchmarks.sst_retraining DATA --work runs/sst --out docs/studies/sst-retraining.md

DATA is the folder of SST as Jain & Wallace cleaned it (train, dev and test). Models and the run lie
in the work folder: an interrupted study goes on where it stopped.
"""

import argparse
import json
import platform
from datetime import date
from pathlib import Path

import heedful

CHECKS = ("necessity", "seeds", "guide", "adversary", "erasure", "deception")
CHECKS += ("agreement", "permutation")
PUBLISHED = Path(__file__).parent / "published" / "sst-retraining.json"
WORDS = 6  # texts shorter than this are left out, as in the papers


def study(data, work):
    """Train the base model unless it is there, audit it, and give the run."""
    model = Path(work) / "model"
    if not (model / "heedful.json").exists():
        from heedful.models.recurrent.model_folder import save_model

        train = heedful.read(data, split="train")
        dev = heedful.read(data, split="dev", labels=train.labels)
        recipe = heedful.Recipe(embeddings="glove", min_words=WORDS)
        save_model(heedful.fit(train, dev, recipe), model)
    plan = heedful.Plan(str(model), str(data), checks=CHECKS, min_words=WORDS)
    return heedful.audit(str(model), str(data), plan=plan, out=Path(work) / "run")


def page(run):
    """The page: ours beside the published, each with its mark."""
    checks, manifest = run.verdict.checks, run.manifest
    versions, texts = manifest["versions"], manifest["data"]["texts"] - manifest["too_short"]
    lines = [
        "# SST, BiLSTM: the rebuttal and the other trials",
        "",
        f"{date.today()}, Python {platform.python_version()}, heedful {versions['heedful']}, torch "
        f"{versions['torch']}, 2 cores. {texts} test texts of at least {WORDS} words; GloVe-50; "
        "one base model (seed 0). Intervals: 95 %, over seeds and texts where there are several "
        "seeds, else over texts.",
        "",
        _models(manifest["retrained"]),
        "",
        "| check | measure | ours | published | mark | what differs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in json.loads(PUBLISHED.read_text(encoding="utf-8")):
        found = checks[row["check"]].estimates[row["measure"]]
        cells = f"`{row['check']}`", f"`{row['measure']}`", str(found)
        lines.append(f"| {' | '.join((*cells, row['published'], row['mark'], row['differs']))} |")
    lines += ["", "## What each check says", ""]
    lines += [f"- `{name}` ({one.answer}): {one.why}" for name, one in checks.items()]
    lines += ["", "## The claims", ""]
    lines += [f"- *{name}* — {one.answer}. {one.why}" for name, one in run.verdict.claims.items()]
    return "\n".join(lines) + "\n"


def _models(told):
    epochs = [one["epochs"] for one in told]
    plateau = sum(bool(one["plateau"]) for one in told)
    cpu = sum(one["cpu_seconds"] for one in told)
    return (
        f"{len(told)} models made anew, {min(epochs)} to {max(epochs)} epochs each, {plateau} of "
        f"them until the dev score no longer rose, in {cpu:.0f} CPU seconds."
    )


def main():
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs/sst"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.write_text(page(study(given.data, given.work)), encoding="utf-8")


if __name__ == "__main__":
    main()
