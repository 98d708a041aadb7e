"""What the figures of methods against methods show."""

from math import isnan
from typing import Any

from heedful.checks.attention.agreement.compared_methods import MethodAgreement, MethodPair
from heedful.core.records import Estimate
from heedful.report.figures.figure_data import format_two_decimals
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData, FigureRow


def build_method_figures(methods: MethodAgreement | None) -> tuple[FigureData, ...]:
    """Rank agreement and shared top words of every two methods; none where none were asked for."""
    if methods is None:
        return ()
    top = "top words" if methods.top is None else f"top {methods.top} words"
    names = {one.name for one in methods.methods}
    chance = " By chance it would be as much as with random." if "random" in names else ""
    made = (
        _matrix(
            methods,
            name="methods_tau",
            title="Agreement of every two methods",
            caption="Mean Kendall's τ-b of the two rankings, by absolute score.",
        ),
        _matrix(
            methods,
            name="methods_overlap",
            title="Top words that two methods share",
            caption=f"Mean share of the {top}, at most half of a text's, that both name.{chance}",
        ),
    )
    return tuple(one for one in made if one.rows)


def _matrix(methods: MethodAgreement, *, name: str, title: str, caption: str) -> FigureData:
    labels = _labels(methods)
    rows = [
        {**row, "one": labels[row["one"]], "other": labels[row["other"]]}
        for pair in methods.pairs
        for row in _cells(pair, _estimate(pair, name))
    ]
    starts = {one.kind: labels[one.name] for one in reversed(methods.methods)}
    return FigureData(
        name=name,
        kind="matrix",
        title=title,
        caption=caption,
        x="",
        span=(-1.0, 1.0),
        classes=tuple(labels[one.name] for one in methods.methods),
        rows=tuple(rows),
        marks=tuple({"one": first, "kind": kind} for kind, first in starts.items()),
    )


def _labels(methods: MethodAgreement) -> dict[str, str]:
    """Names, with the number of texts where a method ranked clearly fewer than others."""
    few = {name: f"{name}, n = {one.texts}" for name, one in methods.few.items()}
    return {one.name: few.get(one.name, one.name) for one in methods.methods}


def _estimate(pair: MethodPair, name: str) -> Estimate:
    return pair.tau if name == "methods_tau" else pair.overlap


def _cells(pair: MethodPair, estimate: Estimate) -> list[FigureRow]:
    """A number on either side of the diagonal; without an interval it has no colour."""
    if isnan(estimate.value):
        return []
    strength = 0.0 if isnan(estimate.low) else min(1.0, abs(estimate.value))
    cell: FigureRow = {"label": format_two_decimals(estimate.value), "strength": strength}
    cell["sign"] = "minus" if estimate.value < 0 else "plus"
    both = ((pair.one, pair.other), (pair.other, pair.one))
    return [{"one": one, "other": other, **cell} for one, other in both]


WIDE, HIGH = 38, 25  # of a cell
DEEPEST = 0.5  # opacity: ink is read on the whole scale, in light and in dark


def matrix_chart(picture: FigureData) -> Any:
    """A cell for every two methods, blue above 0 and orange below it, its number inside."""
    import altair as alt

    names = list(picture.classes)
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None, "labelLimit": 220}
    top = alt.Axis(orient="top", labelAngle=-40, labelAlign="left", labelPadding=4, **bare)
    places = alt.Scale(domain=names, paddingInner=0.03)
    x = alt.X("other:N", sort=names, axis=top, scale=places)
    y = alt.Y("one:N", sort=names, axis=alt.Axis(**bare), scale=places)
    base = alt.Chart(chart_data(picture.rows), width=alt.Step(WIDE), height=alt.Step(HIGH))
    base = base.encode(x=x, y=y)
    signs = alt.Scale(domain=["plus", "minus"], range=list(SERIES[:2]))
    depth = alt.Scale(domain=(0, 1), range=(0.03, DEEPEST))
    cells = base.mark_rect(stroke=None).encode(
        fill=alt.Fill("sign:N", scale=signs, legend=None),
        fillOpacity=alt.FillOpacity("strength:Q", scale=depth, legend=None),
    )
    numbers = base.mark_text(fontSize=11, color=INK).encode(text="label:N")
    return alt.layer(cells, numbers, *_kinds(picture, x, y))


def _kinds(picture: FigureData, x: Any, y: Any) -> list[Any]:
    """The kind at the right of its first method, and a line before each kind but the first."""
    import altair as alt

    starts = sorted(picture.marks, key=lambda mark: picture.classes.index(mark["one"]))
    words = alt.Chart(chart_data(starts)).mark_text(align="left", dx=8, fontSize=11, color=QUIET)
    words = words.encode(x=alt.value("width"), y=y, text="kind:N")
    later = alt.Chart(chart_data({**mark, "other": mark["one"]} for mark in starts[1:]))
    line = later.mark_rule(color=QUIET, strokeWidth=1, opacity=0.6)
    across = line.encode(y=_at_edge(y), x=alt.value(0), x2=alt.value("width"))
    down = line.encode(x=_at_edge(x), y=alt.value(0), y2=alt.value("height"))
    return [words, *([across, down] if starts[1:] else [])]


def _at_edge(channel: Any) -> Any:
    edge = channel.copy()
    edge.bandPosition = 0
    return edge
