"""What the benchmark of methods found: scores by method, with intervals over kinds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import mean, median
from typing import Any, Literal

import numpy as np

from heedful.core.records import Estimate, finite_or_none
from heedful.numerics.stats.bootstrap import Sample
from heedful.numerics.stats.bounded_means import estimate_above_chance, estimate_bounded_mean
from heedful.planted.influence.kind import INFLUENCE_VERSION, InfluenceCase
from heedful.planted.scoring.text_score import TextScore

BENCHMARK_SCHEMA = 1
TextFigure = Literal["top_word", "top_word_chance", "top_set", "top_set_chance", "order"]


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A text as one method scored it; without a score the method refused it with the reason.

    `attention_right`: whether attention is planted to rank the words of this text rightly; None
    where the truth does not say.
    """

    score: TextScore | None
    reason: str
    attention_right: bool | None
    cpu_seconds: float
    pass_seconds: float


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of a method over kinds, each kind with equal weight; n counts kinds.

    `top_set_above_chance` is (top_set − chance) / (1 − chance): 0 is chance, 1 is perfect.
    """

    top_word: Estimate
    top_word_chance: float
    top_set: Estimate
    top_set_chance: float
    top_set_above_chance: Estimate
    order: Estimate


@dataclass(frozen=True)
class MethodScore:
    """A method on the texts of every kind, by kind."""

    name: str
    kinds: Mapping[str, Sequence[ScoredText]]

    @cached_property
    def all_texts(self) -> Measures:
        """The measures over all kinds."""
        return self._measures(None)

    @cached_property
    def attention_right(self) -> Measures:
        """The measures over the texts where attention is planted to rank words rightly."""
        return self._measures(attention_right=True)

    @cached_property
    def attention_wrong(self) -> Measures:
        """The measures over the texts where attention is planted to rank words wrongly."""
        return self._measures(attention_right=False)

    @property
    def served(self) -> tuple[int, int]:
        """The numbers of kinds and texts that the method gave scores for."""
        counts = [sum(one.score is not None for one in texts) for texts in self.kinds.values()]
        return sum(count > 0 for count in counts), sum(counts)

    @property
    def refused(self) -> dict[str, int]:
        """The reasons of texts without scores, most frequent first, with the number of texts."""
        every = (one for texts in self.kinds.values() for one in texts)
        return dict(Counter(one.reason for one in every if one.score is None).most_common())

    @property
    def refused_kinds(self) -> int:
        """The number of kinds none of whose texts the method gave scores for."""
        return len(self.kinds) - self.served[0]

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds per text: of each kind the median text, the mean over kinds."""
        costs = [median(own) for own, _ in self._costs()]
        return mean(costs) if costs else float("nan")

    @property
    def passes(self) -> float:
        """The cost in forward passes of one text: of each kind a ratio, the median over kinds."""
        ratios = [median(own) / median(passes) for own, passes in self._costs()]
        return median(ratios) if ratios else float("nan")

    def by_kind(self, figure: TextFigure, *, attention_right: bool | None = None) -> Sample:
        """The mean of a figure over the texts of each kind; NaN where it has none.

        With `attention_right` only texts where attention is planted so.
        """
        return np.array(
            [_mean_of(texts, figure, attention_right) for texts in self.kinds.values()], dtype=float
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures as `heedful benchmark --json` prints them."""
        kinds, texts = self.served
        refused = {
            "kinds": self.refused_kinds,
            "texts": sum(self.refused.values()),
            "reasons": self.refused,
        }
        return {
            **asdict(self.all_texts),
            "attention_right": asdict(self.attention_right),
            "attention_wrong": asdict(self.attention_wrong),
            "cost": {"cpu_seconds": self.cpu_seconds, "passes": self.passes},
            "served": {"kinds": kinds, "texts": texts},
            "refused": refused,
            "by_kind": {
                name: {
                    "texts": sum(one.score is not None for one in texts),
                    **{figure: _mean_of(texts, figure, None) for figure in _FIGURES},
                }
                for name, texts in self.kinds.items()
            },
        }

    def _measures(self, attention_right: bool | None) -> Measures:
        top_word, top_word_chance, top_set, top_set_chance, order = (
            self.by_kind(figure, attention_right=attention_right) for figure in _FIGURES
        )
        return Measures(
            estimate_bounded_mean(top_word),
            _mean_defined(top_word_chance),
            estimate_bounded_mean(top_set),
            _mean_defined(top_set_chance),
            estimate_above_chance(top_set, top_set_chance),
            estimate_bounded_mean(order),
        )

    def _costs(self) -> list[tuple[list[float], list[float]]]:
        """CPU seconds of the scores and of one pass, for the served texts of each served kind."""
        served = ([one for one in texts if one.score] for texts in self.kinds.values())
        return [
            ([one.cpu_seconds for one in texts], [one.pass_seconds for one in texts])
            for texts in served
            if texts
        ]


@dataclass(frozen=True)
class BenchmarkResult:
    """The scores of methods on the planted kinds whose truth is known by sets of words."""

    seed: int
    texts: int
    cases: Sequence[InfluenceCase]
    methods: Mapping[str, MethodScore]

    @property
    def ranking(self) -> list[MethodScore]:
        """The methods by `top_set`, best first; those that served no text last."""
        return sorted(
            self.methods.values(),
            key=lambda one: np.nan_to_num(one.all_texts.top_set.value, nan=-1.0),
            reverse=True,
        )

    def to_dict(self) -> dict[str, Any]:
        """The scores as `heedful benchmark --json` prints them; what does not exist is null."""
        kinds = {
            case.kind: {
                "family": case.about.family,
                "architecture": case.about.architecture,
                "used": case.truth.used,
                "ranks": case.truth.ranks,
                "mixed": case.truth.mixture is not None,
                "length": case.length,
            }
            for case in self.cases
        }
        found = {
            "schema": BENCHMARK_SCHEMA,
            "planted_version": INFLUENCE_VERSION,
            "seed": self.seed,
            "texts_per_kind": self.texts,
            "kinds": kinds,
            "methods": {one.name: one.to_dict() for one in self.ranking},
        }
        ready: dict[str, Any] = finite_or_none(found)
        return ready

    def show(self) -> None:
        """Print the table."""
        from heedful.planted.scoring.table import print_benchmark

        print_benchmark(self)


_FIGURES: tuple[TextFigure, ...] = (
    "top_word",
    "top_word_chance",
    "top_set",
    "top_set_chance",
    "order",
)


def _mean_of(
    texts: Sequence[ScoredText], figure: TextFigure, attention_right: bool | None
) -> float:
    """The mean of a figure over the scored texts, or over those where attention is planted so."""
    values = np.array(
        [
            getattr(one.score, figure)
            for one in texts
            if one.score and attention_right in (None, one.attention_right)
        ],
        dtype=float,
    )
    return _mean_defined(values)


def _mean_defined(values: Sample) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
