"""The figures of a run by name, and what their drawings may use."""

import re

from heedful.report.figures.draw import render_svg
from heedful.report.figures.theme import GRID, INK, QUIET, SERIES
from heedful.report.sections.check_sections import list_figures

REPAINTED = {*SERIES, INK, QUIET, GRID, "none", "transparent"}  # colours the dark page knows


def figures_of(records):
    """Every figure of a run, by name."""
    found = list_figures(records)
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def draw(figure):
    """The figure as SVG, after a look at its colours and numbers."""
    svg = render_svg(figure)
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= REPAINTED
    assert "NaN" not in svg
    return svg
