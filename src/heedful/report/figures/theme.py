"""What all charts share: colours, letters, and how rows reach them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heedful.checks.spec import CONTROL_METHODS
from heedful.results.figure_data import format_two_decimals

# Okabe and Ito's colours, distinct for every common form of colour vision. The page repaints
# exactly these values for its dark side, so charts use no others.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#b0609a", "#8a6d00", "#4aa3d8")
INK, QUIET, GRID = "#22272e", "#6b7280", "#e3e6ea"
LONG_LABEL = 24  # characters from which labels of a legend stand below each other
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def chart_data(rows: Iterable[Mapping[str, Any]], key: str | None = None) -> Any:
    """Rows as a chart takes them: all of them, or those that have this key."""
    import altair as alt

    # as one string: altair would copy and check every number of a table many times over
    kept = [row for row in rows if key is None or key in row]
    text = json.dumps(kept, ensure_ascii=False)
    return alt.InlineData(values=text, format=alt.JsonDataFormat(type="json"))


def chart_theme(background: str) -> dict[str, Any]:
    """The settings that make all charts one family."""
    axis: dict[str, Any] = {"labelColor": QUIET, "titleColor": INK}
    axis |= dict.fromkeys(("gridColor", "domainColor", "tickColor"), GRID)
    axis |= {"titleFontWeight": 500, "titleFontSize": 12, "labelFontSize": 11}
    text = {"color": INK, "fontSize": 13, "anchor": "start", "fontWeight": 600, "limit": 260}
    legend = {"labelColor": INK, "titleColor": INK, "labelLimit": 140, "symbolType": "square"}
    look = {"axis": axis, "title": text, "legend": legend, "view": {"stroke": None}, "font": FONT}
    return {**look, "background": background}


def class_colour(names: Sequence[str], channel: Any = None, title: str | None = None) -> Any:
    """A colour for each class, with a legend above the chart where there are several.

    Control methods are grey.
    """
    import altair as alt

    channel = channel or alt.Color
    if len(names) < 2:
        return channel(value=SERIES[0])
    columns = 3 if max(map(len, names)) < LONG_LABEL else 1
    above: dict[str, Any] = {"orient": "top", "offset": 6, "columns": columns}
    legend = alt.Legend(title=title, labelLimit=300, symbolOpacity=0.9, **above)
    others = [name for name in names if name not in CONTROL_METHODS]
    colours = {name: SERIES[place % len(SERIES)] for place, name in enumerate(others)}
    scale = alt.Scale(domain=list(names), range=[colours.get(name, QUIET) for name in names])
    return channel("class:N", scale=scale, legend=legend)


def spread_labels(marks: Iterable[Mapping[str, Any]], gap: float) -> list[dict[str, Any]]:
    """Rules from the lowest up, each with a height for its label that leaves room for the next.

    >>> marks = [{"rule": rule, "label": ""} for rule in (2.0, 1.0)]
    >>> [one["words_at"] for one in spread_labels(marks, 3.0)]
    [1.0, 4.0]
    """
    placed: list[dict[str, Any]] = []
    for mark in sorted((one for one in marks if "rule" in one), key=lambda one: one["rule"]):
        free = placed[-1]["words_at"] + gap if placed else mark["rule"]
        label = f"{mark['label']} {format_two_decimals(mark['rule'])}"
        placed.append({**mark, "label": label, "words_at": max(mark["rule"], free)})
    return placed
