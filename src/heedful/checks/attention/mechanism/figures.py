"""Figures of `mechanism`: where attention's order of the words is lost, also layer by layer."""

from math import isnan
from typing import TYPE_CHECKING

from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    FigureWords,
    drop_empty,
    ends,
    interval_row,
    layer_figure,
    layer_rows,
    reference_lines,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

BY_LAYER = {
    "tau_weighting": "weights and contributions",
    "tau_unrolled": "contributions and leave-one-out",
    "tau_mixing": "the same, traced to the words",
}


def build_figures(records: "RunRecords") -> list[FigureData]:
    """What is left of attention's order at each station, and three τ from layer to layer."""
    result = records.verdict.checks["mechanism"]
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
    return drop_empty([_flow(records), layer_figure(records, words, rows)])


def _flow(records: "RunRecords") -> FigureData:
    """τ of attention's ranking with what comes after it; empty without `agreement`."""
    checks = records.verdict.checks
    found = {
        name: one
        for check in ("agreement", "mechanism")
        if check in checks
        for name, one in checks[check].estimates.items()
        if not isnan(one.value)
    }
    rows: list[FigureRow] = []
    weighting, deletion = (found.get(f"tau_{one}") for one in ("weighting", "leave_one_out"))
    if weighting and deletion:
        rows = [
            {"station": 0, "name": "attention", "value": 1.0, "low": 1.0, "high": 1.0},
            interval_row(weighting, station=1, name="contributions", loss="weighting"),
            interval_row(deletion, station=2, name="leave-one-out", loss="mixing"),
        ]
    traced = ", traced" if "tau_unrolled" in checks["mechanism"].estimates else ""
    rulers = {
        "tau_gradient_leave_one_out": "gradient (reference)",
        "tau_unrolled": "contributions",
        "tau_mixing": f"contributions{traced}",
        "tau_shuffled_leave_one_out": "shuffled (control)",
    }
    marks = reference_lines({label: found[one] for one, label in rulers.items() if one in found})
    heights = [0.0, 1.0, *ends(rows), *(mark["rule"] for mark in marks)]
    return FigureData(
        "mechanism",
        "flow",
        "Where influence is lost",
        "How much of attention's order of the words is left (τ) at each station on the way to "
        "their influence. At the right: what else reaches leave-one-out.",
        rows=rows,
        marks=marks,
        y="Kendall's τ",
        y_span=(rounded_span(heights, 0.1)[0], 1.0),
    )
