"""The Check protocol: questions put to a subject's attention."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.records import Claim, Measurement
from heedful.core.registry import Registry
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext

checks = Registry("check")
TextValues = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check found on one batch, and why it lacks what it lacks."""

    measurements: tuple[Measurement, ...]
    missing: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Check(Protocol):
    """A question that can be put to one batch at a time, so that audits stream and resume.

    `claim` is what the check bears on; whether it is heard there is a matter of its power, which
    is measured. `measures` are averaged over instances and estimated with intervals, `head_measures` too
    where a subject has heads, `beside` are kept per instance only. A check that takes many passes
    says `usual = False`: it is run when asked for.
    """

    claim: ClassVar[Claim | None]
    head_measures: ClassVar[tuple[str, ...]]
    beside: ClassVar[tuple[str, ...]]

    @property
    def measures(self) -> tuple[str, ...]: ...

    def __call__(self, context: BatchContext) -> Findings: ...


@runtime_checkable
class NeedsAllTexts(Protocol):
    """A check with measures that need all instances at once: a correction for many tests, say."""

    def whole(self, columns: Mapping[str, TextValues]) -> dict[str, TextValues]:
        """Further per-instance columns, computed from all instances' columns."""
        ...


@runtime_checkable
class FitsData(Protocol):
    """A check with a setting that is a fact of the data, found before the work begins."""

    def fitted(self, examples: Iterable[Example]) -> Any:
        """The same check with what the data say of a setting that is not given."""
        ...


@runtime_checkable
class HasSignificanceTests(Protocol):
    """A check that asks several questions of all instances, each with a p-value."""

    def tested(
        self, columns: Mapping[str, TextValues], *, resamples: int, seed: int
    ) -> dict[str, float]:
        """p-values, corrected for being many."""
        ...


def default_checks() -> tuple[str, ...]:
    """What is run unless checks are named: all that retrain nothing and take few passes."""
    return tuple(
        name
        for name in checks
        if not hasattr(checks[name], "lessons") and getattr(checks[name], "usual", True)
    )


def to_measurement(
    measure: str, values: Float[Tensor, "B"], setting: str | None = None
) -> Measurement:
    """A column of a batch as it is kept."""
    return Measurement(measure, values.detach().double().cpu().numpy(), setting)
