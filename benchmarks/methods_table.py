"""Every method beside every metric, and what a text costs it: planted subjects, and SST.

    python -m benchmarks.methods_table --data-root DIR --work runs/methods > docs/studies/methods.md

Planted are subjects whose decisive word is known. On SST a BiLSTM is trained and MiniLM tuned, and
an explainer of DiffMask is trained for each. An interrupted table goes on where it stopped.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

import heedful
from benchmarks.mass import found as mass_found
from benchmarks.methods_subjects import PLANTED_TEXTS, Group, planted, sst
from heedful.core.errors import NotApplicable
from heedful.core.records import Estimate, Series
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.stats.bootstrap import estimate_means

SHOWN = ("beyond_random", "comprehensiveness", "sufficiency", "flip", "diagnosticity")
TIMED, ROUNDS = 8, 3


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
        cells = [str(values.get(Series(one, name), "–")) for one in SHOWN]
        if firsts:
            cells.append(f"{firsts[name]:.2f}" if name in firsts else "–")
        cells += [f"{one:.3g}" for one in costs[name]] if name in costs else ["–", "–"]
        if set(cells) != {"–"}:
            print(f"| `{name}`{_served(values, name, texts)} | " + " | ".join(cells) + " |")
    if refused:
        print("\nNot there:\n")
    for name, why in refused.items():
        print(f"- {why}" if why.startswith(name) else f"- {name}: {why}")
    print(flush=True)


def _served(values: Mapping[Series, Estimate], name: str, texts: int) -> str:
    """On how many of the texts a method's figures rest, where it does not serve every subject."""
    found = values.get(Series("comprehensiveness", name))
    return f" ({found.n} of {texts} texts)" if found and found.n < texts else ""


def _faithful(group: Group, work: Path) -> tuple[dict[Series, Estimate], dict[str, str]]:
    """Means over all texts of the group, by measure and method; and why methods refused."""
    asked = [one for one in group.asked if one != "random"]
    settings = {
        "faithfulness": {
            **{"methods": asked, "ways": ["deletion"], "draws": 0},
            **{"perturbations": 0, "orders": 5, "steps": 10},
        }
    }
    chosen = {name: own for name, own in group.asked.items() if own}
    columns: dict[Series, list[np.ndarray]] = {}
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
        for (measure, method), rows in frame.groupby(["measure", "method"]):
            one = Series(str(measure), str(method))
            columns.setdefault(one, []).append(rows["value"].to_numpy())
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    known = {name: one for name, one in whole.items() if np.isfinite(one).any()}
    return dict(estimate_means(known)), _refused(group, asked, known)


def _refused(group: Group, asked: Sequence[str], known: Mapping[Series, Any]) -> dict[str, str]:
    """Why a method has no row: what it says of the first subject."""
    subject, data = next(iter(group.members.values()))
    context = _sitting(subject, list(data)[:1])
    reasons = {}
    for name in asked:
        if Series("comprehensiveness", name) not in known:
            try:
                methods.build(name, **group.asked[name])(context, context.predicted)
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
            context = _sitting(subject, texts)
            began = time.process_time()
            try:
                if part is None:
                    with torch.no_grad():
                        context.run_logits(context.batch)
                else:
                    part(context, context.predicted)
            except NotApplicable:
                continue
            spent.setdefault(name, []).append((time.process_time() - began) / len(texts))
    one_pass = statistics.median(spent.pop(""))
    medians = {name: statistics.median(many) for name, many in spent.items()}
    return {name: (1000 * one, one / one_pass) for name, one in medians.items()}


def _sitting(subject: Subject, texts: Sequence[Example]) -> BatchContext:
    encoded = [subject.encode(one) for one in texts]
    return BatchContext(subject, subject.batch(encoded), texts=encoded)


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
