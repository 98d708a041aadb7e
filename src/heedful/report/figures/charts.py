"""The chart of each kind of figure; imported only to draw one, because altair is an extra."""

from collections.abc import Callable
from typing import Any

from heedful.report.figures.density import density_chart
from heedful.report.figures.flow import flow_chart
from heedful.report.figures.heatmap import heatmap_chart
from heedful.report.figures.histogram import histogram_chart
from heedful.report.figures.intervals import interval_chart
from heedful.report.figures.lines import line_chart
from heedful.results.document import FigureData, FigureKind

CHART_BUILDERS: dict[FigureKind, Callable[[FigureData], Any]] = {
    "histogram": histogram_chart,
    "density": density_chart,
    "flow": flow_chart,
    "heatmap": heatmap_chart,
    "intervals": interval_chart,
    "lines": line_chart,
}
