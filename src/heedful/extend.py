"""Everything that adapters of own models and plug-in packages need.

A package adds a method by an entry point in the group `heedful.methods`, and a check by one in the
group `heedful.checks` that names a `CheckSpec`. See docs/extending.md and docs/your-own-model.md.
"""

from heedful.checks import CheckSpec, Measure, checks
from heedful.checks.base import Check, Findings, to_measurement
from heedful.checks.spec import Evidence, VoteRule
from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import NotApplicable
from heedful.core.records import Estimate, MissingMeasure
from heedful.core.values import Example, Explanation, Forward, LinearDecoder
from heedful.methods import Method, methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.results.document import Cell, FigureData, Section, Table
from heedful.results.run_records import RunRecords

__all__ = [
    "Batch",
    "BatchContext",
    "Cell",
    "Check",
    "CheckSpec",
    "Encoded",
    "Estimate",
    "Evidence",
    "Example",
    "Explanation",
    "FigureData",
    "Findings",
    "Forward",
    "LinearDecoder",
    "Measure",
    "Method",
    "MissingMeasure",
    "NotApplicable",
    "RunRecords",
    "Section",
    "Subject",
    "Table",
    "VoteRule",
    "checks",
    "collate",
    "methods",
    "to_measurement",
]
