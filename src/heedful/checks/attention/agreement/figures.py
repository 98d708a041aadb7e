"""Figures of `agreement`: τ over texts, between methods, and by layer and head."""

from itertools import chain
from math import isnan

from heedful.core.records import CheckResult, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    FigureWords,
    drop_empty,
    head_dots,
    histogram,
    layer_figure,
    layer_rows,
    reference_lines,
)
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


def build_figures(records: RunRecords) -> list[FigureData]:
    """Every figure for which the run has values."""
    result = records.verdict.checks[NAME]
    figures = [histogram(records, NAME, *item) for item in HISTOGRAMS.items()]
    figures += [*_method_pairs(records, result), *_layers(records, result)]
    return drop_empty([*figures, _heads(records, result)])


def _method_pairs(records: RunRecords, result: CheckResult) -> list[FigureData]:
    """τ and shared top words of every two methods, in the order of their kinds."""
    taus, overlaps = (pair_estimates(result, f"{one}_pair") for one in ("tau", "overlap"))
    labels, kinds = _labels(records, taus)
    starts = {kinds[name]: label for name, label in reversed(labels.items())}
    marks = [
        {"row": first, "label": kind, "line": first != next(iter(labels.values()))}
        for kind, first in starts.items()
    ]
    top = records.settings(NAME).get("top")
    words = f"top {top} words" if isinstance(top, int) else "top words"
    chance = " By chance it would be as much as with random." if "random" in labels else ""
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
            overlaps,
        ),
    )
    return [
        FigureData(
            name,
            "heatmap",
            title,
            f"{caption} Without colour: no interval.",
            span=(-1.0, 1.0),
            classes=tuple(labels.values()),
            rows=_cells(estimates, labels),
            marks=marks,
        )
        for name, title, caption, estimates in drawn
    ]


def pair_estimates(result: CheckResult, measure: str) -> PairEstimates:
    """The estimates of a measure of every two methods."""
    return {(str(row.method), str(row.setting)): row.estimate for row in result.rows(measure)}


def texts_by_method(taus: PairEstimates) -> dict[str, int]:
    """The number of texts that each method ranks."""
    return {
        name: max(tau.n for names, tau in taus.items() if name in names)
        for name in chain.from_iterable(taus)
    }


def _labels(records: RunRecords, taus: PairEstimates) -> tuple[dict[str, str], dict[str, str]]:
    """The label and the kind of each method that ranks any text, kind by kind."""
    texts = texts_by_method(taus)
    described = records.manifest.get("methods", {})
    kinds = {name: str(described.get(name, {}).get("kind", "")) for name, n in texts.items() if n}
    order = {kind: place for place, kind in enumerate(KINDS)}
    few = COVERED * max(texts.values(), default=0)
    labels = {
        name: f"{name}, n = {texts[name]}" if texts[name] < few else name
        for name in sorted(kinds, key=lambda name: order.get(kinds[name], len(order)))
    }
    return labels, kinds


def _cells(estimates: PairEstimates, labels: dict[str, str]) -> list[FigureRow]:
    """A number on either side of the diagonal; without an interval it has no colour."""
    return [
        {
            "row": labels[one],
            "column": labels[other],
            "value": estimate.value,
            "certain": not isnan(estimate.low),
        }
        for pair, estimate in estimates.items()
        if not isnan(estimate.value) and labels.keys() >= set(pair)
        for one, other in (pair, pair[::-1])
    ]


def _layers(records: RunRecords, result: CheckResult) -> list[FigureData]:
    """τ with leave-one-out and weight on words from layer to layer, single heads faint."""
    taus, masses = (result.by_layer(name) for name in ("tau_leave_one_out", "word_mass"))
    rulers = reference_lines({label: result.of(name) for name, label in RULERS.items()})
    agreement = FigureWords(
        "layers_tau_leave_one_out",
        "Agreement by layer",
        "Kendall's τ with leave-one-out of each layer's weights at the audited position, heads "
        f"averaged: mean and {100 * records.level:g} % interval. Faint: single heads.",
        "Kendall's τ",
    )
    mass = FigureWords(
        "layers_word_mass",
        "Weight on words by layer",
        "Share of the same weights that is on words; the rest is on special tokens. Where little "
        "is left for words, a ranking by it says little about the layer.",
        "share of weight on words",
    )
    return [
        layer_figure(records, agreement, layer_rows(taus), [*head_dots(taus), *rulers]),
        layer_figure(records, mass, layer_rows(masses), head_dots(masses), y_span=(0.0, 1.0)),
    ]


def _heads(records: RunRecords, result: CheckResult) -> FigureData:
    """τ with leave-one-out of every head, a row for each layer."""
    heads = {
        (layer, head): one.value
        for (layer, head), one in result.by_layer("tau_leave_one_out").items()
        if head is not None and not isnan(one.value)
    }
    most = max(map(abs, heads.values()), default=0.0) or 1.0
    audited = read_audited_attention(records.manifest)
    return FigureData(
        "layers_heads",
        "heatmap",
        "Agreement by head",
        "Mean Kendall's τ over texts of each head's weights at the audited position.",
        x="head",
        span=(-most, most),
        rows=[
            {"row": str(layer), "column": str(head), "value": heads[layer, head]}
            for layer, head in sorted(heads)
        ],
        marks=[
            {"row": str(layer), "label": "under audit"}
            for layer in {layer for layer, _ in heads}
            if is_audited(audited, layer)
        ],
        y="layer",
    )
