"""What the figures of layers and heads show."""

from collections.abc import Iterable, Sized
from math import ceil, floor, isnan
from typing import Protocol, runtime_checkable

from heedful.checks.attention.agreement.layers import Layers
from heedful.core.records import Estimate
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords

RULERS = {
    "tau_gradient_leave_one_out": "gradient",
    "tau_shuffled_leave_one_out": "shuffled",
}
TRACED = {
    "weighting": "weights and contributions",
    "unrolled": "contributions and leave-one-out",
    "mixing": "the same, traced to the words",
}
ACROSS = "layer, lower to higher"
WIDTH = 0.5  # of the heads of one layer, in layers


@runtime_checkable
class PlacedLayer(Protocol):
    """A layer that has a place in a figure."""

    @property
    def number(self) -> int: ...

    @property
    def audited(self) -> bool: ...

    @property
    def heads(self) -> Sized: ...


def build_layer_figures(records: RunRecords, layers: Layers | None) -> tuple[FigureData, ...]:
    """Agreement, weight on words and contributions by layer, agreement by head."""
    if layers is None:
        return ()
    made = (_agreement(records, layers), _mass(layers), _traced(layers), _heads(layers))
    return tuple(one for one in made if one.rows)


def _agreement(records: RunRecords, layers: Layers) -> FigureData:
    rows = mean_rows((one, one.tau) for one in layers.layers)
    dots = head_dots(
        (one, head.number, head.tau.value) for one in layers.layers for head in one.heads
    )
    rulers = _rulers(records)
    heights = [0.0, *(mark["value"] for mark in (*dots, *rulers))]
    heights += [row[end] for row in rows for end in ("low", "high")]
    return FigureData(
        name="layers_tau_leave_one_out",
        kind="layers",
        title="Agreement by layer",
        caption="Kendall's τ with leave-one-out of each layer's weights at the position under "
        f"audit, heads averaged: mean and {100 * layers.level:g} % interval. Faint: single heads.",
        x=ACROSS,
        span=(floor(10 * min(heights)) / 10, ceil(10 * max(heights)) / 10),
        classes=("Kendall's τ",),
        rows=rows,
        marks=(*dots, *rulers),
    )


def _mass(layers: Layers) -> FigureData:
    dots = head_dots((one, head.number, head.mass) for one in layers.layers for head in one.heads)
    return FigureData(
        name="layers_word_mass",
        kind="layers",
        title="Weight on words by layer",
        caption="How much of the same weights is on words; the rest is on special tokens. Where "
        "little is left for words, a ranking by it says little of what the layer does.",
        x=ACROSS,
        span=(0.0, 1.0),
        classes=("share of weight on words",),
        rows=mean_rows((one, one.mass) for one in layers.layers),
        marks=dots,
    )


def _traced(layers: Layers) -> FigureData:
    rows = tuple(
        row | {"class": words}
        for name, words in TRACED.items()
        for row in mean_rows((one, getattr(one, name)) for one in layers.traced)
    )
    heights = [0.0, *(row[end] for row in rows for end in ("low", "high"))]
    return FigureData(
        name="layers_mechanism",
        kind="lines",
        title="Weights and contributions by layer",
        caption="Kendall's τ of a layer's weights with what tokens contribute to its state at the "
        "position under audit; of these contributions with leave-one-out; and of contributions "
        f"traced down to the words: mean and {100 * layers.level:g} % interval. Contributions are "
        "by ALTI, or by value zeroing where ALTI is refused.",
        x=ACROSS,
        span=(floor(10 * min(heights)) / 10, ceil(10 * max(heights)) / 10),
        classes=tuple(TRACED.values()),
        rows=rows,
    )


def _heads(layers: Layers) -> FigureData:
    rows = tuple(
        {
            "layer": one.number,
            "head": head.number,
            "value": head.tau.value,
            "audited": one.audited,
        }
        for one in layers.layers
        for head in one.heads
        if not isnan(head.tau.value)
    )
    return FigureData(
        name="layers_heads",
        kind="heads",
        title="Agreement by head",
        caption="Mean Kendall's τ over texts of each head's weights at the position under audit.",
        x="head",
        span=(-layers.strongest, layers.strongest),
        classes=("mean τ",),
        rows=rows,
    )


def head_dots(heads: Iterable[tuple[PlacedLayer, int, float]]) -> tuple[FigureRow, ...]:
    """A layer's heads side by side in their order, so that none hides another."""
    return tuple(
        {
            "layer": layer.number + WIDTH * ((head + 0.5) / len(layer.heads) - 0.5),
            "value": value,
        }
        for layer, head, value in heads
        if not isnan(value)
    )


def mean_rows(pairs: Iterable[tuple[PlacedLayer, Estimate]]) -> tuple[FigureRow, ...]:
    rows = []
    for layer, estimate in pairs:
        value = estimate.value
        if isnan(value):
            continue
        low, high = (value if isnan(end) else end for end in (estimate.low, estimate.high))
        row = {"layer": layer.number, "value": value, "low": low, "high": high}
        rows.append(row | {"audited": layer.audited})
    return tuple(rows)


def _rulers(records: RunRecords) -> tuple[FigureRow, ...]:
    """What else stands beside leave-one-out, to give the heights a scale."""
    checks = records.verdict.checks
    found = checks["agreement"].estimates if "agreement" in checks else {}
    return tuple(
        {"what": words, "value": found[measure].value}
        for measure, words in RULERS.items()
        if measure in found and not isnan(found[measure].value)
    )
