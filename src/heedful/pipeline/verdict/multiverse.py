"""What the answers would be had other choices been made: a small multiverse (Steegen et al., 2016).

Every row changes one choice and leaves the others. Rows come from the figures at hand, so they cost
no pass through the model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.checks.attention.agreement.check import Agreement
from heedful.core.records import CheckResult
from heedful.numerics.stats.bootstrap import Place, estimate_means, estimate_place
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import PowerTable
from heedful.pipeline.verdict.evidence import Evidence
from heedful.pipeline.verdict.judge import claim_answers

Column = NDArray[np.float64]
Columns = Mapping[str, Mapping[str, Column]]
EPSILONS = (0.01, 0.02, 0.05, 0.1)
MIDDLES = {"a third": 1 / 3, "two thirds": 2 / 3}
OWN, CHANCE, GRADIENT = (f"tau_{one}leave_one_out" for one in ("", "shuffled_", "gradient_"))
MOST_CLASSES = 3  # more would make a table of their own


def multiverse(
    plan: Plan, columns: Columns, predicted: NDArray[Any], evidence: Evidence, powers: PowerTable
) -> tuple[dict[str, str], ...]:
    """A row for each other choice: what it is, and what is then said of each claim."""
    choices = [
        *_lines(evidence),
        *_references(plan, columns.get("agreement", {}), evidence),
        *_shuffles(plan, columns.get("permutation", {}), evidence),
        *_classes(plan, columns.get("agreement", {}), predicted, evidence),
    ]
    return tuple(
        {
            "choice": choice,
            **{claim: str(vote) for claim, vote in claim_answers(other, powers).items()},
        }
        for choice, other in choices
    )


def _lines(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """Other numbers where the rules draw a line."""
    for epsilon in EPSILONS:
        if epsilon != evidence.epsilon:
            yield f"ε = {epsilon:g}", replace(evidence, epsilon=epsilon)
    for name, middle in MIDDLES.items():
        yield f"the line at {name} of the way", replace(evidence, halfway=middle)


def _references(
    plan: Plan, measured: Mapping[str, Column], evidence: Evidence
) -> Iterator[tuple[str, Evidence]]:
    """Attention's place beside other references, and by another yardstick."""
    if not measured:
        return
    check = evidence.checks["agreement"]
    tried = check.of_methods if isinstance(check, Agreement) else {}
    ends = {"leave-one-out’s own ranking": np.ones_like(measured[OWN])}
    ends |= {method: measured[name] for method, name in tried.items() if name in measured}
    for name, end in ends.items():
        place = _place(plan, measured[OWN], measured[CHANCE], end)
        yield f"reference: {name}", replace(evidence, place=place)
    if "tau_gradient_shuffled" in measured:
        gradient = (measured[name] for name in ("tau_gradient", "tau_gradient_shuffled", GRADIENT))
        yield "yardstick: the gradient", replace(evidence, place=_place(plan, *gradient))


def _shuffles(
    plan: Plan, measured: Mapping[str, Column], evidence: Evidence
) -> Iterator[tuple[str, Evidence]]:
    """Special tokens' weights move too, where a model has such."""
    other = measured.get("median_tvd_all_keys")
    if other is None:
        return
    moved = estimate_means(
        {"median_tvd": other}, resamples=plan.resamples, seed=plan.seed, level=plan.level
    )
    result = evidence.results["permutation"]
    changed = replace(result, estimates={**result.estimates, **moved})
    yield "special tokens shuffled too", _with(evidence, {"permutation": changed})


def _classes(
    plan: Plan, measured: Mapping[str, Column], predicted: NDArray[Any], evidence: Evidence
) -> Iterator[tuple[str, Evidence]]:
    """Texts of one class alone."""
    names = dict.fromkeys(name for one in evidence.results.values() for name in one.by_class)
    if not 2 <= len(names) <= MOST_CLASSES:
        return
    for name in names:
        results = {
            check: replace(one, estimates={**one.estimates, **one.by_class.get(name, {})})
            for check, one in evidence.results.items()
        }
        other, here = _with(evidence, results), predicted == name
        if measured:
            place = _place(plan, *(measured[one][here] for one in (OWN, CHANCE, GRADIENT)))
            other = replace(other, place=place)
        yield f"texts predicted {name} alone", other


def _with(evidence: Evidence, changed: Mapping[str, CheckResult]) -> Evidence:
    return replace(evidence, results={**evidence.results, **changed})


def _place(plan: Plan, own: Column, chance: Column, end: Column) -> Place:
    return estimate_place(
        own, chance, end, resamples=plan.resamples, seed=plan.seed, level=plan.level
    )
