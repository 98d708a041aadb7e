"""Figures of `agreement`: τ over texts, between methods, and by layer and head."""

from collections.abc import Sequence
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING

from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    FigureWords,
    head_dots,
    histogram,
    layer_figure,
    layer_rows,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "agreement"
HISTOGRAMS = {
    "tau_leave_one_out": "Attention and leave-one-out",
    "tau_gradient": "Attention and gradient",
    "tau_gradient_leave_one_out": "Gradient and leave-one-out",
}
RULERS = {"tau_gradient_leave_one_out": "gradient", "tau_shuffled_leave_one_out": "shuffled"}
KINDS = ("attention", "sensitivity", "saliency", "control")
COVERED = 0.95  # of the texts: methods that rank fewer are marked
PairEstimates = dict[tuple[str, str], Estimate]


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Every figure for which the run has values."""
    result = records.verdict.checks[NAME]
    histograms = (
        histogram(records, NAME, measure=measure, title=title)
        for measure, title in HISTOGRAMS.items()
    )
    return (
        *chain.from_iterable(histograms),
        *_method_pairs(records, result),
        *_layers(records, result),
        *_heads(records, result),
    )


def _method_pairs(records: "RunRecords", result: CheckResult) -> list[FigureData]:
    """τ and shared top words of every two methods."""
    taus, overlaps = (_pairs(result, f"{one}_pair") for one in ("tau", "overlap"))
    texts = {
        name: max(tau.n for names, tau in taus.items() if name in names)
        for name in chain.from_iterable(taus)
    }
    described = records.manifest.get("methods", {})
    kinds = {name: str(described.get(name, {}).get("kind", "")) for name, n in texts.items() if n}
    order = sorted(kinds, key=lambda name: KINDS.index(kinds[name]) if kinds[name] in KINDS else 9)
    few = {name for name in order if texts[name] < COVERED * max(texts.values())}
    labels = {name: f"{name}, n = {texts[name]}" if name in few else name for name in order}
    starts = {kinds[name]: labels[name] for name in reversed(order)}
    marks = [
        {"row": first, "label": kind, "line": first != labels[order[0]]}
        for kind, first in starts.items()
    ]
    top = records.settings(NAME).get("top")
    words = f"top {top} words" if isinstance(top, int) else "top words"
    chance = " By chance it would be as much as with random." if "random" in order else ""
    drawn = (
        (
            "methods_tau",
            "Agreement of every two methods",
            "Mean Kendall's τ-b of the two rankings, by absolute score.",
            taus,
        ),
        (
            "methods_overlap",
            "Top words that two methods share",
            f"Mean share of the {words}, at most half of a text's, that both name.{chance}",
            {pair: one for pair, one in overlaps.items() if pair in taus},
        ),
    )
    return [
        FigureData(
            name=name,
            kind="heatmap",
            title=title,
            caption=f"{caption} Without colour: no interval.",
            x="",
            span=(-1.0, 1.0),
            classes=tuple(labels.values()),
            rows=rows,
            marks=tuple(marks),
        )
        for name, title, caption, estimates in drawn
        if (rows := _cells(estimates, labels))
    ]


def _pairs(result: CheckResult, measure: str) -> PairEstimates:
    return {(str(row.method), str(row.setting)): row.estimate for row in result.rows(measure)}


def _cells(estimates: PairEstimates, labels: dict[str, str]) -> tuple[FigureRow, ...]:
    """A number on either side of the diagonal; without an interval it has no colour."""
    return tuple(
        {
            "row": labels[one],
            "column": labels[other],
            "value": estimate.value,
            "certain": not isnan(estimate.low),
        }
        for pair, estimate in estimates.items()
        if not isnan(estimate.value) and all(name in labels for name in pair)
        for one, other in (pair, pair[::-1])
    )


def _layers(records: "RunRecords", result: CheckResult) -> Sequence[FigureData]:
    """τ with leave-one-out and weight on words from layer to layer, single heads faint."""
    level = f"mean and {100 * records.level:g} % interval. Faint: single heads."
    taus, masses = (result.by_layer(name) for name in ("tau_leave_one_out", "word_mass"))
    rulers = [
        {"rule": result.of(name).value, "label": label}
        for name, label in RULERS.items()
        if not isnan(result.of(name).value)
    ]
    agreement = FigureWords(
        "layers_tau_leave_one_out",
        "Agreement by layer",
        "Kendall's τ with leave-one-out of each layer's weights at the audited position, heads "
        f"averaged: {level}",
        "Kendall's τ",
    )
    mass = FigureWords(
        "layers_word_mass",
        "Weight on words by layer",
        "Share of the same weights that is on words; the rest is on special tokens. Where little "
        "is left for words, a ranking by it says little about the layer.",
        "share of weight on words",
    )
    dots = [*head_dots(taus), *rulers]
    return (
        *layer_figure(records, agreement, layer_rows(taus), dots),
        *layer_figure(records, mass, layer_rows(masses), head_dots(masses), y_span=(0.0, 1.0)),
    )


def _heads(records: "RunRecords", result: CheckResult) -> list[FigureData]:
    """τ with leave-one-out of every head, a row for each layer."""
    rows = tuple(
        {"row": str(layer), "column": str(head), "value": one.value, "certain": True}
        for (layer, head), one in sorted(result.by_layer("tau_leave_one_out").items(), key=_place)
        if head is not None and not isnan(one.value)
    )
    if not rows:
        return []
    most = max(abs(float(row["value"])) for row in rows) or 1.0
    layers, audited = {row["row"] for row in rows}, str(records.audited_layer)
    figure = FigureData(
        name="layers_heads",
        kind="heatmap",
        title="Agreement by head",
        caption="Mean Kendall's τ over texts of each head's weights at the audited position.",
        x="head",
        span=(-most, most),
        classes=(),
        rows=rows,
        marks=({"row": audited, "label": "under audit"},) if audited in layers else (),
        y="layer",
    )
    return [figure]


def _place(item: tuple[tuple[int, int | None], Estimate]) -> tuple[int, int]:
    (layer, head), _ = item
    return layer, -1 if head is None else head
