"""Differences with their intervals, check by check, as figures."""

from math import isnan
from typing import Any

from heedful.comparison.records import ComparisonRecord, Difference, SidePair
from heedful.report.figures.theme import QUIET, SERIES, chart_data
from heedful.report.pages.comparison_rows import display_name, group_differences
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import sanitise_text

MOST = 40  # rows of a figure
MOST_PAIRS = len(SERIES)
ROOM = 1.08  # beyond the widest interval


def build_forest_figures(compared: ComparisonRecord) -> tuple[FigureData, ...]:
    """A figure for each check that both sides have; the degree stands first, on its own."""
    pairs = compared.pairs[:MOST_PAIRS]
    checks = dict.fromkeys(group.check for pair in pairs for group in group_differences(pair))
    made = (_forest(check, place, compared, pairs) for place, check in enumerate(checks))
    return tuple(one for one in made if one is not None)


def _forest(
    check: str, place: int, compared: ComparisonRecord, pairs: tuple[SidePair, ...]
) -> FigureData | None:
    rows = [
        row
        for pair in pairs
        for group in group_differences(pair)
        if group.check == check
        for one in group.rows
        if (row := _row(pair, one)) is not None
    ]
    names = list(dict.fromkeys(row["measure"] for row in rows))
    shown = [row for row in rows if row["measure"] in names[:MOST]]
    if not shown:
        return None
    most = ROOM * max(abs(row[end]) for row in shown for end in ("low", "value", "high")) or 1.0
    left = f" The first {MOST} of {len(names)} are drawn." if len(names) > MOST else ""
    caption = (
        f"Bars are {100 * compared.level:g} % intervals; filled: certain after correction.{left}"
    )
    return FigureData(
        name=f"differences-{place}",
        kind="forest",
        title=check or "Degree",
        caption=caption,
        x=f"difference from {sanitise_text(compared.pairs[0].first)}",
        span=(-most, most),
        classes=tuple(sanitise_text(pair.second) for pair in pairs),
        rows=tuple(shown),
    )


def _row(pair: SidePair, one: Difference) -> FigureRow | None:
    difference = one.difference
    if isnan(difference.value):
        return None
    ends = {"low": difference.low, "high": difference.high}
    ends = {name: difference.value if isnan(end) else end for name, end in ends.items()}
    names = {"measure": display_name(one.key), "class": sanitise_text(pair.second)}
    return {**names, "value": difference.value, **ends, "certain": one.certain}


STEP, WIDTH = 24, 330


def forest_chart(picture: FigureData) -> Any:
    """A row for each measure, a mark for each pair; zero is drawn through all."""
    import altair as alt

    scale = alt.Scale(domain=picture.span, nice=False)
    axis = alt.Axis(tickCount=5, format="+~g")
    x = alt.X("value:Q", title=picture.x, scale=scale, axis=axis)
    names = list(dict.fromkeys(row["measure"] for row in picture.rows))
    bare = alt.Axis(labelLimit=260, ticks=False, domain=False, grid=True, minExtent=200)
    y = alt.Y("measure:N", title=None, sort=names, axis=bare)
    beside = alt.YOffset("class:N", sort=list(picture.classes))
    scale = alt.Scale(domain=list(picture.classes), range=list(SERIES[: len(picture.classes)]))
    several = len(picture.classes) > 1
    legend = alt.Legend(title=None, orient="top") if several else None
    colour = alt.Color("class:N", scale=scale, legend=legend)
    high = STEP * (1 if not several else max(1.0, 0.6 * len(picture.classes)))
    base = alt.Chart(chart_data(picture.rows), width=WIDTH, height=max(1, len(names)) * high)
    base = base.encode(y=y, yOffset=beside, color=colour)
    bars = base.mark_rule(strokeWidth=2.5, opacity=0.8)
    bars = bars.encode(x=alt.X("low:Q", title=picture.x, axis=axis), x2="high:Q")
    filled = alt.condition("datum.certain", alt.value(1.0), alt.value(0.0))
    dots = base.mark_point(size=62, strokeWidth=2, filled=False, opacity=1)
    dots = dots.encode(x=x, fill=colour, fillOpacity=filled)
    zero = alt.Chart(chart_data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1.2)
    return alt.layer(zero.encode(x=x), bars, dots)
