"""A trained subject put to the trial: of some texts, weights, deletions, and what states say."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heedful.core.values import Example, LinearDecoder
from heedful.planted.closed_form.base import PlantedSubject, WordNumbers

SAME_OUTPUT = 0.05  # outputs that lie no farther apart in probability count as the same
WEIGHT_RATIO = 1.5  # weights of two words that lie more than such a factor apart are far apart


@dataclass(frozen=True, eq=False)
class TextMeasurement:
    """One text: each word's weight, what deleting it moves, what its state says alone; log-odds."""

    weights: WordNumbers
    moved: WordNumbers
    said: WordNumbers
    z: float

    @property
    def farthest(self) -> float:
        """How far any attention moves the probability: all weight on one word, the worst.

        Log-odds are linear in the weights, so nothing moves them farther.
        """
        return float(np.abs(_sigmoid(self.said) - _sigmoid(self.z)).max())

    @property
    def tau(self) -> float:
        """Pairs of words that weights and deletions order alike, less those they do not; of all."""
        alike = np.sign(_pairwise_differences(self.weights)) * np.sign(
            _pairwise_differences(self.moved)
        )
        return float(alike.sum() / (alike.size - len(alike)))

    @property
    def in_order(self) -> tuple[int, int]:
        """Pairs whose weights are far apart: how many deletion orders alike, and how many."""
        apart = self.weights[:, None] > WEIGHT_RATIO * self.weights
        return int((_pairwise_differences(self.moved) > 0)[apart].sum()), int(apart.sum())

    @property
    def stands_out(self) -> float:
        """The largest effect of a deletion, beside the second largest."""
        second, first = np.sort(self.moved)[-2:]
        return float(first / second) if second else float("inf")

    @property
    def found(self) -> bool:
        """Whether the word whose deletion moves most has the largest weight."""
        return int(self.moved.argmax()) == int(self.weights.argmax())

    @property
    def elsewhere(self) -> float:
        """The most of its weight that an attention with the same output can have elsewhere (TVD).

        A bound in closed form. The top word says the most for the output's side, and of the others
        none more than r: to reach the least log-odds m that count as the same, the top word needs
        (m − r) / (s − r) of the weight. 1 where it does not say the most.
        """
        side, top = np.sign(self.z), int(self.weights.argmax())
        said = side * self.said
        rest, most = float(np.delete(said, top).max()), float(said[top])
        least = _sigmoid(abs(self.z)) - SAME_OUTPUT
        if most <= rest or least <= 0:
            return 1.0
        kept = (float(np.log(least / (1 - least))) - rest) / (most - rest)
        return 1.0 - min(max(kept, 0.0), float(self.weights[top]))


def measure_texts(plant: PlantedSubject, texts: Sequence[str]) -> list[TextMeasurement]:
    """The texts, one by one, each of them again without each of its words."""
    return [_measure_text(plant, text) for text in texts]


def _measure_text(plant: PlantedSubject, text: str) -> TextMeasurement:
    subject, words = plant.subject, text.split()
    shorter = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    batch = subject.batch(
        [subject.encode(Example(number, one, -1)) for number, one in enumerate([text, *shorter])]
    )
    with torch.no_grad():
        forward = subject.forward(batch)
    odds = (forward.logits[:, 1] - forward.logits[:, 0]).double().numpy()
    decoder = subject.decoder(batch, forward)
    assert isinstance(decoder, LinearDecoder)  # noqa: S101 - all trained kinds are classifiers
    alone = (decoder.contributions + decoder.bias)[0, :, 1]
    inside = batch.mask[0]
    weights, said = (one[inside].double().numpy() for one in (forward.attention[0], alone))
    return TextMeasurement(weights, np.abs(odds[1:] - odds[0]), said, float(odds[0]))


def _sigmoid(log_odds: WordNumbers | float) -> WordNumbers:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(log_odds))))


def _pairwise_differences(values: WordNumbers) -> WordNumbers:
    return values[:, None] - values
