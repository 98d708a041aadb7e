"""The figure of `off_manifold`: the removals of `faithfulness`, for the model and its copy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.checks.faithfulness.faithfulness.figures import WORDS, build_removal_figures
from heedful.results.document import FigureData

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "off_manifold"
COPY = "masking, in the copy"
COPY_WORDS = WORDS._replace(name=NAME, title="The same for a copy trained on masked texts")


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Methods with intervals, in the copy and in the audited model."""
    return build_removal_figures(records.verdict.checks[NAME], COPY_WORDS, COPY)
