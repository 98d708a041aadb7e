"""What has to hold of a trained subject for its truth to be known: bounds, held against a trial.

The bounds were set before any rule of the verdict was held against a trained subject. None of them
uses a check: *used* and *exclusive* go by closed forms of the linear output, *ranks* by the texts
without each of their words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.planted.closed_form.base import Truth
from heedful.planted.trained.measure import SAME_OUTPUT, WEIGHT_RATIO, TextMeasurement

SampleStatistic = Callable[[Sequence[TextMeasurement]], float]


@dataclass(frozen=True)
class Bound:
    """A figure of a trial, and the line it has to be above or below."""

    what: str
    figure: SampleStatistic
    line: float
    above: bool

    def held(self, texts: Sequence[TextMeasurement]) -> "BoundResult":
        """The bound with the figure of these texts."""
        return BoundResult(self.what, self.figure(texts), self.line, self.above)


@dataclass(frozen=True)
class BoundResult:
    """A bound held against a trial: plain values, so that it can be kept and sent."""

    what: str
    value: float
    line: float
    above: bool

    @property
    def holds(self) -> bool:
        """Whether the figure lies on the right side of the line; a figure that is none does not."""
        return self.value >= self.line if self.above else self.value <= self.line

    def __str__(self) -> str:
        side = "at least" if self.above else "at most"
        return f"{self.what}: {self.value:.3g}, must be {side} {self.line:g}"


def _aggregate(name: str, join: Callable[[list[float]], float]) -> SampleStatistic:
    """A figure of each text, joined over the texts."""
    return lambda texts: float(join([float(getattr(one, name)) for one in texts]))


def _share_in_order(texts: Sequence[TextMeasurement]) -> float:
    alike, apart = np.sum([one.in_order for one in texts], axis=0)
    return float(alike / apart) if apart else float("nan")


BOUNDS: dict[tuple[str, bool], tuple[Bound, ...]] = {
    ("used", True): (
        Bound(
            "what any attention moves, the least text",
            _aggregate("farthest", min),
            4 * SAME_OUTPUT,
            above=True,
        ),
    ),
    ("used", False): (
        Bound(
            "what any attention moves, the worst text",
            _aggregate("farthest", max),
            SAME_OUTPUT,
            above=False,
        ),
        Bound(
            "what any attention moves, on average",
            _aggregate("farthest", np.mean),
            SAME_OUTPUT / 2,
            above=False,
        ),
    ),
    ("ranks", True): (
        Bound(
            "τ of weights and deletions, on average", _aggregate("tau", np.mean), 0.6, above=True
        ),
        Bound(f"pairs > {WEIGHT_RATIO:g} times apart in order", _share_in_order, 0.99, above=True),
    ),
    ("ranks", False): (
        Bound(
            "τ of weights and deletions, on average", _aggregate("tau", np.mean), 0.25, above=False
        ),
        Bound(
            "texts whose top word has the top weight",
            _aggregate("found", np.mean),
            0.25,
            above=False,
        ),
        Bound(
            "largest effect beside the second, median",
            _aggregate("stands_out", np.median),
            2.0,
            above=True,
        ),
    ),
    ("exclusive", True): (
        Bound("weight elsewhere, the worst text", _aggregate("elsewhere", max), 0.4, above=False),
    ),
    ("exclusive", False): (
        Bound(
            "what any attention moves, the worst text",
            _aggregate("farthest", max),
            SAME_OUTPUT,
            above=False,
        ),
    ),
}


def evaluate_bounds(texts: Sequence[TextMeasurement], truth: Truth) -> list[BoundResult]:
    """Every bound that the truth has to keep; claims that are not scored have none."""
    scored = [(claim, known) for claim, known in truth.items() if known is not None]
    return [bound.held(texts) for pair in scored for bound in BOUNDS[pair]]
