"""Are the intervals honest? Audits simulated by drawing texts from a population that is known.

python -m benchmarks.intervals [--audits 2000]

The first rows are of populations known by formula (`benchmarks.simulated_texts`): independent
texts, copies, documents, skewed figures, ratios of sums. For the others a population is a few
thousand texts of a planted subject, measured once by the real checks. A simulated audit draws some
of them and makes its intervals as an audit does; it is right where they hold the population's own
figure. Under a true null, orders that are drawn at random are held against others drawn at random.

Exit 1 where a coverage is certainly outside 93–97 % (below 93 % for the crossed intervals, which
are cautious by design), or false alarms are certainly above 5 %. What 40 lognormal values with
σ = 1.5 give is reported and not judged.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np
import torch
from scipy.stats import binomtest

from benchmarks.chance import random_losses
from benchmarks.simulated_texts import simulated_coverage
from heedful.checks import checks
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.numerics.stats.bootstrap import estimate_means, estimate_place
from heedful.numerics.stats.crossed_bootstrap import estimate_from_draws, resample_crossed
from heedful.numerics.stats.multiple_testing import holm_adjusted
from heedful.numerics.stats.permutation_tests import one_sided_sign_flip_p
from heedful.pipeline.audit.job import run_job
from heedful.planted import Case

AUDITS, TEXTS, RESAMPLES, POPULATION = 2000, 100, 500, 2000
CASES = (Case("hidden", "hard", 20, 11), Case("running", "middle", 20, 12))
MEASURES = {
    "agreement": ("tau_leave_one_out", "tau_gradient_leave_one_out", "top1_leave_one_out"),
    "permutation": ("median_tvd", "leverage"),
    "erasure": ("flip_top", "js_top_minus_random", "fraction_to_flip_attention"),
}
PLACE = ("tau_leave_one_out", "tau_shuffled_leave_one_out", "tau_gradient_leave_one_out")
NULLS, OTHERS = 4, 5  # orders that stand for methods, and those that they are held against
SEEDS = 5


def main() -> int:
    """Print a line for each figure; the exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--audits", type=int, default=AUDITS)
    audits = asked.parse_args().audits
    torch.set_num_threads(1)
    honest = True
    for name, hits, judged in simulated_coverage(audits):
        low, high = (0.93, 0.97) if judged else (0.0, 1.0)
        honest &= _told(f"coverage, {name}", hits, audits, low=low, high=high, judged=judged)
    for case in CASES:
        for name, hits in _covered(_population(case), audits):
            honest &= _told(f"{case.kind}: {name}", hits, audits, low=0.93, high=0.97)
    for name, hits in _crossed(audits):
        honest &= _told(name, hits, audits, low=0.93, high=1.0)
    for name, alarms in _alarms(CASES[0], audits):
        honest &= _told(name, alarms, audits, low=0.0, high=0.05)
    print(f"intervals: {'honest' if honest else 'not honest'} over {audits} simulated audits")
    return 0 if honest else 1


def _told(
    name: str, hits: int, audits: int, *, low: float, high: float, judged: bool = True
) -> bool:
    """Print a row; whether the share may lie between two numbers, by its exact interval."""
    ends = binomtest(hits, audits).proportion_ci(0.95, "exact")
    fine = ends.high >= low and ends.low <= high
    mark = ("" if fine else "  <- outside") if judged else "  (not judged)"
    figures = f"{hits / audits:6.1%}  [{ends.low:.1%}, {ends.high:.1%}]"
    print(f"{name:<60} {figures}{mark}", flush=True)
    return bool(fine)


def _population(case: Case) -> dict[str, np.ndarray]:
    """Every measure of every text."""
    parts = {name: checks.build(name) for name in MEASURES}
    found = run_job(
        case.subject, _examples(case, POPULATION), parts, seed=0, max_batch_tokens=20_000
    )
    columns: dict[str, np.ndarray] = {}
    for column in found.columns:
        if column.key.plain:
            one = columns.setdefault(column.key.measure, np.full(POPULATION, np.nan))
            one[column.instances] = column.values
    return columns


def _examples(case: Case, count: int) -> list[Example]:
    labels = case.subject.labels
    rows = case.texts(count)
    return [Example(n, row["text"], labels.index(row["label"])) for n, row in enumerate(rows)]


def _covered(columns: dict[str, np.ndarray], audits: int) -> Iterator[tuple[str, int]]:
    """How many audits' intervals hold the population's mean, or its degree."""
    names = [name for own in MEASURES.values() for name in own]
    truth = {name: float(np.nanmean(columns[name])) for name in names}
    whole = np.stack([columns[name] for name in PLACE])
    whole = whole[:, ~np.isnan(whole).any(0)].mean(1)
    degree = float((whole[0] - whole[1]) / (whole[2] - whole[1]))
    names = [name for name in names if np.nanstd(columns[name]) > 0]  # of texts all alike: nothing
    shares = {
        name
        for check, own in MEASURES.items()
        for name in own
        if checks.spec(check).measure(name).kind == "share"
    }
    hits, draw = dict.fromkeys([*names, "degree"], 0), generator(0, "simulated audits")
    for audit in range(audits):
        here = draw.integers(POPULATION, size=TEXTS)
        usual = {"resamples": RESAMPLES, "seed": audit}
        some = {name: columns[name][here] for name in names}
        found = estimate_means(some, **usual, shares=shares)
        for name, one in found.items():
            hits[name] += one.low <= truth[name] <= one.high
        place = estimate_place(*(columns[name][here] for name in PLACE), **usual).place
        hits["degree"] += place.low <= degree <= place.high
    yield from ((f"coverage of {name}", count) for name, count in hits.items())


def _crossed(audits: int) -> Iterator[tuple[str, int]]:
    """Differences of two arms, each retrained with some seeds: seeds and texts are drawn anew.

    Scores are right or wrong, as accuracies are; seeds move a model's accuracy by 0.02.
    """
    draw, hits = generator(0, "simulated retraining"), 0
    for audit in range(audits):
        ease = draw.normal(1.0, 1.0, TEXTS)
        tables = {}
        for arm in ("one", "other"):
            shift = draw.normal(0.0, 0.08, (SEEDS, 1))  # 0.08 in log-odds is 0.02 in accuracy
            odds = ease + shift + draw.normal(0.0, 1.0, (SEEDS, TEXTS))
            tables[arm] = (odds > 0).astype(np.float64)
        draws = resample_crossed(tables, resamples=RESAMPLES, seed=audit)
        gain = float(tables["one"].mean() - tables["other"].mean())
        one = estimate_from_draws(gain, draws["one"] - draws["other"], n=TEXTS)
        hits += one.low <= 0.0 <= one.high
    yield f"coverage of a gain over {SEEDS} seeds", hits


def _alarms(case: Case, audits: int) -> Iterator[tuple[str, int]]:
    """How often "beyond random" is found of orders that are random themselves."""
    lost = random_losses(case.subject, _examples(case, POPULATION), orders=NULLS + OTHERS)
    beyond = lost[:NULLS] - lost[NULLS:].mean(0)
    alone = together = 0
    draw = generator(0, "simulated nulls")
    for audit in range(audits):
        here = draw.integers(POPULATION, size=TEXTS)
        p = [one_sided_sign_flip_p(one[here], resamples=RESAMPLES, seed=audit) for one in beyond]
        alone += p[0] <= 0.05
        together += min(holm_adjusted(p)) <= 0.05
    yield "false alarms of beyond random, one method", alone
    yield f"false alarms of beyond random, any of {NULLS} methods", together


if __name__ == "__main__":
    sys.exit(main())
