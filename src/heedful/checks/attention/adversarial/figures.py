"""Figures of `adversarial`: the most distant attention with the same output, by each search."""

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from heedful.results.document import FigureData, FigurePanel
from heedful.results.figure_data import FigureWords, density_by_weight

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "adversarial"
SEARCHES = {
    "ε-max JSD": FigureWords(
        "epsilon_max_jsd",
        "Most distant attention found",
        "To the right: the published search finds distant weights with the same output.",
    ),
    "JSD": FigureWords(
        "ascent_jsd",
        "Most distant attention found by linear programs",
        "To the right: linear programs find distant weights with the same output.",
    ),
    "certified JSD": FigureWords(
        "certified_jsd",
        "Most distant attention there is",
        "To the right: distant weights with the same output exist.",
    ),
}


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """The distance that each search reached, by the largest weight."""
    return [
        figure
        for x, words in SEARCHES.items()
        for figure in density_by_weight(records, NAME, words, panel=FigurePanel(x, (0.0, log(2))))
    ]
