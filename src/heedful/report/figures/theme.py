"""What all charts share: colours, letters, and how rows reach them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

# Okabe and Ito's colours, distinct for every common form of colour vision. The page repaints
# exactly these values for its dark side, so charts use no others.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#b0609a", "#8a6d00", "#4aa3d8")
INK, QUIET, GRID = "#22272e", "#6b7280", "#e3e6ea"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def chart_data(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as a chart takes them."""
    import altair as alt

    # as one string: altair would copy and check every number of a table many times over
    text = json.dumps(list(rows), ensure_ascii=False)
    return alt.InlineData(values=text, format=alt.JsonDataFormat(type="json"))


def chart_theme(background: str) -> dict[str, Any]:
    """The settings that make all charts one family."""
    axis: dict[str, Any] = {
        "labelColor": QUIET,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": GRID,
    }
    axis |= {"tickColor": GRID, "titleFontWeight": 500, "titleFontSize": 12, "labelFontSize": 11}
    text: dict[str, Any] = {
        "color": INK,
        "fontSize": 13,
        "anchor": "start",
        "fontWeight": 600,
        "limit": 260,
    }
    legend: dict[str, Any] = {
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 140,
        "symbolType": "square",
    }
    view = {"stroke": None}
    look = {"axis": axis, "title": text, "legend": legend, "view": view, "font": FONT}
    return {**look, "background": background}
