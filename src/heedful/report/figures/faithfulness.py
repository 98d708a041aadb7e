"""The figure of faithfulness: every method with its controls, by every way of removal."""

import tomllib
from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np

from heedful.checks.spec import CONTROL_METHODS
from heedful.core.records import CheckResult
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords, sanitise_text

CHECK, COPY = "faithfulness", "off_manifold"
COPIED = "masking, in the copy"
TITLES = {
    CHECK: "The words a method ranks highest",
    COPY: "The same for a copy trained on masked texts",
}
PANELS = {
    "beyond_random": "lost beyond random removal",
    "comprehensiveness": "lost without the top words",
    "sufficiency": "lost with the top words alone",
}
WORST = "worst"  # comprehensiveness of the order from its end
KINDS = ("a method", "control", "its order reversed")
STEP = 0.05  # of the ends of an axis


def build_removal_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """Methods with intervals, by every way to remove words; none without the check."""
    picture = build_removal_figure(records, CHECK, first_way(records.plan))
    return (picture,) if picture.rows else ()


def build_copy_figure(records: RunRecords) -> FigureData:
    """The same for a copy of the model trained on masked texts, and for the model."""
    return build_removal_figure(records, COPY, COPIED)


def build_removal_figure(records: RunRecords, check: str, way: str) -> FigureData:
    """A figure of the removals of a check; `way` is that of its plain rows."""
    rows = _rows(records, check, way)
    ends = [row[end] for row in rows for end in ("low", "high")] or [0.0]
    low, high = np.floor(min(ends) / STEP) * STEP, np.ceil(max(ends) / STEP) * STEP
    ways = dict.fromkeys(row["way"] for row in rows)
    return FigureData(
        name=check,
        kind="whiskers",
        title=TITLES[check],
        caption="Probability of the predicted class that is lost, mean over texts and shares of "
        "the words, with intervals. Only what lies beyond random removal is evidence: any removal "
        f"harms. Words go by {' and by '.join(ways)}. Hollow: controls.",
        x="probability lost",
        span=(round(float(min(low, 0.0)), 2), round(float(max(high, STEP)), 2)),
        classes=tuple(dict.fromkeys(row["method"] for row in rows)),
        rows=tuple(rows),
        marks=tuple({"way": way} for way in ways),
    )


def _rows(records: RunRecords, check: str, way: str) -> list[FigureRow]:
    result = records.verdict.checks.get(check)
    if result is None:
        return []
    order = [*result.by_method(next(iter(PANELS))), *CONTROL_METHODS]
    settings = dict.fromkeys(
        row.setting for row in result.rows(WORST) if row.setting and row.predicted is None
    )
    ways: dict[str | None, str] = {None: way} | {one: str(one) for one in sorted(settings)}
    return [
        row
        for setting, name_of_way in ways.items()
        for panel in PANELS
        for name in order
        for row in _points(result, panel, name, setting, name_of_way)
    ]


def _points(
    result: CheckResult, panel: str, name: str, setting: str | None, way: str
) -> Iterator[FigureRow]:
    """The mean of a method in a panel, and that of its reversed order."""
    measures = {panel: KINDS[1] if name in CONTROL_METHODS else KINDS[0]}
    if panel == "comprehensiveness":
        measures[WORST] = KINDS[2]
    keys = {"method": name} if setting is None else {"method": name, "setting": setting}
    for measure, what in measures.items():
        one = result.of(measure, **keys)
        if isnan(one.value):
            continue
        low, high = (one.value if isnan(end) else end for end in (one.low, one.high))
        place = {"method": sanitise_text(name), "panel": PANELS[panel], "way": sanitise_text(way)}
        yield place | {"what": what, "value": one.value, "low": low, "high": high}


def first_way(plan: str) -> str:
    """The way of the plain rows."""
    try:
        way = tomllib.loads(plan)["settings"][CHECK]["ways"][0]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return "deletion"  # no plan was kept
    return way if isinstance(way, str) else "deletion"


WIDTH, HIGH = 210, 15  # of a panel; of a way within a method's row
SHAPES = ("circle", "diamond", "triangle-left")


def whiskers_chart(picture: FigureData) -> Any:
    """A panel for each figure: dots with their intervals, methods as rows, ways as colours."""
    import altair as alt

    panels = list(dict.fromkeys(row["panel"] for row in picture.rows))
    drawn = [_panel(picture, panel, named=not place) for place, panel in enumerate(panels)]
    return alt.hconcat(*drawn, spacing=22)


def _panel(picture: FigureData, panel: str, *, named: bool) -> Any:
    import altair as alt

    rows = [row for row in picture.rows if row["panel"] == panel]
    ways, names = [mark["way"] for mark in picture.marks], list(picture.classes)
    bare: dict[str, Any] = {"domain": False, "ticks": False, "labelLimit": 200, "labelColor": INK}
    axis = alt.Axis(**bare, labelPadding=8, grid=True) if named else alt.Axis(labels=False, **bare)
    places = alt.Scale(domain=names, paddingInner=0.25)
    y = alt.Y("method:N", sort=names, title=None, axis=axis, scale=places)
    beside = alt.YOffset("way:N", sort=ways, scale=alt.Scale(domain=ways, paddingOuter=0.3))
    x = alt.X(
        "value:Q",
        title=panel,
        scale=alt.Scale(domain=picture.span, nice=False),
        axis=alt.Axis(tickCount=4, format="~g"),
    )
    base = alt.Chart(chart_data(rows), width=WIDTH, height=HIGH * len(names) * (len(ways) + 1))
    base = base.encode(y=y, yOffset=beside)
    zero = alt.Chart(chart_data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(x=x)
    spread = base.mark_rule(strokeWidth=2, opacity=0.75)
    spread = spread.encode(
        x=alt.X("low:Q", title=panel), x2="high:Q", stroke=alt.Stroke("way:N", **_colours(ways))
    )
    point = base.mark_point(size=50, strokeWidth=1.6).encode(x=x, **_marks(ways))
    return alt.layer(zero, spread, point)


def _colours(ways: list[str]) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=ways, range=list(SERIES[: len(ways)]))
    return {"scale": scale, "legend": alt.Legend(title=None, orient="top", offset=6)}


def _marks(ways: list[str]) -> dict[str, Any]:
    """Methods are filled dots, controls hollow ones."""
    import altair as alt

    shape = alt.Scale(domain=list(KINDS), range=list(SHAPES))
    filled = alt.Scale(domain=list(KINDS), range=[1, 0, 0])
    legend = alt.Legend(
        title=None, orient="top", offset=6, symbolStrokeColor=QUIET, symbolFillColor=QUIET
    )
    return {
        "stroke": alt.Stroke("way:N", **_colours(ways)),
        "fill": alt.Fill("way:N", **_colours(ways) | {"legend": None}),
        "shape": alt.Shape("what:N", scale=shape, legend=legend),
        "fillOpacity": alt.FillOpacity("what:N", scale=filled, legend=legend),
    }
