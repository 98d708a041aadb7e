"""Records of runs that retrained models, and never were."""

from dataclasses import replace
from math import nan

import numpy as np
import pyarrow as pa

from heedful.core.records import (
    CLAIMS,
    KEY_COLUMNS,
    CheckResult,
    ClaimResult,
    Estimate,
    EstimateRow,
    MeasureKey,
    MissingMeasure,
)
from heedful.results.tables import PartitionedTable
from support.records import estimated, records, tidy

N = 24
PLAN = """
[settings.necessity]
margin = 0.01
[settings.seeds]
adversary = 0.001
[settings.adversary]
epsilon = 0.05
[settings.deception]
margin = 0.02
"""
MODELS = (
    {
        "name": "own attention, seed 1",
        "epochs": 5,
        "best_epoch": 2,
        "plateau": True,
        "dev_scores": [0.7, 0.9, 0.8, 0.8, 0.8],
        "dev_accuracies": [0.6, 0.85, 0.8, 0.8, 0.8],
        "cpu_seconds": 9.25,
    },
    {"name": "λ 0.001 from base", "epochs": 31, "plateau": False, "cpu_seconds": 1.0},
    {"name": "uniform attention, seed 1", "epochs": 3, "plateau": None},
)
CLAIM_OF = {
    "necessity": "needed",
    "seeds": "robust",
    "guide": "ranks",
    "adversary": "exclusive",
    "deception": "robust",
    "roar": "ranks",
    "off_manifold": "ranks",
}


def flat(value):
    """The same of every text."""
    return np.full(N, value)


def halves(first, second):
    """The one of the first half of the texts, the other of the second."""
    return np.repeat([first, second], N // 2).astype(float)


def keyed(measure, **keys):
    """What identifies a column of a check."""
    return MeasureKey("", measure, **keys)


def columns(weights=("λ 0.001", "λ 0.01")):
    """What every check measured, by key."""
    few, many = weights
    return {
        "necessity": {
            keyed("score_trained", seed=1): flat(1.0),
            keyed("score_trained", seed=2): halves(1, 0),
            keyed("score_uniform", seed=1): halves(0, 1),
            keyed("score_uniform", seed=2): halves(0, 1),
        },
        "seeds": {
            keyed("jsd_seeds", seed=1): flat(0.1),
            keyed("jsd_seeds", seed=2): halves(0.1, 0.3),
            keyed("jsd_seeds"): halves(0.1, 0.2),
            keyed("jsd_adversary"): halves(0.5, 0.6),
            keyed("jsd_shuffled"): halves(0.3, 0.5),
            keyed("max_attention"): halves(0.3, 1.0),
            keyed("tvd_seeds"): halves(0.1, 0.3),
        },
        "guide": {
            keyed(f"score_{one}", seed=seed): flat(score)
            for one, score in (("uniform", 0.0), ("own", 1.0), ("base", 1.0), ("adversary", 0.0))
            for seed in (1, 2)
        },
        "adversary": {
            keyed(measure, setting=f"{weight}, {start}"): flat(value)
            for weight, start, values in (
                (many, "scratch", (0.6, 0.3, 0.5)),
                (few, "scratch", (0.5, 0.2, 0.75)),
                (few, "base", (0.4, 0.01, 1.0)),
            )
            for measure, value in zip(("jsd", "tvd", "score"), values, strict=True)
        },
        "deception": {
            keyed("mass_after", setting=few): flat(0.4),
            keyed("score_after", setting=few): flat(1.0),
            keyed("mass_after", setting=many): flat(0.1),
            keyed("score_after", setting=many): halves(1, 0),
        },
        "roar": {
            keyed("score_whole", seed=1): flat(1.0),
            **{
                keyed("score", method=one, seed=seed, setting=f"share {share}"): column
                for one, share, column in (
                    ("attention", 0.1, halves(0, 1)),
                    ("attention", 0.5, flat(0.0)),
                    ("random", 0.1, flat(1.0)),
                    ("random", 0.5, halves(1, 0)),
                )
                for seed in (1, 2, None)
            },
            keyed("score", method="attention", seed=1): flat(0.25),
        },
        "off_manifold": {
            keyed(measure, method="attention", setting="masking"): flat(value)
            for measure, value in (
                ("beyond_random", 0.1),
                ("comprehensiveness", 0.3),
                ("worst", 0.05),
            )
        },
    }


ESTIMATES = {
    "necessity": {
        "score_trained": 0.75,
        "score_uniform": 0.5,
        "gain": 0.25,
        "uniform_swap_tvd": 0.15,
        "p_not_worse": 0.5,
    },
    "seeds": {
        "jsd_seeds": 0.15,
        "jsd_adversary": 0.55,
        "jsd_shuffled": 0.4,
        "jsd_uniform": 0.35,
    },
    "guide": {
        "score_uniform": 0.0,
        "score_own": 1.0,
        "score_base": 1.0,
        "score_adversary": 0.0,
        "base_minus_uniform": 1.0,
        "base_minus_own": 0.0,
        "base_minus_adversary": -0.5,
    },
    "adversary": {"tvd": 0.01, "jsd": 0.4, "score": 1.0, "score_base": 1.0},
    "deception": {
        "mass_before": 0.5,
        "mass_after": 0.4,
        "score_before": 1.0,
        "score_after": 1.0,
        "score_without_words": 0.45,
        "score_lost": 0.0,
        "words_worth": 0.55,
    },
    "roar": {
        "score_whole": 1.0,
        ("score", "attention"): 0.25,
        ("score", "random"): 0.75,
        ("beyond_random", "attention"): 0.5,
    },
    "off_manifold": {
        "same_prediction": 0.95,
        "copy_tvd": 0.05,
        ("comprehensiveness", "attention"): 0.2,
        ("comprehensiveness", "random"): 0.1,
        ("beyond_random", "attention"): 0.15,
    },
}


def result(name, *, reason=""):
    """What a check found; nothing where there is a reason."""
    answer = "no vote" if name in ("guide", "adversary", "roar", "off_manifold") else "refutes"
    named = [one if isinstance(one, tuple) else (one, None) for one in ESTIMATES[name]]
    if reason:
        missing = tuple(MissingMeasure(measure, reason, method) for measure, method in named)
        return CheckResult(answer, f"So {name}.", {}, missing=missing)
    found = [
        EstimateRow(measure, Estimate(value, value - 0.02, value + 0.02, N), method)
        for (measure, method), value in zip(named, ESTIMATES[name].values(), strict=True)
    ]
    plain = {row.measure: row.estimate for row in found if row.method is None}
    return CheckResult(answer, f"So {name}.", plain, tuple(row for row in found if row.method))


def rows(measured, classes):
    """Tidy rows of all columns."""
    predicted = [classes[i % len(classes)] for i in range(N)]
    parts = [
        tidy(
            check,
            key.measure,
            values,
            predicted=predicted,
            label=predicted,
            **{name: getattr(key, name) for name in KEY_COLUMNS},
        )
        for check, found in measured.items()
        for key, values in found.items()
    ]
    return pa.concat_tables(parts)


def retrained(
    checks=tuple(CLAIM_OF),
    *,
    classes=("neg", "pos"),
    weights=("λ 0.001", "λ 0.01"),
    missing=None,
    models=MODELS,
    plan=PLAN,
    **manifest_changes,
):
    """Records of a run with these checks; `missing` could not be made, for the reason it holds."""
    missing = missing or {}
    found = {name: result(name, reason=missing.get(name, "")) for name in checks}
    claims = {name: ClaimResult("not tested", "No check is about this.") for name in CLAIMS}
    for name in checks:
        one = claims[CLAIM_OF[name]]
        claims[CLAIM_OF[name]] = ClaimResult("refuted", one.why, (*one.checks, name))
    if "necessity" in checks:
        claims["used"] = ClaimResult("supported", "The swap changes the output.", ("necessity",))
    measured = {
        name: one
        for name, one in columns(weights).items()
        if name in checks and name not in missing
    }
    changes = {} if models is None else {"retrained": list(models)}
    changes |= manifest_changes
    base = records(1, classes, kept=False, plan=plan, claims=claims, manifest_changes=changes)
    table = rows(measured or {"agreement": {keyed("tau"): flat(nan)}}, classes)
    verdict = replace(base.verdict, checks=found)
    return estimated(replace(base, verdict=verdict, measurements=PartitionedTable.of(table)))
