"""Would the answers differ under other analysis choices? A small multiverse (Steegen et al., 2016).

Every row changes one choice and leaves the others. Rows come from the estimates at hand, so they
cost no pass through the model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from heedful.checks.influence.names import MASKING, MEAN, NAME, NEAR_FULL
from heedful.checks.spec import Evidence
from heedful.core.records import ROW_KEYS, CheckResult, EstimateRow
from heedful.pipeline.verdict.check_power import PowerTable
from heedful.pipeline.verdict.judge import claim_answers

EPSILONS = (0.01, 0.02, 0.05, 0.1)
MIDDLES = {"a third": 1 / 3, "two thirds": 2 / 3}
READINGS = {
    MASKING: "influence by masking words",
    NEAR_FULL: "influence in nearly whole texts",
    MEAN: "influence as a mean over texts",
}
MOST_CLASSES = 3  # more would make a table of their own


def multiverse(evidence: Evidence, powers: PowerTable) -> tuple[dict[str, str], ...]:
    """A row for each other choice: what it is, and the answer to each claim then."""
    choices = [*_other_lines(evidence), *_other_readings(evidence), *_single_classes(evidence)]
    return tuple({"choice": choice, **claim_answers(other, powers)} for choice, other in choices)


def _other_lines(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """Other thresholds in the rules."""
    for epsilon in EPSILONS:
        if epsilon != evidence.epsilon:
            yield f"ε = {epsilon:g}", replace(evidence, epsilon=epsilon)
    for name, middle in MIDDLES.items():
        yield f"the line at {name} of the way", replace(evidence, halfway=middle)


def _other_readings(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """Another reading of the influence of words in the place of the first."""
    result = evidence.results.get(NAME)
    if result is None:
        return
    for reading, choice in READINGS.items():
        found = result.of("order", method="attention", setting=reading)
        if found.n:
            rows = tuple(
                replace(one, estimate=found) if _is_order(one) else one for one in result.by
            )
            yield choice, _with_results(evidence, {NAME: replace(result, by=rows)})


def _is_order(row: EstimateRow) -> bool:
    return row.measure == "order" and _keys(row) == {"method": "attention"}


def _single_classes(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """The texts of one predicted class alone."""
    names = dict.fromkeys(name for one in evidence.results.values() for name in one.classes)
    if not 2 <= len(names) <= MOST_CLASSES:
        return
    for name in names:
        results = {check: _of_class(one, name) for check, one in evidence.results.items()}
        yield f"texts predicted {name} alone", _with_results(evidence, results)


def _of_class(result: CheckResult, name: str) -> CheckResult:
    """The result with the estimates of one predicted class in the place of all texts'."""
    own = [replace(row, predicted=None) for row in result.by if row.predicted == name]
    plain = {row.measure: row.estimate for row in own if _keys(row) == {}}
    keyed = {(row.measure, *_keys(row).items()): row for row in own if _keys(row)}
    kept = [
        row
        for row in result.by
        if row.predicted != name and (row.measure, *_keys(row).items()) not in keyed
    ]
    estimates = {**result.estimates, **plain}
    return replace(result, estimates=estimates, by=(*keyed.values(), *kept))


def _keys(row: EstimateRow) -> dict[str, object]:
    """The key columns that a row uses."""
    found = {name: getattr(row, name) for name in ROW_KEYS}
    return {name: one for name, one in found.items() if one is not None}


def _with_results(evidence: Evidence, changed: Mapping[str, CheckResult]) -> Evidence:
    return replace(evidence, results={**evidence.results, **changed})
