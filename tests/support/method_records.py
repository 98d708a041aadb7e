"""Records of runs that compared methods, and never were."""

from dataclasses import replace
from itertools import combinations
from math import nan

import numpy as np
import pyarrow as pa

from heedful.core.records import Estimate, EstimateRow
from heedful.numerics.stats.bootstrap import estimate_means
from support.records import estimated, records, tidy

CHECK = "agreement"
REFERENCES = ("tau_references", "tau_attention_references")

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

    for a, b in combinations(names, 2):
        tau = -0.1 if "random" in (a, b) else attention if "attention" in (a, b) else among
        for measure, mean in (("tau_pair", tau), ("overlap_pair", tau / 2 + 0.5)):
            values = mean + random.normal(0, 0.05, n)
            values[short if "shapley" in (a, b) else n :] = nan
            values[0 if {a, b} & set(refused) else n :] = nan
            parts.append(tidy(CHECK, measure, values, method=a, setting=b))
    for measure, mean in zip(REFERENCES, (among, attention), strict=True):
        parts.append(tidy(CHECK, measure, mean + random.normal(0, 0.05, n)))
    return pa.concat_tables(parts)


def with_methods(n=30, *, names=tuple(KINDS), **others):
    """Records of a run that was asked for methods beside attention."""
    described = {name: {"kind": KINDS.get(name, "saliency")} for name in names}
    if "shapley" in described:
        described["shapley"]["at_most"] = "12 tokens"
    settings = {
        key: others.pop(key) for key in ("short", "refused", "among", "attention") if key in others
    }
    one = records(
        n, manifest_changes={"methods": described}, **({"checks": ("agreement",)} | others)
    )
    one = estimated(one, by_pair(n, names=names, **settings))
    check = one.verdict.checks[CHECK]
    among, of_attention = (one.column(CHECK, name) for name in REFERENCES)
    found = dict(zip(REFERENCES, (among, of_attention), strict=True))
    found["references_gap"] = among - of_attention
    known = estimate_means(found, level=one.manifest["level"], seed=one.manifest["seed"])
    lime = EstimateRow("tau_leave_one_out", Estimate(0.7, 0.65, 0.75, n), method="lime")
    check = replace(check, estimates={**check.estimates, **known}, by=(*check.by, lime))
    return replace(one, verdict=replace(one.verdict, checks={**one.verdict.checks, CHECK: check}))
