"""Estimates of what was measured under several seeds: intervals over seeds and texts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.checks import Check, RetrainingCheck
from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import Place
from heedful.numerics.stats.crossed_bootstrap import (
    equivalence,
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)
from heedful.pipeline.plan.plan import Plan

Column = NDArray[np.float64]
CENTRES = {"mean": mean_over_seeds, "median": median_over_seeds}


def estimate_over_seeds(
    plan: Plan,
    check: Check | RetrainingCheck,
    tables: Mapping[str, Column],
    columns: Mapping[str, Column],
    here: NDArray[np.bool_] | None = None,
) -> dict[str, Estimate]:
    """The measures that have seeds, and differences with them, under crossed intervals.

    `tables` are by measure, a row for each seed; `columns` have one value per text, of which
    `here` chooses some.
    """
    if not isinstance(check, RetrainingCheck) or not tables:
        return {}
    draws = _draws(plan, check, _with_partners(check, tables, columns, here))
    found = {}
    for name in (*check.over_seeds, *check.differences):
        if name not in draws:  # of a part that was refused there is nothing
            continue
        column = columns[name] if here is None else columns[name][here]
        known = column[~np.isnan(column)]
        value = float(known.mean()) if len(known) else float("nan")
        found[name] = estimate_from_draws(value, draws[name], n=len(known), level=plan.level)
    margin = getattr(check, "margin", None)
    if margin is not None and "gain" in draws:
        n, nan = found["gain"].n, float("nan")
        tests = equivalence(draws["gain"], margin, n=n)
        found["p_not_worse"] = Estimate(tests.not_more, nan, nan, n)
        found["p_equivalent"] = Estimate(tests.p, nan, nan, n)
    return found


def _with_partners(
    check: RetrainingCheck,
    tables: Mapping[str, Column],
    columns: Mapping[str, Column],
    here: NDArray[np.bool_] | None,
) -> dict[str, Column]:
    """The tables, and those that are compared with them though they have no seeds."""
    found = {name: tables[name] for name in check.over_seeds if name in tables}
    for pair in check.differences.values():
        for name in pair:
            if name not in found and name in columns:
                column = columns[name] if here is None else columns[name][here]
                found[name] = column[None]
    return found


def _draws(plan: Plan, check: RetrainingCheck, tables: Mapping[str, Column]) -> dict[str, Any]:
    draws: dict[str, Any] = {}
    for kind, centre in CENTRES.items():
        some = {name: one for name, one in tables.items() if _kind(check, name) == kind}
        if some:  # texts are drawn alike in every call, so that all stay paired
            draws |= resample_crossed(some, centre=centre, resamples=plan.resamples, seed=plan.seed)
    for name, (one, other) in check.differences.items():
        if one in draws and other in draws:
            draws[name] = draws[one] - draws[other]
    return draws


def _kind(check: RetrainingCheck, name: str) -> str:
    return check.over_seeds.get(name, "mean")


def estimate_drift(
    plan: Plan, columns: Mapping[str, Column], tables: Mapping[str, Column]
) -> Place | None:
    """Other seeds' attention between the same weights (0) and the weights shuffled (1), in JSD."""
    if "jsd_seeds" not in tables:
        return None
    both = {"jsd_seeds": tables["jsd_seeds"], "jsd_shuffled": columns["jsd_shuffled"][None]}
    draws = resample_crossed(
        both, centre=median_over_seeds, resamples=plan.resamples, seed=plan.seed
    )
    apart, shuffled = (float(columns[name].mean()) for name in both)
    n = len(columns["jsd_seeds"])
    with np.errstate(divide="ignore", invalid="ignore"):
        way = draws["jsd_seeds"] / draws["jsd_shuffled"]
        place = apart / shuffled if shuffled else float("nan")
    return Place(
        estimate_from_draws(place, way, n=n, level=plan.level),
        estimate_from_draws(shuffled, draws["jsd_shuffled"], n=n, level=plan.level),
    )
