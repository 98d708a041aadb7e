"""The figure of `necessity`: accuracy with learned and with uniform attention, seed by seed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.results.document import FigureData
from heedful.results.figure_data import FigureWords, seed_figure

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

WORDS = FigureWords(
    "necessity",
    "Trained with learned and with uniform attention",
    "Accuracy of every seed (faint) and mean with its interval over seeds and texts; below, the "
    "difference of the two.",
)
ARMS = {"score_trained": "learned attention", "score_uniform": "uniform attention"}
DIFFERENCES = {"gain": "learned − uniform"}


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Both arms and their difference."""
    result = records.verdict.checks["necessity"]
    return seed_figure(records, result, WORDS, ARMS, DIFFERENCES)
