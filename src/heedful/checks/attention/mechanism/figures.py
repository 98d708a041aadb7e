"""Figures of `mechanism`: where attention's order of the words is lost, also layer by layer."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from heedful.results.document import FigureData
from heedful.results.figure_data import (
    FigureWords,
    ends,
    interval_row,
    layer_figure,
    layer_rows,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "mechanism"
BY_LAYER = {
    "tau_weighting": "weights and contributions",
    "tau_unrolled": "contributions and leave-one-out",
    "tau_mixing": "the same, traced to the words",
}


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """What is left of attention's order at each station, and three τ from layer to layer."""
    return (*_flow(records), *_layers(records))


def _flow(records: "RunRecords") -> Sequence[FigureData]:
    """τ of attention's ranking with what comes after it; none without `agreement`."""
    checks = records.verdict.checks
    if "agreement" not in checks:
        return ()
    found = {**checks["agreement"].estimates, **checks[NAME].estimates}
    known = {name: one for name, one in found.items() if not isnan(one.value)}
    if not {"tau_weighting", "tau_leave_one_out"} <= known.keys():
        return ()
    rows = [
        {"station": 0, "name": "attention", "value": 1.0, "low": 1.0, "high": 1.0},
        interval_row(known["tau_weighting"], station=1, name="contributions", loss="weighting"),
        interval_row(known["tau_leave_one_out"], station=2, name="leave-one-out", loss="mixing"),
    ]
    of_layers = {"tau_unrolled": "contributions", "tau_mixing": "contributions, traced"}
    rulers = {
        "tau_gradient_leave_one_out": "gradient (reference)",
        **(of_layers if "tau_unrolled" in found else {"tau_mixing": "contributions"}),
        "tau_shuffled_leave_one_out": "shuffled (control)",
    }
    marks = [
        {"rule": known[one].value, "label": label} for one, label in rulers.items() if one in known
    ]
    heights = [0.0, 1.0, *ends(rows), *(float(mark["rule"]) for mark in marks)]
    figure = FigureData(
        name="mechanism",
        kind="flow",
        title="Where influence is lost",
        caption="How much of attention's order of the words is left (τ) at each station on the way "
        "to their influence. At the right: what else reaches leave-one-out.",
        x="",
        span=(0.0, 2.0),
        classes=(),
        rows=tuple(rows),
        marks=tuple(marks),
        y="Kendall's τ",
        y_span=(rounded_span(heights, 0.1)[0], 1.0),
    )
    return (figure,)


def _layers(records: "RunRecords") -> Sequence[FigureData]:
    result = records.verdict.checks[NAME]
    words = FigureWords(
        "layers_mechanism",
        "Weights and contributions by layer",
        "Kendall's τ of a layer's weights with what tokens contribute to its state at the audited "
        "position; of these contributions with leave-one-out; and of contributions traced down to "
        f"the words: mean and {100 * records.level:g} % interval. Contributions are by ALTI, or by "
        "value zeroing where ALTI is refused.",
        "Kendall's τ",
    )
    rows = [
        row | {"class": label}
        for measure, label in BY_LAYER.items()
        for row in layer_rows(result.by_layer(measure))
    ]
    return layer_figure(records, words, rows)
