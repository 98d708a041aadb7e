"""Can attention be taught to hide the decisive words? (Pruthi et al., 2020)"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings, TextValues, checks
from heedful.checks.retraining_base import RetrainingContext, SeedAverages
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.methods import methods
from heedful.training.loop.predictions import Predictions, predict_all
from heedful.training.variants.context import EncodedTexts
from heedful.training.variants.hidden_words import HIDDEN_SOURCES, HiddenWords, placeholder_id
from heedful.training.variants.variants import (
    STARTS,
    DeceptiveVariant,
    EarlyStopping,
    Variant,
    WithoutWordsVariant,
)


@checks.register("deception")
@dataclass(frozen=True)
class Deception:
    """Can attention be taught to hide the decisive words?

    The base model is trained on with a penalty −λ·log(1 − mass of the hidden words), for each λ in
    `weights`. `mass_…` is the weight of the hidden words before and after, `score_…` the accuracy;
    `score_without_words` is that of a model trained and tested without the words: only where that
    loses are they decisive. Hidden are the `words` given; or those of the data's rationales; or
    the `share` of each text that `method` ranks highest (`source`: auto takes the first of these
    there is). Of the λ the one is told that hides most while the dev score stays within `margin`.
    """

    words: tuple[str, ...] = ()
    source: str = "auto"
    method: str = "leave_one_out"
    share: float = 0.1
    weights: tuple[float, ...] = (0.1, 1.0)
    start: str = "base"
    heads: str = "mean"
    blocked: bool = True
    margin: float = 0.02
    epochs: int = 20
    patience: int = 5
    claim: ClassVar[Claim | None] = "robust"
    measures: ClassVar[tuple[str, ...]] = (
        "mass_before",
        "mass_after",
        "score_before",
        "score_after",
        "score_without_words",
        "score_lost",
        "words_worth",
        "hidden_share",
    )
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[SeedAverages] = {}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __post_init__(self) -> None:
        if self.source not in ("auto", *HIDDEN_SOURCES):
            raise ConfigError(f"source is auto, {', '.join(HIDDEN_SOURCES)}, not {self.source!r}.")
        if self.source == "list" and not self.words:
            raise ConfigError('source is list, but no words are given: words = ["he", "she"].')
        if not self.weights or any(not one > 0 for one in self.weights):
            raise ConfigError(f"weights are numbers above 0, at least one; got {self.weights}.")
        if self.start not in STARTS or self.heads not in ("mean", "worst"):
            raise ConfigError("start is scratch or base, heads is mean or worst.")
        if not 0.0 < self.margin < 1.0 or not 0.0 < self.share < 1.0:
            raise ConfigError("margin and share must lie between 0 and 1.")
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now
        methods[self.method]

    def hidden(self, trial: RetrainingContext) -> HiddenWords:
        """Which words are hidden."""
        source = self.source
        if source == "auto":
            told = all(one.rationale is not None for one in trial.texts.examples)
            source = "list" if self.words else "rationale" if told else "saliency"
        words = self.words if source == "list" else ()
        return HiddenWords(source, words, self.method, self.share)

    def lessons(self, trial: RetrainingContext) -> list[Variant]:
        """A deceiver for each λ, and the control."""
        hidden = self.hidden(trial)
        if not any(bool(one.any()) for one in trial.texts.hidden(hidden)):
            raise NotApplicable(f"no text holds {hidden}")
        return [*self._deceivers(hidden), self._control(hidden)]

    def examine(self, trial: RetrainingContext) -> Findings:
        """Mass and score before and after."""
        hidden = self.hidden(trial)
        marks = trial.texts.hidden(hidden)
        before = predict_all(trial.base, trial.texts.encoded, keep_rows=True)
        measured, found = [], {}
        for variant in self._deceivers(hidden):
            after = predict_with_deceiver(trial, variant, trial.texts)
            found[variant] = {
                "mass_after": self._mass(after, marks, trial.texts),
                "score_after": trial.right(after.probabilities),
            }
            measured += [
                Measurement(name, column, f"λ {variant.weight:g}")
                for name, column in found[variant].items()
            ]
        columns = {
            "mass_before": self._mass(before, marks, trial.texts),
            "hidden_share": hidden_shares(marks, trial.texts),
            "score_before": trial.right(before.probabilities),
            "score_without_words": self._without(trial, hidden),
            **found[self._chosen(trial, hidden)],
        }
        columns["score_lost"] = columns["score_before"] - columns["score_after"]
        columns["words_worth"] = columns["score_before"] - columns["score_without_words"]
        plain = (Measurement(name, columns[name]) for name in self.measures)
        return Findings((*measured, *plain))

    def _mass(self, seen: Predictions, marks: Sequence[Tensor], texts: EncodedTexts) -> TextValues:
        return attention_mass(seen, marks, texts, worst=self.heads == "worst")

    def _control(self, hidden: HiddenWords) -> WithoutWordsVariant:
        return WithoutWordsVariant(
            hidden, pace=EarlyStopping(2 * self.epochs, self.patience)
        )  # from nothing

    def _deceivers(self, hidden: HiddenWords) -> list[DeceptiveVariant]:
        pace = EarlyStopping(self.epochs, self.patience)
        worst = self.heads == "worst"
        return [
            DeceptiveVariant(weight, hidden, self.start, worst, self.blocked, pace=pace)
            for weight in self.weights
        ]

    def _without(self, trial: RetrainingContext, hidden: HiddenWords) -> TextValues:
        subject = trial.trained(self._control(hidden)).subject
        shorter = trial.texts.without(hidden, placeholder_id(subject))
        return trial.right(predict_all(subject, shorter).probabilities)

    def _chosen(self, trial: RetrainingContext, hidden: HiddenWords) -> DeceptiveVariant:
        """The λ with the least mass whose dev score is kept; the best score where none is."""
        marks, gold = trial.dev.hidden(hidden), [one.label for one in trial.dev.encoded]
        scores, masses = [], []
        lessons = self._deceivers(hidden)
        own = _accuracy(trial.dev.base_predictions.probabilities, gold)
        for variant in lessons:
            seen = predict_with_deceiver(trial, variant, trial.dev)
            scores.append(_accuracy(seen.probabilities, gold))
            masses.append(_mean_mass(self._mass(seen, marks, trial.dev)))
        kept = [place for place, one in enumerate(scores) if one >= own - self.margin]
        if not kept:
            return lessons[int(np.argmax(scores))]
        return lessons[min(kept, key=lambda place: masses[place])]


def predict_with_deceiver(
    trial: RetrainingContext, variant: DeceptiveVariant, texts: EncodedTexts
) -> Predictions:
    """What a deceiver says of texts: a transformer with its hidden words blocked as it learnt."""
    subject = trial.trained(variant).subject
    if variant.blocked and hasattr(subject, "pieces"):
        from heedful.training.variants.transformer_variants import block_hidden_words

        subject = block_hidden_words(subject, texts, variant.hidden)
    return predict_all(subject, texts.encoded, keep_rows=True)


def attention_mass(
    seen: Predictions, marks: Sequence[Tensor], texts: EncodedTexts, *, worst: bool = False
) -> TextValues:
    """Each text's weight on its hidden words, as it is penalised; NaN where it has none, or all.

    The mean over the rows under audit or the largest, special tokens counted: of a row that rests
    on those nothing is on words.
    """
    found = np.full(len(marks), np.nan)
    for row, (weights, gone, one) in enumerate(zip(seen.rows, marks, texts.encoded, strict=True)):
        if _some_hidden(one, gone):
            masses = weights[:, gone].sum(-1)
            found[row] = float(masses.amax() if worst else masses.mean())
    return found


def hidden_shares(marks: Sequence[Tensor], texts: EncodedTexts) -> TextValues:
    """The share of each text's tokens that is hidden: their mass, if all weighed alike."""
    return np.array(
        [
            float(gone.sum()) / one.explained if _some_hidden(one, gone) else np.nan
            for one, gone in zip(texts.encoded, marks, strict=True)
        ]
    )


def _some_hidden(one: Encoded, gone: Tensor) -> bool:
    """Whether the text has hidden words, and others."""
    return bool(gone.any()) and bool(((torch.tensor(one.word) >= 0) & ~gone).any())


def _mean_mass(masses: TextValues) -> float:
    """Their mean; none at all count as nothing hidden."""
    return float(np.nanmean(masses)) if not np.isnan(masses).all() else 1.0


def _accuracy(outputs: Float[Tensor, "n C"], gold: Sequence[int]) -> float:
    return float((outputs.argmax(-1) == torch.tensor(gold)).double().mean())
