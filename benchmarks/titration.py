"""Does the verdict follow known doses of the truth, on models for which no truth is planted?

python -m benchmarks.titration MODEL DATA [--texts 60] [--split test] [--record NAME]

The attention under trial is replaced by the ranking of an independent estimate of influence (from
other random orders) mixed with noise: 0, 25, 50, 75 and 100 % of noise. Besides, the estimate is
reversed, and a decoy puts the fifth of the words with least influence first and leaves the others
in order. Every place must fall with the dose: from the first dose to the last certainly, and from
none to the next may it rise above the interval (a little noise seldom moves the top word). The pure
estimate must be found to rank words, pure noise and the reversed estimate must be refuted, and the
decoy must not be supported. Exit 1 where it is not so. `--record` keeps the curve, under a name, in
the table that ships with the check.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

import heedful
from benchmarks.audited import audit_examples
from heedful.checks.base import Findings, to_measurement
from heedful.checks.influence.check import InfluenceCheck, InfluenceOfBatch
from heedful.checks.influence.orders import Amounts, tied_ranks
from heedful.checks.influence.rules import Ranking
from heedful.checks.registry import checks
from heedful.checks.spec import Evidence
from heedful.core.atomic_files import write_atomic
from heedful.core.rng import generator
from heedful.models.batch_context import BatchContext
from heedful.pipeline.plan.plan import Plan

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
REVERSED, DECOY = "reversed", "decoy"
OTHER_SEED = 1_000_003  # of the orders behind the independent estimate
DECOY_SHARE = 0.2
TITRATIONS = Path("src/heedful/checks/influence/titrations.json")


def dose_name(dose: float) -> str:
    """The name of a dose of noise."""
    return f"{dose:.0%} noise"


@dataclass(frozen=True, eq=False)
class TitratedBatch(InfluenceOfBatch):
    """The influence of the words of a batch, and rankings whose quality is known."""

    def rankings(self):
        """Attention, and one ranking for each dose."""
        found, missing = super().rankings()
        context = self.context
        other = BatchContext(
            context.subject, context.batch, context.seed + OTHER_SEED, context.max_batch_tokens
        )
        independent = InfluenceOfBatch(self.check, other).drawn_influence
        for name in (*map(dose_name, DOSES), REVERSED, DECOY):
            found[name] = {
                row: tied_ranks(self._scores(name, row, m.whole)) for row, m in independent.items()
            }
        return found, missing

    def _scores(self, name: str, row: int, m: Amounts) -> Amounts:
        if name == REVERSED:
            return -m
        if name == DECOY:
            least = m.argsort()[: int(np.ceil(DECOY_SHARE * len(m)))]
            scores = m.copy()
            scores[least] += m.max() + 1.0
            return scores
        dose = next(one for one in DOSES if dose_name(one) == name)
        noise = self.draw(row, "noise of titration").normal(size=len(m))
        return (1 - dose) * standardise(m) + dose * noise


def standardise(m: Amounts) -> Amounts:
    """m less its mean, over its standard deviation; zeros where all are equal."""
    spread = m.std()
    return (m - m.mean()) / spread if spread else np.zeros_like(m)


@dataclass(frozen=True)
class TitratedCheck(InfluenceCheck):
    """The check `influence` with rankings whose quality is known."""

    def __call__(self, context: BatchContext) -> Findings:
        values, missing = TitratedBatch(self, context).values()
        return Findings(
            tuple(
                to_measurement(
                    key.measure, torch.from_numpy(column), key.setting, method=key.method
                )
                for key, column in values.items()
            ),
            missing,
        )


def titrate(model: str, data: str, split: str, texts: int) -> tuple[Evidence, list[str]]:
    """Estimates of every ranking on some texts, drawn by content."""
    subject = heedful.load(model)
    examples = list(heedful.read(data, split=split, labels=subject.labels))
    keys = [generator(0, f"titration {one.text}").random() for one in examples]
    chosen = [examples[place] for place in np.argsort(keys)[:texts]]
    own = InfluenceCheck(methods=("attention",), costly_texts=1)
    plan = Plan(model, data, checks=("influence",), settings={"influence": asdict(own)})
    fitted = plan.fitted(chosen, subject)
    titrated = TitratedCheck(**fitted.settings["influence"])
    evidence = audit_examples(subject, chosen, fitted, parts={"influence": titrated})
    return evidence, [*map(dose_name, DOSES), REVERSED, DECOY, "attention"]


def describe(evidence: Evidence, name: str) -> dict[str, object]:
    """The places of one ranking, and what they say."""
    found = Ranking(evidence, name)
    said = "supported" if found.supported else "refuted" if found.refuted else "undecided"
    places = (found.order, found.mean_order, found.top_set, found.top_word)
    return {
        "ranking": name,
        "answer": said,
        **{one.name: list(vars_of(one.estimate)) for one in places},
    }


def vars_of(estimate: object) -> tuple[float, float, float]:
    """Value and interval, rounded."""
    value, low, high = (round(getattr(estimate, end), 3) for end in ("value", "low", "high"))
    return value, low, high


def failures(rows: list[Mapping[str, object]]) -> list[str]:
    """What is not as it must be."""
    by_name = {row["ranking"]: row for row in rows}
    wrong = []
    for place, found in by_name[dose_name(0.0)].items():
        if isinstance(found, list):
            estimates = [by_name[dose_name(dose)][place] for dose in DOSES]
            rises = any(later[0] > now[2] for now, later in pairwise(estimates))
            if rises or not estimates[0][1] > estimates[-1][2]:
                wrong.append(f"{place} does not fall with the dose")
    if by_name[DECOY]["answer"] == "supported":
        wrong.append("the decoy is supported")
    if by_name[dose_name(0.0)]["answer"] != "supported":
        wrong.append("the independent estimate is not supported")
    wrong += [
        f"{name} is not refuted"
        for name in (dose_name(1.0), REVERSED)
        if by_name[name]["answer"] != "refuted"
    ]
    return wrong


def record(name: str, texts: int, rows: list[Mapping[str, object]]) -> None:
    """Keep the order of every ranking of a model in the table that ships with the check."""
    table = json.loads(TITRATIONS.read_text("utf-8")) if TITRATIONS.exists() else {}
    curve = {str(row["ranking"]): [row["answer"], *row["order"]] for row in rows}
    table[name] = {"texts": texts, "rankings": curve}
    lines = (f"{json.dumps(one)}: {json.dumps(found)}" for one, found in table.items())
    write_atomic(TITRATIONS, "{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Titrate one model; the exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("model")
    asked.add_argument("data")
    asked.add_argument("--split", default="test")
    asked.add_argument("--texts", type=int, default=60)
    asked.add_argument("--record", metavar="NAME", help="of the model, in the table that ships")
    given = asked.parse_args()
    torch.set_num_threads(1)
    checks.spec("influence")
    evidence, names = titrate(given.model, given.data, given.split, given.texts)
    rows = [describe(evidence, name) for name in names]
    reliability = vars_of(evidence.of("influence", "reliability"))
    for row in rows:
        cells = (
            "{:>6} [{:>5}, {:>5}]".format(*one) for one in row.values() if isinstance(one, list)
        )
        print(f"{row['ranking']:12}{row['answer']:11}", *cells)
    wrong = failures(rows)
    print(
        f"{given.model}: reliability {reliability}; "
        f"{'falls short: ' + '; '.join(wrong) if wrong else 'holds'}"
    )
    if given.record:
        record(given.record, given.texts, rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
