"""The figure of `guide`: accuracy of guided models, by the weights that guide them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.results.document import FigureData
from heedful.results.figure_data import FigureWords, seed_figure

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

WORDS = FigureWords(
    "guide",
    "Models guided by given weights",
    "Accuracy of a model that sees each word on its own, by the weights that guide it: every seed "
    "(faint), mean and interval over seeds and texts; below, paired differences.",
)
ARMS = {
    "score_uniform": "uniform weights",
    "score_own": "weights it learns itself",
    "score_base": "audited attention",
    "score_adversary": "adversary's attention",
}
DIFFERENCES = {
    "base_minus_uniform": "audited − uniform",
    "base_minus_own": "audited − learned itself",
    "base_minus_adversary": "audited − adversary's",
}


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """All arms, and the audited attention compared with the others."""
    return seed_figure(records, records.verdict.checks["guide"], WORDS, ARMS, DIFFERENCES)
