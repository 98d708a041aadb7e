"""Can attention be trained to hide the decisive words? (Pruthi et al., 2020)"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import MinLen
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings
from heedful.checks.retraining_base import Paced, RetrainingContext, choose_within, to_findings
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Measurement
from heedful.core.settings import OpenFraction, PositiveFloat, Repeats, check_on_init
from heedful.methods import methods
from heedful.results.tables import TextValues
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import Predictions, predict_all
from heedful.training.variants.models import block_hidden_words
from heedful.training.variants.texts import EncodedTexts, HiddenSource, HiddenWords, placeholder_id
from heedful.training.variants.variants import DeceptiveVariant, Start, Variant, WithoutWordsVariant


@check_on_init
@dataclass(frozen=True)
class Deception(Paced):
    """Can attention be trained to hide the decisive words?

    Training of the audited model is continued with a penalty −λ·log(1 − mass of the hidden words),
    for each λ in `weights`. `mass_…` is the weight of the hidden words before and after, `score_…`
    the accuracy; `score_without_words` is that of a model trained and tested without the words:
    they are decisive only where it is lower. The hidden words are the `words` given; or those of
    the data's rationales; or the `share` of each text that `method` ranks highest (`source`: auto
    takes the first of these that is available). Rows without a setting are of the λ that hides
    most while the dev score stays within `margin`.
    """

    words: tuple[str, ...] = ()
    source: Literal["auto", HiddenSource] = "auto"
    method: str = "leave_one_out"
    share: OpenFraction = 0.1
    weights: Annotated[tuple[PositiveFloat, ...], MinLen(1)] = (0.1, 1.0)
    start: Start = "base"
    heads: Literal["mean", "worst"] = "mean"
    blocked: bool = True
    margin: OpenFraction = 0.02
    epochs: Repeats = 20
    patience: Repeats = 5

    def __post_init__(self) -> None:
        if self.source == "list" and not self.words:
            raise ConfigError('source is list, but no words are given: words = ["he", "she"].')
        methods[self.method]

    def hidden(self, retraining: RetrainingContext) -> HiddenWords:
        """The words to hide."""
        annotated = all(one.rationale is not None for one in retraining.texts.examples)
        first: HiddenSource = "list" if self.words else "rationale" if annotated else "saliency"
        source = first if self.source == "auto" else self.source
        words = self.words if source == "list" else ()
        return HiddenWords(source, words, self.method, self.share)

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """A deceptive model for each λ, and the model without the words."""
        hidden = self.hidden(retraining)
        if not any(bool(one.any()) for one in retraining.texts.hidden(hidden)):
            raise NotApplicable(f"no text contains {hidden}")
        return [*self._deceptive(hidden), self._control(hidden)]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Mass and accuracy before and after."""
        texts, hidden = retraining.texts, self.hidden(retraining)
        marks = texts.hidden(hidden)
        before = predict_all(retraining.base, texts.encoded, keep_rows=True)
        measured, found = [], {}
        for variant in self._deceptive(hidden):
            after = predict_deceptive(retraining, variant, texts)
            found[variant] = {
                "mass_after": self._mass(after, marks, texts),
                "score_after": retraining.correct(after.probabilities),
            }
            measured += [
                Measurement(name, column, f"λ {variant.weight:g}")
                for name, column in found[variant].items()
            ]
        columns = {
            "mass_before": self._mass(before, marks, texts),
            **found[self._choose(retraining, hidden)],
            "score_before": retraining.correct(before.probabilities),
            "score_without_words": self._score_without(retraining, hidden),
            "hidden_share": hidden_shares(marks, texts),
        }
        columns["score_lost"] = columns["score_before"] - columns["score_after"]
        columns["words_worth"] = columns["score_before"] - columns["score_without_words"]
        return to_findings(measured, columns)

    def _mass(self, seen: Predictions, marks: Sequence[Tensor], texts: EncodedTexts) -> TextValues:
        return attention_mass(seen, marks, texts, worst=self.heads == "worst")

    def _control(self, hidden: HiddenWords) -> WithoutWordsVariant:
        limits = EarlyStopping(2 * self.epochs, self.patience)  # twice: it is trained from scratch
        return WithoutWordsVariant(hidden, pace=limits)

    def _deceptive(self, hidden: HiddenWords) -> list[DeceptiveVariant]:
        worst, pace = self.heads == "worst", self.pace
        return [
            DeceptiveVariant(weight, hidden, self.start, worst, self.blocked, pace=pace)
            for weight in self.weights
        ]

    def _score_without(self, retraining: RetrainingContext, hidden: HiddenWords) -> TextValues:
        subject = retraining.trained(self._control(hidden)).subject
        shorter = retraining.texts.without(hidden, placeholder_id(subject))
        return retraining.correct(predict_all(subject, shorter).probabilities)

    def _choose(self, retraining: RetrainingContext, hidden: HiddenWords) -> DeceptiveVariant:
        """The λ with the least mass that keeps the dev score; the best score where none does."""
        dev, variants = retraining.dev, self._deceptive(hidden)
        marks, gold = dev.hidden(hidden), [one.label for one in dev.encoded]
        errors, masses = [], []
        for variant in variants:
            seen = predict_deceptive(retraining, variant, dev)
            errors.append(-_accuracy(seen.probabilities, gold))
            mass = self._mass(seen, marks, dev)
            # 1, as if nothing were hidden, where no text has a mass
            masses.append(1.0 if np.isnan(mass).all() else float(np.nanmean(mass)))
        limit = -(_accuracy(dev.base_predictions.probabilities, gold) - self.margin)
        return choose_within(variants, errors, limit=limit, losses=masses)


def predict_deceptive(
    retraining: RetrainingContext, variant: DeceptiveVariant, texts: EncodedTexts
) -> Predictions:
    """Predictions of a deceptive model; a transformer's hidden words are blocked as in training."""
    subject = retraining.trained(variant).subject
    if variant.blocked and hasattr(subject, "subword_tokenizer"):
        subject = block_hidden_words(subject, texts, variant.hidden)
    return predict_all(subject, texts.encoded, keep_rows=True)


def attention_mass(
    seen: Predictions, marks: Sequence[Tensor], texts: EncodedTexts, *, worst: bool = False
) -> TextValues:
    """Each text's weight on its hidden words, as it is penalised; NaN where none or all are hidden.

    The mean over the audited rows, or the largest. Special tokens count: a row that puts all its
    weight on them has no weight on words.
    """
    found = np.full(len(marks), np.nan)
    for row, (weights, gone, one) in enumerate(zip(seen.rows, marks, texts.encoded, strict=True)):
        if _some_hidden(one, gone):
            masses = weights[:, gone].sum(-1)
            found[row] = float(masses.amax() if worst else masses.mean())
    return found


def hidden_shares(marks: Sequence[Tensor], texts: EncodedTexts) -> TextValues:
    """The share of each text's tokens that is hidden: their mass under equal weights."""
    return np.array(
        [
            float(gone.sum()) / one.explained_tokens if _some_hidden(one, gone) else np.nan
            for one, gone in zip(texts.encoded, marks, strict=True)
        ]
    )


def _some_hidden(one: Encoded, gone: Tensor) -> bool:
    """Whether the text has hidden words, and others."""
    return bool(gone.any()) and bool(((torch.tensor(one.word) >= 0) & ~gone).any())


def _accuracy(outputs: Float[Tensor, "n C"], gold: Sequence[int]) -> float:
    return float((outputs.argmax(-1) == torch.tensor(gold)).double().mean())
