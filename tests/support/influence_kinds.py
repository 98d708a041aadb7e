"""Tiny kinds with tiers, to try the benchmark of methods on.

Each word says s, and the log-odds are the attended s. Truths are asserted, not proved: they are
here to be counted. The kinds exist only inside of a test that asks for them.
"""

from dataclasses import dataclass

import numpy as np
import torch

from heedful.core.batch import Batch
from heedful.models.protocols import Subject
from heedful.planted.influence import kind
from heedful.planted.influence.kind import KnownText, Mixture, PlantedModel, influence_kind
from heedful.planted.word_subject import WordSubject

WORDS, STRONG, WEAK = 200, 10, 20  # words below STRONG say ±4, below WEAK ±2, the others nothing
PARTS = ("negative", "positive")


@dataclass(frozen=True, eq=False)
class SummingSubject(WordSubject):
    """A state is the score and the log-odds of its own word."""

    table: torch.Tensor
    labels: tuple[str, ...] = PARTS
    family = "planted-test"

    def states(self, batch: Batch, vectors: torch.Tensor) -> torch.Tensor:
        return vectors


def build_subject(setting, *, sign) -> Subject:
    """Attention goes with sign · |s|, the sign of each word's own number."""
    numbers = np.zeros(WORDS)
    numbers[:STRONG], numbers[STRONG:WEAK] = 4.0, 2.0
    score = sign(np.arange(WORDS)) * numbers + setting.draw("scores").normal(0.0, 0.1, WORDS)
    says = numbers * np.where(np.arange(WORDS) % 2, 1.0, -1.0)
    return SummingSubject(torch.from_numpy(np.stack([score, says], axis=1)))


def draw(random: np.random.Generator, mean: int) -> KnownText:
    """A strong word, two weak ones of the same class, and others that say nothing."""
    count = int(random.integers(max(5, mean // 2), mean + mean // 2 + 1))
    ids = random.integers(WEAK, WORDS, count)
    first, *second = random.permutation(count)[:3].tolist()
    side = int(random.integers(2))
    ids[first] = 2 * random.integers(STRONG // 2) + side
    ids[second] = 2 * random.integers(STRONG // 2, WEAK // 2, 2) + side
    tiers = (first,), tuple(sorted(second))
    return KnownText(" ".join(f"w{one}" for one in ids), tiers, part=PARTS[side])


def register(monkeypatch) -> None:
    """Make these the only kinds until the test is over: right, wrong, and right for one class."""
    monkeypatch.setattr(kind, "_KINDS", {})
    mixture = Mixture("ranks", "class", holds=PARTS[1], fails=PARTS[0])
    signs = {
        "plain-right": (True, None, lambda words: 1.0),
        "plain-wrong": (False, None, lambda words: -1.0),
        "mixed-class": (None, mixture, lambda words: np.where(words % 2, 1.0, -1.0)),
    }
    for name, (ranks, mixed, sign) in signs.items():

        def build(setting, sign=sign):
            return PlantedModel(build_subject(setting, sign=sign), draw)

        family = name.partition("-")[0]
        settings = {"used": True, "ranks": ranks, "mixture": mixed, "lengths": (8, 12)}
        influence_kind(name, family, **settings)(build)
