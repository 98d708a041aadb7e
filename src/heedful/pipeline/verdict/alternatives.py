"""What explains a model whose attention does not: the method that ranks most as deletion does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.checks.requested_methods import method_kind
from heedful.core.records import BetterMethod, Estimate
from heedful.methods import methods
from heedful.numerics.stats.bootstrap import estimate_means, estimate_place
from heedful.pipeline.plan.plan import Plan

Column = NDArray[np.float64]
NO_RIVALS = {"attention", "control"}  # kinds: the accused and its kin, and what knows nothing
COVERED = 0.95  # of the texts: what serves only some, the short ones say, is not held against all


@dataclass(frozen=True, slots=True)
class Alternative:
    """A method that may stand in attention's place.

    `share` is its place between shuffled attention (0) and leave-one-out's own ranking (1); `gain`
    is its τ with leave-one-out less attention's, over the same texts.
    """

    method: str
    share: Estimate
    gain: Estimate


def can_replace_attention(method: str) -> bool:
    """Whether agreement with leave-one-out speaks for this method at all."""
    # methods that erase one word at a time are nearly the same as leave-one-out
    return methods.trait(method, "erases") != "one" and method_kind(method) not in NO_RIVALS


def find_alternatives(
    plan: Plan, measures: Mapping[str, str], columns: Mapping[str, Column]
) -> tuple[Alternative, ...]:
    """Those of the methods, each with its measure, that serve nearly all texts.

    The more are tried, the wider is each one's interval of the gain (Bonferroni): the best of many
    has to be better than attention beyond what the luckiest of so many would be.
    """
    attention, control = columns["tau_leave_one_out"], columns["tau_shuffled_leave_one_out"]
    known = ~np.isnan(attention)
    taus = {
        name: columns[measure]
        for name, measure in measures.items()
        if can_replace_attention(name) and measure in columns
    }
    taus = {name: tau for name, tau in taus.items() if _covers(tau, known)}
    usual = {"resamples": plan.resamples, "seed": plan.seed}
    level = 1 - (1 - plan.level) / max(1, len(taus))
    gains = {name: tau - attention for name, tau in taus.items()}
    gained = estimate_means(gains, **usual, level=level)
    return tuple(
        Alternative(
            name,
            estimate_place(tau, control, np.ones_like(tau), **usual, level=plan.level).place,
            gained[name],
        )
        for name, tau in taus.items()
    )


def _covers(tau: Column, known: NDArray[np.bool_]) -> bool:
    return bool(known.any()) and float((~np.isnan(tau[known])).mean()) >= COVERED


def best_alternative(found: Iterable[Alternative]) -> BetterMethod | None:
    """The one with the largest share among those that certainly gain; None where none does."""
    sure = [one for one in found if one.gain.low > 0]
    if not sure:
        return None
    first = max(sure, key=lambda one: one.share.value)
    share = first.share
    return BetterMethod(first.method, share.value, share.low, share.high, share.n)
