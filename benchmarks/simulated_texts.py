"""Populations with known figures, from which audits are simulated: copies, documents, tails.

A scenario draws the texts of one audit, and says which of them belong together and what the true
figure is. Texts are numbers here: what a check would have measured on them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.numerics.stats.resampled_sums import interval_of, resample_sums

TEXTS, CLUSTERS = 40, 30
CORRELATION = 0.3  # of two texts of one cluster
MOST_COPIES, CLUSTER_SIZES = 5, (5, 20)
RATIO, SHARE = 0.5, 0.3


@dataclass(frozen=True, eq=False)
class SimulatedTexts:
    """The columns of one audit, and an id per text."""

    columns: np.ndarray
    ids: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Scenario:
    """How texts are drawn, what is estimated of them, and what is true."""

    draw: Callable[[np.random.Generator], SimulatedTexts]
    truth: float
    estimate: Callable[[SimulatedTexts], Estimate]
    judged: bool = True

    def hits(self, audits: int, name: str) -> int:
        """In how many audits the interval holds the truth."""
        random, count = generator(0, f"simulated texts, {name}"), 0
        for _ in range(audits):
            found = self.estimate(self.draw(random))
            count += found.low <= self.truth <= found.high
        return count


def mean(texts: SimulatedTexts) -> Estimate:
    """The mean of the first column."""
    return estimate_means({"mean": texts.columns[:, 0]}, texts.ids)["mean"]


def ratio(texts: SimulatedTexts) -> Estimate:
    """The ratio of the sums of two columns."""
    sums = resample_sums(texts.columns, texts.ids)
    return interval_of(sums, lambda rows: rows[:, 0] / rows[:, 1], n=len(texts.columns))


def alone(draw: Callable[[np.random.Generator], np.ndarray]) -> Callable[..., SimulatedTexts]:
    """Texts without copies."""
    return lambda random: SimulatedTexts(draw(random))


def copied(draw: Callable[[np.random.Generator], np.ndarray]) -> Callable[..., SimulatedTexts]:
    """Each text 1 to 5 times."""

    def drawn(random: np.random.Generator) -> SimulatedTexts:
        columns = draw(random)
        ids = np.repeat(np.arange(len(columns)), random.integers(1, MOST_COPIES + 1, len(columns)))
        return SimulatedTexts(columns[ids], ids)

    return drawn


def clustered(random: np.random.Generator) -> SimulatedTexts:
    """Normal values with a part that all texts of a document share; 5 to 20 texts in each."""
    ids = np.repeat(np.arange(CLUSTERS), random.integers(*CLUSTER_SIZES, CLUSTERS, endpoint=True))
    shared = random.normal(size=CLUSTERS)[ids]
    own = random.normal(size=len(ids))
    values = sqrt(CORRELATION) * shared + sqrt(1 - CORRELATION) * own
    return SimulatedTexts(values[:, None], ids)


def clustered_shares(random: np.random.Generator) -> SimulatedTexts:
    """Texts that are right or wrong, with a share of right ones of each document's own.

    Beta-distributed shares give any two texts of a document the correlation 1 / (1 + a + b).
    """
    ids = np.repeat(np.arange(CLUSTERS), random.integers(*CLUSTER_SIZES, CLUSTERS, endpoint=True))
    both = 1 / CORRELATION - 1
    shares = random.beta(SHARE * both, (1 - SHARE) * both, CLUSTERS)
    return SimulatedTexts((random.random(len(ids)) < shares[ids])[:, None].astype(float), ids)


def normal(random: np.random.Generator, count: int = TEXTS) -> np.ndarray:
    """Values around 0."""
    return random.normal(size=(count, 1))


def lognormal(sigma: float) -> Callable[[np.random.Generator], np.ndarray]:
    """Skewed values with the mean exp(σ² / 2)."""
    return lambda random: random.lognormal(0.0, sigma, (TEXTS, 1))


def pairs(random: np.random.Generator) -> np.ndarray:
    """Two skewed columns whose sums have the ratio ½, as places have: what is won of what is there.

    The larger the second, the more the first varies.
    """
    size = random.gamma(2.0, 1.0, TEXTS)
    return np.stack((size * np.clip(random.normal(RATIO, 0.4, TEXTS), -0.5, 1.5), size), axis=1)


def scenarios() -> Mapping[str, Scenario]:
    """All, by a name that says what is drawn."""
    steep, steepest = exp(0.75**2 / 2), exp(1.5**2 / 2)
    return {
        "40 texts, normal": Scenario(alone(normal), 0.0, mean),
        "40 texts, each 1–5 times, normal": Scenario(copied(normal), 0.0, mean),
        "40 texts, lognormal σ = 0.5": Scenario(alone(lognormal(0.5)), exp(0.125), mean),
        "40 texts, lognormal σ = 0.75": Scenario(alone(lognormal(0.75)), steep, mean),
        "30 documents of 5–20 texts": Scenario(clustered, 0.0, mean),
        "30 documents of 5–20 texts, a share": Scenario(clustered_shares, SHARE, mean),
        "40 texts, ratio of sums": Scenario(alone(pairs), RATIO, ratio),
        "40 texts, each 1–5 times, ratio of sums": Scenario(copied(pairs), RATIO, ratio),
        "40 texts, lognormal σ = 1.5": Scenario(
            alone(lognormal(1.5)), steepest, mean, judged=False
        ),
    }


def simulated_coverage(audits: int) -> Iterator[tuple[str, int, bool]]:
    """For each scenario its name, how many audits hold the truth, and whether it is judged."""
    for name, one in scenarios().items():
        yield name, one.hits(audits, name), one.judged
