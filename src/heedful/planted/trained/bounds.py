"""Bounds that a trained subject must keep for its truth to be accepted, measured on its own texts.

The bounds were set before any rule of the verdict was tried on a trained subject. None of them
uses a check: *used* and *exclusive* follow from closed forms of the linear output, *ranks* from
the texts without each of their words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heedful.core.values import Example, LinearDecoder
from heedful.planted.case import Truth, WordNumbers
from heedful.planted.texts import PlantedSubject

SAME_OUTPUT = 0.05  # outputs no farther apart in probability count as the same
WEIGHT_RATIO = 1.5  # the weights of two words are far apart if they differ by more than this factor


@dataclass(frozen=True, eq=False)
class TextMeasurement:
    """One text: weight, effect of deletion and state log-odds of each word; log-odds z."""

    weights: WordNumbers
    effects: WordNumbers
    by_state: WordNumbers
    z: float

    @property
    def max_change(self) -> float:
        """The largest change of the probability under any attention.

        Log-odds are linear in the weights, so it is reached with all weight on one word.
        """
        return float(np.abs(_sigmoid(self.by_state) - _sigmoid(self.z)).max())

    @property
    def tau(self) -> float:
        """Kendall's τ-a of weights and effects: concordant less discordant pairs, of all pairs."""
        concordance = np.sign(_differences(self.weights)) * np.sign(_differences(self.effects))
        return float(concordance.sum() / (concordance.size - len(concordance)))

    @property
    def in_order(self) -> tuple[int, int]:
        """Among pairs with weights far apart: how many have effects in that order, and how many."""
        apart = self.weights[:, None] > WEIGHT_RATIO * self.weights
        return int((_differences(self.effects) > 0)[apart].sum()), int(apart.sum())

    @property
    def effect_ratio(self) -> float:
        """The largest effect divided by the second largest."""
        second, first = np.sort(self.effects)[-2:]
        return float(first / second) if second else float("inf")

    @property
    def top_agrees(self) -> bool:
        """Whether the word with the largest effect has the largest weight."""
        return int(self.effects.argmax()) == int(self.weights.argmax())

    @property
    def elsewhere(self) -> float:
        """The largest distance (TVD) of an attention with the same output.

        An upper bound in closed form. The top word has log-odds s for the output's side, no other
        word more than r: to reach the smallest log-odds m that count as the same output, the top
        word needs (m − r) / (s − r) of the weight. 1 if the top word does not have the largest.
        """
        side, top = np.sign(self.z), int(self.weights.argmax())
        toward = side * self.by_state
        rest, most = float(np.delete(toward, top).max()), float(toward[top])
        least = _sigmoid(abs(self.z)) - SAME_OUTPUT
        if most <= rest or least <= 0:
            return 1.0
        kept = (float(np.log(least / (1 - least))) - rest) / (most - rest)
        return 1.0 - min(max(kept, 0.0), float(self.weights[top]))


def measure_texts(plant: PlantedSubject, texts: Sequence[str]) -> list[TextMeasurement]:
    """Measure each text, with one forward pass over the text and its deletions."""
    return [_measure_text(plant, text) for text in texts]


def _measure_text(plant: PlantedSubject, text: str) -> TextMeasurement:
    subject, words = plant.subject, text.split()
    shorter = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    examples = (Example(number, one, -1) for number, one in enumerate([text, *shorter]))
    batch = subject.batch([subject.encode(one) for one in examples])
    with torch.no_grad():
        forward = subject.forward(batch)
    log_odds = (forward.logits[:, 1] - forward.logits[:, 0]).double().numpy()
    decoder = subject.decoder(batch, forward)
    assert isinstance(decoder, LinearDecoder)  # noqa: S101 - all trained kinds are classifiers
    alone = (decoder.contributions + decoder.bias)[0, :, 1]
    real = batch.mask[0]
    weights, by_state = (one[real].double().numpy() for one in (forward.attention[0], alone))
    effects = np.abs(log_odds[1:] - log_odds[0])
    return TextMeasurement(weights, effects, by_state, float(log_odds[0]))


def _sigmoid(log_odds: WordNumbers | float) -> WordNumbers:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(log_odds))))


def _differences(values: WordNumbers) -> WordNumbers:
    return values[:, None] - values


SampleStatistic = Callable[[Sequence[TextMeasurement]], float]


@dataclass(frozen=True)
class Bound:
    """A statistic of texts, and the line that it must be above or below."""

    what: str
    statistic: SampleStatistic
    line: float
    above: bool

    def evaluate(self, texts: Sequence[TextMeasurement]) -> "BoundResult":
        """The bound with the value for these texts."""
        return BoundResult(self.what, self.statistic(texts), self.line, self.above)


@dataclass(frozen=True)
class BoundResult:
    """A bound with its value; only plain values, so that it can be pickled."""

    what: str
    value: float
    line: float
    above: bool

    @property
    def holds(self) -> bool:
        """Whether the value lies on the right side of the line; False for NaN."""
        return self.value >= self.line if self.above else self.value <= self.line

    def __str__(self) -> str:
        side = "at least" if self.above else "at most"
        return f"{self.what}: {self.value:.3g}, must be {side} {self.line:g}"


def _joined(name: str, join: Callable[[list[float]], float]) -> SampleStatistic:
    """One property of the measurements, joined over texts."""
    return lambda texts: float(join([float(getattr(one, name)) for one in texts]))


def _share_in_order(texts: Sequence[TextMeasurement]) -> float:
    in_order, apart = np.sum([one.in_order for one in texts], axis=0)
    return float(in_order / apart) if apart else float("nan")


LEAST_CHANGE, MOST_CHANGE = _joined("max_change", min), _joined("max_change", max)
MEAN_CHANGE, MEAN_TAU = _joined("max_change", np.mean), _joined("tau", np.mean)
AGREEMENT, RATIO = _joined("top_agrees", np.mean), _joined("effect_ratio", np.median)
MOST_ELSEWHERE = _joined("elsewhere", max)
EFFECT = "effect of any attention"
INERT = Bound(f"{EFFECT}, largest of all texts", MOST_CHANGE, SAME_OUTPUT, above=False)
SPREAD = Bound("weight elsewhere, largest of all texts", MOST_ELSEWHERE, 0.4, above=False)
BOUNDS: dict[tuple[str, bool], tuple[Bound, ...]] = {
    ("used", True): (
        Bound(f"{EFFECT}, smallest of all texts", LEAST_CHANGE, 4 * SAME_OUTPUT, above=True),
    ),
    ("used", False): (
        INERT,
        Bound(f"{EFFECT}, mean", MEAN_CHANGE, SAME_OUTPUT / 2, above=False),
    ),
    ("ranks", True): (
        Bound("τ of weights and deletions, mean", MEAN_TAU, 0.6, above=True),
        Bound(f"pairs > {WEIGHT_RATIO:g} times apart in order", _share_in_order, 0.99, above=True),
    ),
    ("ranks", False): (
        Bound("τ of weights and deletions, mean", MEAN_TAU, 0.25, above=False),
        Bound("texts whose top word has the top weight", AGREEMENT, 0.25, above=False),
        Bound("largest effect / second largest, median", RATIO, 2.0, above=True),
    ),
    ("exclusive", True): (SPREAD,),
    ("exclusive", False): (INERT,),
}


def evaluate_bounds(texts: Sequence[TextMeasurement], truth: Truth) -> list[BoundResult]:
    """Every bound of the scored claims of the truth."""
    scored = [(claim, known) for claim, known in truth.items() if known is not None]
    return [bound.evaluate(texts) for pair in scored for bound in BOUNDS[pair]]
