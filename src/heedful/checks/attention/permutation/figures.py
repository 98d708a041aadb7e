"""The figure of `permutation`: change of output by the largest weight."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.results.document import FigureData, FigurePanel
from heedful.results.figure_data import FigureWords, density_by_weight

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "permutation"
WORDS = FigureWords(
    "median_tvd",
    "Shuffling the weights",
    "To the left: the output stays although the weights are shuffled.",
)
PANEL = FigurePanel("median change of output (TVD)", (0.0, 1.0))


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """How far shuffled weights move the output, by the largest weight."""
    return density_by_weight(records, NAME, WORDS, panel=PANEL)
