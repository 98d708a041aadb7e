"""Would the answers differ under other analysis choices? A small multiverse (Steegen et al., 2016).

Every row changes one choice and leaves the others. Rows come from the values at hand, so they cost
no pass through the model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from heedful.checks.spec import Evidence
from heedful.core.records import CheckResult, MeasureKey
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.verdict.alternatives import measured_methods
from heedful.pipeline.verdict.check_power import PowerTable
from heedful.pipeline.verdict.estimate import Bootstrap
from heedful.pipeline.verdict.judge import claim_answers
from heedful.results.tables import MeasurementColumns, TextValues

AGREEMENT = "agreement"
EPSILONS = (0.01, 0.02, 0.05, 0.1)
MIDDLES = {"a third": 1 / 3, "two thirds": 2 / 3}
ENDS = tuple(f"tau_{one}leave_one_out" for one in ("", "shuffled_", "gradient_"))
MOST_CLASSES = 3  # more would make a table of their own


def multiverse(
    columns: MeasurementColumns, evidence: Evidence, powers: PowerTable, bootstrap: Bootstrap
) -> tuple[dict[str, str], ...]:
    """A row for each other choice: what it is, and the answer to each claim then."""
    choices = [
        *_other_lines(evidence),
        *_other_references(columns, evidence, bootstrap),
        *_other_shuffles(columns, evidence, bootstrap),
        *_single_classes(columns, evidence, bootstrap),
    ]
    return tuple(
        {"choice": choice, **{claim: str(one) for claim, one in answers.items()}}
        for choice, other in choices
        for answers in (claim_answers(other, powers),)
    )


def _other_lines(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """Other thresholds in the rules."""
    for epsilon in EPSILONS:
        if epsilon != evidence.epsilon:
            yield f"ε = {epsilon:g}", replace(evidence, epsilon=epsilon)
    for name, middle in MIDDLES.items():
        yield f"the line at {name} of the way", replace(evidence, halfway=middle)


def _other_references(
    columns: MeasurementColumns, evidence: Evidence, bootstrap: Bootstrap
) -> Iterator[tuple[str, Evidence]]:
    """Attention's place with other references, and by another yardstick."""
    if AGREEMENT not in evidence.places:
        return
    own, control, gradient = _ends(columns)
    references = {"leave-one-out’s own ranking": np.ones_like(own)}
    references |= {
        name: tau for name, tau in measured_methods(columns).items() if name != "one_hot_gradient"
    }
    for name, end in references.items():
        yield f"reference: {name}", _with_place(evidence, bootstrap.place(own, control, end))
    shuffled = columns.values.get(MeasureKey(AGREEMENT, "tau_gradient_shuffled"))
    if shuffled is not None:
        with_gradient = columns.column(AGREEMENT, "tau_gradient")
        place = bootstrap.place(with_gradient, shuffled, gradient)
        yield "yardstick: the gradient", _with_place(evidence, place)


def _other_shuffles(
    columns: MeasurementColumns, evidence: Evidence, bootstrap: Bootstrap
) -> Iterator[tuple[str, Evidence]]:
    """The weights of special tokens shuffled too, where a model has such tokens."""
    key = MeasureKey("permutation", "median_tvd_all_keys")
    if key not in columns.values:
        return
    result = evidence.results["permutation"]
    shuffled = bootstrap.means({key: columns.values[key]})[key]
    changed = replace(result, estimates={**result.estimates, "median_tvd": shuffled})
    yield "special tokens shuffled too", _with_results(evidence, {"permutation": changed})


def _single_classes(
    columns: MeasurementColumns, evidence: Evidence, bootstrap: Bootstrap
) -> Iterator[tuple[str, Evidence]]:
    """The texts of one predicted class alone."""
    names = dict.fromkeys(name for one in evidence.results.values() for name in one.classes)
    if not 2 <= len(names) <= MOST_CLASSES:
        return
    for name in names:
        results = {check: _of_class(one, name) for check, one in evidence.results.items()}
        other, texts = _with_results(evidence, results), columns.predicted == name
        if AGREEMENT in evidence.places:
            ends = (values[texts] for values in _ends(columns))
            other = _with_place(other, bootstrap.place(*ends))
        yield f"texts predicted {name} alone", other


def _of_class(result: CheckResult, name: str) -> CheckResult:
    """The result with the estimates of one predicted class in the place of all texts'."""
    own = [replace(row, predicted=None) for row in result.by if row.predicted == name]
    plain = {row.measure: row.estimate for row in own if row.method is None}
    methods = {(row.measure, row.method): row for row in own if row.method is not None}
    kept = [
        row
        for row in result.by
        if row.predicted != name and (row.measure, row.method) not in methods
    ]
    estimates = {**result.estimates, **plain}
    return replace(result, estimates=estimates, by=(*methods.values(), *kept))


def _ends(columns: MeasurementColumns) -> tuple[TextValues, ...]:
    return tuple(columns.column(AGREEMENT, name) for name in ENDS)


def _with_results(evidence: Evidence, changed: Mapping[str, CheckResult]) -> Evidence:
    return replace(evidence, results={**evidence.results, **changed})


def _with_place(evidence: Evidence, place: Place) -> Evidence:
    return replace(evidence, places={**evidence.places, AGREEMENT: place})
