"""The method that explains a model better than its attention: nearest to leave-one-out."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.checks.requested_methods import method_kind
from heedful.core.records import BetterMethod, Estimate, MeasureKey
from heedful.methods import methods
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.pipeline.verdict.estimate import Bootstrap
from heedful.results.tables import MeasurementColumns, TextValues

EXCLUDED_KINDS = {"attention", "control"}
COVERED = 0.95  # of the texts: a method that ranks only some is not compared on all


@dataclass(frozen=True, slots=True)
class Alternative:
    """A method that may replace attention.

    `share` is its place between shuffled attention (0) and leave-one-out's own ranking (1); `gain`
    is its τ with leave-one-out minus attention's, over the same texts.
    """

    method: str
    share: Estimate
    gain: Estimate


def can_replace_attention(method: str) -> bool:
    """Whether agreement with leave-one-out is evidence for this method at all."""
    # methods that erase one word at a time are nearly the same as leave-one-out
    return methods.trait(method, "erases") != "one" and method_kind(method) not in EXCLUDED_KINDS


def find_alternatives(columns: MeasurementColumns, bootstrap: Bootstrap) -> tuple[Alternative, ...]:
    """The methods that `agreement` measured and that rank nearly all texts.

    The more methods there are, the wider is each one's interval of the gain (Bonferroni): the best
    of many must beat attention by more than the luckiest of so many would.
    """
    attention = columns.column("agreement", "tau_leave_one_out")
    control = columns.column("agreement", "tau_shuffled_leave_one_out")
    known = ~np.isnan(attention)
    taus = {
        name: tau
        for name, tau in measured_methods(columns).items()
        if can_replace_attention(name) and _covers(tau, known)
    }
    level = 1 - (1 - bootstrap.level) / max(1, len(taus))
    gains = {name: tau - attention for name, tau in taus.items()}
    gained = estimate_means(gains, resamples=bootstrap.resamples, seed=bootstrap.seed, level=level)
    return tuple(
        Alternative(name, bootstrap.place(tau, control, np.ones_like(tau)).place, gained[name])
        for name, tau in taus.items()
    )


def measured_methods(columns: MeasurementColumns) -> dict[str, TextValues]:
    """The τ with leave-one-out of every method but attention; the one-hot gradient is first."""
    gradient = MeasureKey("agreement", "tau_gradient_leave_one_out")
    found = {"one_hot_gradient": columns.values[gradient]} if gradient in columns.values else {}
    for key, values in columns.of_check("agreement").items():
        if key == MeasureKey("agreement", "tau_leave_one_out", key.method) and key.method:
            found[key.method] = values
    return found


def _covers(tau: TextValues, known: NDArray[np.bool_]) -> bool:
    return bool(known.any()) and float((~np.isnan(tau[known])).mean()) >= COVERED


def best_alternative(found: Iterable[Alternative]) -> BetterMethod | None:
    """The one with the largest share among those that certainly gain; None where none does."""
    certain = [one for one in found if one.gain.low > 0]
    if not certain:
        return None
    first = max(certain, key=lambda one: one.share.value)
    return BetterMethod(first.method, first.share)
