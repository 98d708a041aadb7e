"""Records of runs that compared methods, and never were."""

from dataclasses import replace
from itertools import combinations
from math import nan

import numpy as np
import pyarrow as pa

from heedful.core.records import Estimate
from heedful.results.tables import PartitionedTable

from .made_up import records

KINDS = {
    "attention": "attention",
    "gradient": "sensitivity",
    "one_hot_gradient": "saliency",
    "leave_one_out": "saliency",
    "shapley": "saliency",
    "random": "control",
}


def by_pair(n, *, names=tuple(KINDS), short=5, refused=(), among=0.6, attention=0.2, seed=0):
    """Rows of every two methods; shapley ranks the first `short` texts only."""
    random, parts = np.random.default_rng(seed), []

    def add(measure, setting, values):
        columns = {
            "instance": pa.array(np.arange(n)),
            "predicted": pa.array(["pos"] * n),
            "label": pa.array(["pos"] * n),
            "check": pa.array(["agreement"] * n),
            "measure": pa.array([measure] * n),
            "setting": pa.array([setting] * n, pa.string()),
            "value": pa.array(values, from_pandas=True),
        }
        parts.append(pa.table(columns))

    for a, b in combinations(names, 2):
        tau = -0.1 if "random" in (a, b) else attention if "attention" in (a, b) else among
        for measure, mean in (("tau_pair", tau), ("overlap_pair", tau / 2 + 0.5)):
            values = mean + random.normal(0, 0.05, n)
            values[short if "shapley" in (a, b) else n :] = nan
            values[0 if {a, b} & set(refused) else n :] = nan
            add(measure, f"{a} ~ {b}", values)
    for measure, mean in (("tau_references", among), ("tau_attention_references", attention)):
        add(measure, None, mean + random.normal(0, 0.05, n))
    return pa.concat_tables(parts)


def with_methods(n=30, *, names=tuple(KINDS), **others):
    """Records of a run that was asked for methods beside attention."""
    told = {name: {"kind": KINDS.get(name, "saliency")} for name in names}
    if "shapley" in told:
        told["shapley"]["at_most"] = "12 tokens"
    settings = {
        key: others.pop(key) for key in ("short", "refused", "among", "attention") if key in others
    }
    one = records(n, manifest_changes={"methods": told}, **({"checks": ("agreement",)} | others))
    rows = pa.concat_tables([one.measurements.whole(), by_pair(n, names=names, **settings)])
    check = one.verdict.checks["agreement"]
    found = {
        name: Estimate(value, value - 0.05, value + 0.05, n)
        for name, value in (
            ("tau_lime_leave_one_out", 0.7),
            ("tau_references", 0.6),
            ("tau_attention_references", 0.2),
        )
    }
    check = replace(check, estimates={**check.estimates, **found})
    verdict = replace(one.verdict, checks={**one.verdict.checks, "agreement": check})
    return replace(one, verdict=verdict, measurements=PartitionedTable.of(rows))
