"""The Check protocol: a question about a model's attention, answered batch by batch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.records import EstimateRow, Measurement, MissingMeasure, Series
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.tensor.ranking import dense_ranks, kendall
from heedful.results.tables import MeasurementColumns, TextValues


@dataclass(frozen=True, slots=True)
class Findings:
    """The measurements of a check on one batch, and the measures it could not take."""

    measurements: tuple[Measurement, ...]
    missing: tuple[MissingMeasure, ...] = ()

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Float[Tensor, "B"]], missing: Mapping[str, str] | None = None
    ) -> "Findings":
        """Plain measures by name, and the reasons for those that are missing."""
        measured = (to_measurement(name, column) for name, column in columns.items())
        return cls(tuple(measured), missing_of(missing or {}))


@runtime_checkable
class Check(Protocol):
    """A check that sees one batch at a time, so that audits stream and resume.

    Its `CheckSpec` describes its measures and the rules of its answer.
    """

    def __call__(self, context: BatchContext) -> Findings: ...


@runtime_checkable
class NeedsAllTexts(Protocol):
    """A check with measures that need all texts at once: a correction for many tests, say."""

    def measure_all(self, columns: Mapping[Series, TextValues]) -> dict[str, TextValues]:
        """Further plain measures per text, computed from the columns of all texts."""


@runtime_checkable
class FitsData(Protocol):
    """A check with a setting that depends on the data and is found before the work begins."""

    def fitted(self, examples: Iterable[Example], subject: Subject) -> Any:
        """The same check with the setting taken from data and model, where it is not given."""


@runtime_checkable
class DescribesCost(Protocol):
    """A check whose cost is said before the work begins."""

    def describe_cost(self, texts: int) -> str:
        """One line on what so many texts will take."""


@dataclass(frozen=True, eq=False)
class TextGroup:
    """The texts that some estimates are about: all, those of one predicted class, or a slice."""

    texts: NDArray[np.bool_]
    predicted: str | None = None
    slice: str | None = None


@runtime_checkable
class Resampling(Protocol):
    """How the texts of an audit are resampled.

    `clusters` has an id per text, of what is drawn together; `copies` an id of its content. Without
    ids each text is one of its own.
    """

    @property
    def resamples(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def level(self) -> float: ...
    @property
    def clusters(self) -> NDArray[Any] | None: ...
    @property
    def copies(self) -> NDArray[Any] | None: ...


@runtime_checkable
class MakesEstimates(Protocol):
    """A check with estimates that are more than means of its measures: ratios of sums, say."""

    def estimate(
        self,
        columns: MeasurementColumns,
        resampling: Resampling,
        groups: Sequence[TextGroup],
        *,
        epsilon: float,
    ) -> tuple[EstimateRow, ...]:
        """Further rows of estimates, computed from the columns of all texts."""


@runtime_checkable
class HasSignificanceTests(Protocol):
    """A check that tests several hypotheses over all texts."""

    def test(
        self, columns: Mapping[Series, TextValues], *, resamples: int, seed: int
    ) -> dict[Series, float]:
        """p-values, corrected for their number.

        A column has one value for each text that is drawn on its own, and the sum of those that are
        drawn together, such as copies.
        """


@runtime_checkable
class HasWordScores(Protocol):
    """A check whose scores of single words are kept, so that a report can show them."""

    def word_scores(self, context: BatchContext) -> Mapping[str, Float[Tensor, "B T"]]:
        """Scores by name; `core.records.WORD_SCORES` lists the names that are kept."""


def to_measurement(
    measure: str,
    values: Float[Tensor, "B"],
    setting: str | None = None,
    *,
    method: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    seed: int | None = None,
) -> Measurement:
    """The values of a batch as a measurement."""
    column = values.detach().double().cpu().numpy()
    return Measurement(measure, column, setting, method, layer, head, seed)


def rank_agreement(
    scores: Float[Tensor, "B K T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B K K"]:
    """Kendall's τ-b between every two rows of scores of the words of a text."""
    return kendall(dense_ranks(scores, mask[:, None].expand_as(scores)), mask).tau


def missing_of(reasons: Mapping[str, str]) -> tuple[MissingMeasure, ...]:
    """Measures by name, each with the reason why it is missing."""
    return tuple(MissingMeasure(*one) for one in reasons.items())


def require_ways(chosen: Sequence[str], known: Collection[str], *, least: int = 0) -> None:
    """Raise ConfigError unless `ways` holds known names, at least `least`, each once."""
    if len(chosen) < least or len({*chosen} & {*known}) < len(chosen):
        names = " or ".join(known)
        raise ConfigError(f"ways must be {names}, each at most once, not {tuple(chosen)}.")
