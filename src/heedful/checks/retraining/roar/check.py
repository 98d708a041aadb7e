"""Does a model trained without what a method names do worse? (ROAR; Hooker et al., 2019)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from heedful.checks.base import Findings, TextValues, checks
from heedful.checks.faithfulness.word_scores import CONTROLS, methods_without_controls
from heedful.checks.requested_methods import MethodOrName, build_method, method_name, registry_order
from heedful.checks.retraining_base import (
    RetrainingContext,
    SeedAverages,
    require_seeds,
    seed_setting,
)
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.methods import methods
from heedful.training.loop.predictions import predict_all
from heedful.training.variants.hidden_words import HiddenWords, placeholder_id
from heedful.training.variants.variants import (
    EarlyStopping,
    RetrainedVariant,
    Variant,
    WithoutWordsVariant,
)

DEFAULT_ROAR_METHODS = ("attention", "input_x_gradient", "leave_one_out")
RANDOM = "random"  # the control: as many words, drawn at random
SeedDifferences = Mapping[str, tuple[str, str]]


@checks.register("roar")
@dataclass(frozen=True)
class Roar:
    """Does a model trained without what a method names do worse?

    Of every text, in training, choosing and testing, the words go that a method scores highest by
    size in the base model, for the class it predicts: each of `shares`, rounded up, never all. The
    recipe is followed anew on what is left, with `seeds` seeds. `score_M` is the accuracy, mean
    over the shares; `beyond_random_M` what it loses against models that lack as many words drawn
    at random. Models are made for such texts, so these are not off their distribution; but a model
    made anew may find other ways, and may read from what is missing what was there. It has no vote.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_ROAR_METHODS
    shares: tuple[float, ...] = (0.1, 0.3, 0.5)
    seeds: int = 3
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = "ranks"
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        asked = registry_order(("attention", *self.methods), methods_without_controls)
        chosen = tuple(one for one in asked if method_name(one) not in CONTROLS)
        object.__setattr__(self, "methods", chosen)
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now
        if not self.shares or not all(0.0 < share < 1.0 for share in self.shares):
            raise ConfigError(f"shares must lie between 0 and 1, not {self.shares}.")
        if len(set(self.shares)) < len(self.shares):
            raise ConfigError(f"shares must differ from each other, not {self.shares}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))

    @property
    def over_seeds(self) -> SeedAverages:
        """The accuracies of all that is trained."""
        return dict.fromkeys(("score_whole", *(f"score_{one}" for one in self._arms)), "mean")

    @property
    def differences(self) -> SeedDifferences:
        """What each method's words cost beyond as many drawn at random."""
        return {f"beyond_random_{one}": (f"score_{RANDOM}", f"score_{one}") for one in self.names}

    @property
    def measures(self) -> tuple[str, ...]:
        """Accuracies, then differences."""
        return (*self.over_seeds, *self.differences)

    def lessons(self, trial: RetrainingContext) -> list[Variant]:
        """Every method and the control with every share and seed, and whole texts."""
        seeds = trial.seeds(self.seeds)
        served = [one for one, reason in self._served(trial).items() if reason is None]
        if not set(served) - {RANDOM}:
            raise NotApplicable("; ".join(filter(None, self._served(trial).values())))
        found: list[Variant] = [self._whole(seed) for seed in seeds]
        found += [self._lesson(*one) for one in self._every(served, seeds)]
        return found

    def examine(self, trial: RetrainingContext) -> Findings:
        """Accuracy of all, by share and by seed."""
        seeds, missing, measured = trial.seeds(self.seeds), dict[str, str](), list[Measurement]()
        whole = [trial.right(trial.outlook(self._whole(seed)).probabilities) for seed in seeds]
        measured += _by_seed("score_whole", seeds, np.array(whole)[:, None])
        found: dict[str, TextValues] = {}
        for name, reason in self._served(trial).items():
            if reason is not None:
                missing |= {f"score_{name}": reason, f"beyond_random_{name}": reason}
                continue
            right = [[self._right(trial, name, one, seed) for one in self.shares] for seed in seeds]
            found[name] = np.array(right)  # seeds, shares, texts
            measured += _by_seed(f"score_{name}", seeds, found[name])
            measured += self._by_share(f"score_{name}", found[name], seeds)
        for name in (one for one in found if one != RANDOM):
            lost = found[RANDOM] - found[name]
            measured.append(Measurement(f"beyond_random_{name}", lost.mean((0, 1))))
            measured += self._by_share(f"beyond_random_{name}", lost)
        return Findings(tuple(measured), missing)

    @property
    def _arms(self) -> tuple[str, ...]:
        return (*self.names, RANDOM)

    def _every(self, names: list[str], seeds: list[int]) -> Iterator[tuple[str, float, int]]:
        return ((name, share, seed) for name in names for share in self.shares for seed in seeds)

    def _by_share(
        self, measure: str, right: TextValues, seeds: Sequence[int] = ()
    ) -> Iterator[Measurement]:
        """A row for each share, and for each seed of it where they are given."""
        for place, share in enumerate(self.shares):
            yield Measurement(measure, right[:, place].mean(0), f"share {share:g}")
            for row, seed in enumerate(seeds):
                setting = f"share {share:g}, {seed_setting(seed)}"
                yield Measurement(measure, right[row, place], setting)

    def _served(self, trial: RetrainingContext) -> dict[str, str | None]:
        """Why a method cannot say which words of the texts under audit it names; None if it can."""
        found: dict[str, str | None] = {}
        for name in self._arms:
            try:
                trial.texts.hidden(self._hidden(name, self.shares[0]))
                found[name] = None
            except NotApplicable as reason:
                found[name] = str(reason)
        return found

    def _hidden(self, name: str, share: float) -> HiddenWords:
        chosen = next((one for one in self.methods if method_name(one) == name), name)
        return HiddenWords("saliency", method=name, share=share, settings=_changed_settings(chosen))

    def _lesson(self, name: str, share: float, seed: int) -> WithoutWordsVariant:
        return WithoutWordsVariant(
            self._hidden(name, share), seed, EarlyStopping(self.epochs, self.patience)
        )

    def _whole(self, seed: int) -> RetrainedVariant:
        return RetrainedVariant(seed, "own", EarlyStopping(self.epochs, self.patience))

    def _right(self, trial: RetrainingContext, name: str, share: float, seed: int) -> TextValues:
        subject = trial.trained(self._lesson(name, share, seed)).subject
        shorter = trial.texts.without(self._hidden(name, share), placeholder_id(subject))
        return trial.right(predict_all(subject, shorter).probabilities)


def _by_seed(measure: str, seeds: list[int], right: TextValues) -> Iterator[Measurement]:
    """A row for each seed, the mean over shares, and the mean of all."""
    for seed, one in zip(seeds, right, strict=True):
        yield Measurement(measure, one.mean(0), seed_setting(seed))
    yield Measurement(measure, right.mean((0, 1)))


def _changed_settings(one: MethodOrName) -> tuple[tuple[str, Any], ...]:
    """The settings of a method that are not its usual ones."""
    if isinstance(one, str):
        return ()
    part: Any = build_method(one)
    usual, own = asdict(methods.build(method_name(one))), asdict(part)
    return tuple((key, value) for key, value in own.items() if value != usual[key])
