"""Can attention be taught to hide the decisive words? (Pruthi et al., 2020)"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Column, Findings, checks
from heedful.checks.retraining_base import OverSeeds, Trial
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.methods import methods
from heedful.training.loop.predictions import Outlook, outlook
from heedful.training.variants.context import Texts
from heedful.training.variants.hidden_words import SOURCES, Hidden, blank_id
from heedful.training.variants.variants import STARTS, Deceived, Lesson, Pace, WithoutWords


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
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[OverSeeds] = {}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __post_init__(self) -> None:
        if self.source not in ("auto", *SOURCES):
            raise ConfigError(f"source is auto, {', '.join(SOURCES)}, not {self.source!r}.")
        if self.source == "list" and not self.words:
            raise ConfigError('source is list, but no words are given: words = ["he", "she"].')
        if not self.weights or any(not one > 0 for one in self.weights):
            raise ConfigError(f"weights are numbers above 0, at least one; got {self.weights}.")
        if self.start not in STARTS or self.heads not in ("mean", "worst"):
            raise ConfigError("start is scratch or base, heads is mean or worst.")
        if not 0.0 < self.margin < 1.0 or not 0.0 < self.share < 1.0:
            raise ConfigError("margin and share must lie between 0 and 1.")
        Pace(self.epochs, self.patience)  # wrong settings are said now
        methods[self.method]

    def hidden(self, trial: Trial) -> Hidden:
        """Which words are hidden."""
        source = self.source
        if source == "auto":
            told = all(one.rationale is not None for one in trial.texts.examples)
            source = "list" if self.words else "rationale" if told else "saliency"
        words = self.words if source == "list" else ()
        return Hidden(source, words, self.method, self.share)

    def lessons(self, trial: Trial) -> list[Lesson]:
        """A deceiver for each λ, and the control."""
        hidden = self.hidden(trial)
        if not any(bool(one.any()) for one in trial.texts.hidden(hidden)):
            raise NotApplicable(f"no text holds {hidden}")
        return [*self._deceivers(hidden), self._control(hidden)]

    def examine(self, trial: Trial) -> Findings:
        """Mass and score before and after."""
        hidden = self.hidden(trial)
        marks = trial.texts.hidden(hidden)
        before = outlook(trial.base, trial.texts.encoded, rows_too=True)
        measured, found = [], {}
        for lesson in self._deceivers(hidden):
            after = seen_by(trial, lesson, trial.texts)
            found[lesson] = {
                "mass_after": self._mass(after, marks, trial.texts),
                "score_after": trial.right(after.probabilities),
            }
            measured += [
                Measurement(name, column, f"λ {lesson.weight:g}")
                for name, column in found[lesson].items()
            ]
        columns = {
            "mass_before": self._mass(before, marks, trial.texts),
            "hidden_share": shares(marks, trial.texts),
            "score_before": trial.right(before.probabilities),
            "score_without_words": self._without(trial, hidden),
            **found[self._chosen(trial, hidden)],
        }
        columns["score_lost"] = columns["score_before"] - columns["score_after"]
        columns["words_worth"] = columns["score_before"] - columns["score_without_words"]
        plain = (Measurement(name, columns[name]) for name in self.measures)
        return Findings((*measured, *plain))

    def _mass(self, seen: Outlook, marks: Sequence[Tensor], texts: Texts) -> Column:
        return mass_on(seen, marks, texts, worst=self.heads == "worst")

    def _control(self, hidden: Hidden) -> WithoutWords:
        return WithoutWords(hidden, pace=Pace(2 * self.epochs, self.patience))  # from nothing

    def _deceivers(self, hidden: Hidden) -> list[Deceived]:
        pace = Pace(self.epochs, self.patience)
        worst = self.heads == "worst"
        return [
            Deceived(weight, hidden, self.start, worst, self.blocked, pace=pace)
            for weight in self.weights
        ]

    def _without(self, trial: Trial, hidden: Hidden) -> Column:
        subject = trial.taught(self._control(hidden)).subject
        shorter = trial.texts.without(hidden, blank_id(subject))
        return trial.right(outlook(subject, shorter).probabilities)

    def _chosen(self, trial: Trial, hidden: Hidden) -> Deceived:
        """The λ with the least mass whose dev score is kept; the best score where none is."""
        marks, gold = trial.dev.hidden(hidden), [one.label for one in trial.dev.encoded]
        scores, masses = [], []
        lessons = self._deceivers(hidden)
        own = _accuracy(trial.dev.outlook.probabilities, gold)
        for lesson in lessons:
            seen = seen_by(trial, lesson, trial.dev)
            scores.append(_accuracy(seen.probabilities, gold))
            masses.append(_mean(self._mass(seen, marks, trial.dev)))
        kept = [place for place, one in enumerate(scores) if one >= own - self.margin]
        if not kept:
            return lessons[int(np.argmax(scores))]
        return lessons[min(kept, key=lambda place: masses[place])]


def seen_by(trial: Trial, lesson: Deceived, texts: Texts) -> Outlook:
    """What a deceiver says of texts: a transformer with its hidden words blocked as it learnt."""
    subject = trial.taught(lesson).subject
    if lesson.blocked and hasattr(subject, "pieces"):
        from heedful.training.variants.transformer_variants import blocked

        subject = blocked(subject, texts, lesson.hidden)
    return outlook(subject, texts.encoded, rows_too=True)


def mass_on(seen: Outlook, marks: Sequence[Tensor], texts: Texts, *, worst: bool = False) -> Column:
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


def shares(marks: Sequence[Tensor], texts: Texts) -> Column:
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


def _mean(masses: Column) -> float:
    """Their mean; none at all count as nothing hidden."""
    return float(np.nanmean(masses)) if not np.isnan(masses).all() else 1.0


def _accuracy(outputs: Float[Tensor, "n C"], gold: Sequence[int]) -> float:
    return float((outputs.argmax(-1) == torch.tensor(gold)).double().mean())
