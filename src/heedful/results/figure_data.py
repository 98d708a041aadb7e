"""Builders of figures that several checks use. Their size does not grow with the number of texts.

The modules of `heedful.report.figures` say what the rows and marks of each kind of chart hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float64

from heedful.core.records import CheckResult, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import FigureData, FigurePanel, FigureRow, Span

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

TextValues = Float64[np.ndarray, "n"]
LayerEstimates = Mapping[tuple[int, int | None], Estimate]
BINS = 40  # of a histogram
CELLS = 24  # of a density, along either side
FEWEST = 5  # texts whose median or distribution is drawn; of fewer it would be noise
MOST_CLASSES = 6
OTHER = "other classes"
PERCENTILES = {"low": 10, "start": 25, "value": 50, "end": 75, "high": 90}
ACROSS = "layer, lower to higher"
HEAD_ROOM = 0.5  # width of the heads of one layer, in layers
DIFFERENCE_ROOM = 1.15  # beyond the widest interval of a difference


class FigureWords(NamedTuple):
    """The name of a figure and the words in it; `axis` is the title of the axis of its measure."""

    name: str
    title: str
    caption: str
    axis: str = ""


def drop_empty(figures: Iterable[FigureData]) -> list[FigureData]:
    """The figures that show any value."""
    return [one for one in figures if one.rows]


def format_two_decimals(value: float, sign: str = "") -> str:
    """Two decimals with a true minus sign, and no minus zero.

    >>> [format_two_decimals(x) for x in (-0.25, -0.001, 0.5)]
    ['−0.25', '0.00', '0.50']
    """
    return f"{round(value, 2) + 0.0:{sign}.2f}".replace("-", "\N{MINUS SIGN}")


def interval_row(estimate: Estimate, **more: object) -> FigureRow:
    """A row with the estimate and its interval, which is the value itself where there is none.

    >>> interval_row(Estimate(0.5, float("nan"), float("nan"), 1), group="attention")
    {'group': 'attention', 'value': 0.5, 'low': 0.5, 'high': 0.5}
    """
    value = estimate.value
    low, high = (value if isnan(end) else end for end in (estimate.low, estimate.high))
    return {**more, "value": value, "low": low, "high": high}


def interval_rows(pairs: Iterable[tuple[Estimate, FigureRow]]) -> list[FigureRow]:
    """Rows of all estimates that have a value."""
    return [interval_row(one, **more) for one, more in pairs if not isnan(one.value)]


def reference_lines(estimates: Mapping[str, Estimate]) -> list[FigureRow]:
    """A line with its label for each estimate that has a value."""
    known = {label: one.value for label, one in estimates.items() if not isnan(one.value)}
    return [{"rule": value, "label": label} for label, value in known.items()]


def rounded_span(values: Iterable[float], step: float = 0.05) -> Span:
    """The multiples of a step between which all values lie, at least one step apart.

    >>> rounded_span([0.81, 0.9]), rounded_span([1.0]), rounded_span([])
    ((0.8, 0.9), (0.95, 1.0), (0.0, 1.0))
    """
    seen = sorted(values)
    if not seen:
        return 0.0, 1.0
    low, high = floor(seen[0] / step + 1e-9), ceil(seen[-1] / step - 1e-9)
    return round((low - 1 if low == high else low) * step, 4), round(high * step, 4)


def ends(rows: Iterable[FigureRow]) -> list[float]:
    """The ends of the intervals of all rows."""
    return [row[end] for row in rows for end in ("low", "high")]


def percentile_row(values: TextValues, **more: object) -> FigureRow:
    """A row with the median, a box around the middle half and the ends at 10 and 90 %."""
    found = np.nanpercentile(values, list(PERCENTILES.values())).round(4).tolist()
    return {**more, **dict(zip(PERCENTILES, found, strict=True))}


def group_by_class(records: "RunRecords") -> tuple[tuple[str, ...], np.ndarray]:
    """The classes to draw and the class of each text; rare ones beyond the sixth are joined."""
    predicted = np.array(records.predicted, dtype=object)
    names, counts = np.unique(predicted.astype(str), return_counts=True)
    if len(names) <= MOST_CLASSES:
        return tuple(map(str, names)), predicted
    kept = set(names[np.argsort(-counts, kind="stable")][: MOST_CLASSES - 1].tolist())
    groups = np.array([one if one in kept else OTHER for one in predicted], dtype=object)
    return (*sorted(kept), OTHER), groups


def histogram(records: "RunRecords", check: str, measure: str, title: str) -> FigureData:
    """The distribution of a τ over the texts of each class."""
    values = records.column(check, measure)
    classes, groups = group_by_class(records)
    if np.isnan(values).all():
        return FigureData(measure, "histogram", title, "")
    mean = float(np.nanmean(values))
    return FigureData(
        measure,
        "histogram",
        title,
        f"Kendall's τ per text, mean {format_two_decimals(mean)}; share of the texts of each "
        "class.",
        x="Kendall's τ",
        span=(-1.0, 1.0),
        classes=classes,
        rows=[row for one in classes for row in _bars(one, values[groups == one])],
        marks=[{"x": mean}],
    )


def _bars(name: str, values: TextValues) -> list[FigureRow]:
    defined = values[~np.isnan(values)]
    counts, edges = np.histogram(np.clip(defined, -1, 1), bins=BINS, range=(-1, 1))
    shares = counts / max(len(defined), 1)
    return [
        {"class": name, "x": round(float(x), 4), "x2": round(float(x2), 4), "share": float(share)}
        for x, x2, share in zip(edges[:-1], edges[1:], shares.round(5), strict=True)
    ]


def densities_by_weight(
    records: "RunRecords", *, check: str, most: float, words: Sequence[FigureWords]
) -> list[FigureData]:
    """Measures between 0 and `most` against the largest attention weight, class by class.

    A figure has the name of its measure.
    """
    height = records.column("permutation", "max_attention")
    classes, groups = group_by_class(records)
    figures = []
    for name, title, caption, axis in words:
        values = records.column(check, name)
        known = ~np.isnan(values) & ~np.isnan(height)
        rows, marks = list[FigureRow](), list[FigureRow]()
        for one in classes:
            x, y = (column[known & (groups == one)] for column in (values, height))
            rows += [row | {"class": one} for row in density_cells(x, y, (0.0, most))]
            marks += [{"class": one, "x": mark["y"], "y": mark["x"]} for mark in median_line(y, x)]
        figures.append(
            FigureData(
                name,
                "density",
                title,
                f"{caption} Line: median in each tenth of the largest weight.",
                x=axis,
                span=(0.0, most),
                classes=classes,
                rows=rows,
                marks=marks,
                y="largest attention weight",
            )
        )
    return drop_empty(figures)


def density_cells(
    x: TextValues, y: TextValues, span: Span, y_span: Span = (0.0, 1.0)
) -> list[FigureRow]:
    """The cells that hold texts, and how many, relative to the fullest."""
    counts, across, up = np.histogram2d(
        np.clip(x, *span), np.clip(y, *y_span), bins=CELLS, range=(span, y_span)
    )
    strength = np.sqrt(counts / max(counts.max(), 1))
    xs, ys = across.round(4).tolist(), up.round(4).tolist()
    return [
        {
            **{"x": xs[i], "x2": xs[i + 1], "y": ys[j], "y2": ys[j + 1]},
            **{"texts": int(counts[i, j]), "strength": round(float(strength[i, j]), 3)},
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]


def median_line(x: TextValues, y: TextValues) -> list[FigureRow]:
    """The median of y in each tenth of x, which lies between 0 and 1."""
    tenth = np.clip((x * 10).astype(int), 0, 9)
    return [
        {"x": (int(one) + 0.5) / 10, "y": round(float(np.median(y[tenth == one])), 4)}
        for one in np.unique(tenth)
        if (tenth == one).sum() >= FEWEST
    ]


def layer_rows(estimates: LayerEstimates, **more: object) -> list[FigureRow]:
    """A point with its interval for each layer."""
    layers = {layer: one for (layer, head), one in estimates.items() if head is None}
    return interval_rows((layers[layer], {**more, "x": layer}) for layer in sorted(layers))


def head_dots(estimates: LayerEstimates) -> list[FigureRow]:
    """A faint point for each head: those of a layer side by side, so that none hides another."""
    heads = {place: one.value for place, one in estimates.items() if place[1] is not None}
    count = {layer: sum(place[0] == layer for place in heads) for layer, _ in heads}
    return [
        {"x": layer + HEAD_ROOM * ((int(head or 0) + 0.5) / count[layer] - 0.5), "value": value}
        for (layer, head), value in heads.items()
        if not isnan(value)
    ]


def layer_figure(
    records: "RunRecords",
    words: FigureWords,
    rows: Sequence[FigureRow],
    marks: Sequence[FigureRow] = (),
    *,
    y_span: Span | None = None,
) -> FigureData:
    """A measure from layer to layer, the audited layer shaded."""
    layers = [row["x"] for row in rows] or [0]
    heights = [0.0, *ends(rows)]
    heights += [one[key] for one in marks for key in ("value", "rule") if key in one]
    audited = read_audited_attention(records.manifest)
    shaded = [
        {"from": one - 0.5, "to": one + 0.5, "label": "under audit"}
        for one in sorted(set(layers))
        if is_audited(audited, one)
    ]
    return FigureData(
        words.name,
        "lines",
        words.title,
        words.caption,
        x=ACROSS,
        span=(min(layers) - 0.5, max(layers) + 0.5),
        rows=rows,
        marks=[*shaded, *marks],
        y=words.axis,
        y_span=y_span or rounded_span(heights, 0.1),
    )


def arm_figures(
    records: "RunRecords",
    *,
    words: FigureWords,
    arms: Mapping[str, str],
    differences: Mapping[str, str],
) -> list[FigureData]:
    """Accuracy of retrained models by arm, with every seed, and differences between arms.

    `arms` and `differences` map measures to names; the figure has the name of the check.
    """
    result, score = records.verdict.checks[words.name], "accuracy"
    difference, caption = f"difference of {score}", words.caption
    rows = _labelled_rows(result, arms, score)
    apart = _labelled_rows(result, differences, difference)
    marks: list[FigureRow] = [
        {"panel": score, "group": arm, "value": value, "lift": (place + 0.5) / len(seeds) - 0.5}
        for measure, arm in arms.items()
        for seeds in (seed_means(result, measure),)
        for place, value in enumerate(seeds)
    ]
    panels = [FigurePanel(score, rounded_span([*ends(rows), *(dot["value"] for dot in marks)]))]
    margin = records.number_setting(words.name, "margin") or 0.0
    if apart:
        most = DIFFERENCE_ROOM * max(0.02, 2 * margin, *map(abs, ends(apart)))
        panels.append(FigurePanel(difference, (-most, most)))
    if apart and margin:
        caption += f" Shaded: within {margin:g}, which counts as no difference."
        marks.append({"panel": difference, "from": -margin, "to": margin})
    figure = FigureData(words.name, "intervals", words.title, caption, rows=[*rows, *apart])
    return drop_empty([replace(figure, marks=marks, panels=panels)])


def _labelled_rows(result: CheckResult, names: Mapping[str, str], panel: str) -> list[FigureRow]:
    """A row with its number at the right for each measure that has a value."""
    rows = interval_rows(
        (result.of(measure), {"panel": panel, "group": name}) for measure, name in names.items()
    )
    return [row | {"label": f"{row['value']:z.3f}".replace("-", "\N{MINUS SIGN}")} for row in rows]


def seed_means(result: CheckResult, measure: str) -> list[float]:
    """The means of a measure, seed by seed."""
    means = (row.estimate.value for row in result.rows(measure) if row.seed is not None)
    return [value for value in means if not isnan(value)]


def weight_order(weight: str) -> float:
    """The number of a λ such as "λ 0.01"; infinite where it is not a number.

    >>> weight_order("λ 0.01"), weight_order("none")
    (0.01, inf)
    """
    try:
        value = float(weight.removeprefix("λ "))
    except ValueError:
        return float("inf")
    return float("inf") if isnan(value) else value
