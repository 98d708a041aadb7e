"""Does retraining without the top-ranked words hurt accuracy? (ROAR; Hooker et al., 2019)"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import MinLen
from jaxtyping import Float64

from heedful.checks.base import Findings
from heedful.checks.faithfulness.items import ComparesMethods
from heedful.checks.requested_methods import MethodOrName, build_method, method_name
from heedful.checks.retraining_base import Paced, RetrainingContext, SeedCount
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Measurement, MissingMeasure
from heedful.core.settings import OpenFraction, Repeats, check_on_init
from heedful.methods import methods
from heedful.results.tables import TextValues
from heedful.training.loop.predictions import predict_all
from heedful.training.variants.texts import HiddenWords, placeholder_id
from heedful.training.variants.variants import RetrainedVariant, Variant, WithoutWordsVariant

DEFAULT_ROAR_METHODS = ("attention", "input_x_gradient", "leave_one_out")
RANDOM = "random"  # the control: as many words, drawn at random
SeedValues = Float64[np.ndarray, "seeds shares n"]


@check_on_init
@dataclass(frozen=True)
class Roar(Paced, ComparesMethods):
    """Does retraining without the top-ranked words hurt accuracy?

    In training, validation and test texts the words are removed that a method gives the largest
    |score| in the audited model, for the class it predicts: each of `shares`, rounded up, never
    all. The model is retrained on what is left by its own recipe, with `seeds` seeds. `score` is
    the accuracy, mean over the shares; `beyond_random` the loss compared with models that lack as
    many random words; both by method. Models are trained for such texts, so these are not off
    distribution; but a retrained model may use other words, and may infer from what is missing what
    was there. The check has no vote.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_ROAR_METHODS
    shares: Annotated[tuple[OpenFraction, ...], MinLen(1)] = (0.1, 0.3, 0.5)
    seeds: SeedCount = 3
    epochs: Repeats = 40
    patience: Repeats = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.shares)) < len(self.shares):
            raise ConfigError(f"shares must differ from each other, not {self.shares}.")

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """Every method and the control with every share and seed, and whole texts."""
        seeds, refused = retraining.seeds(self.seeds), self._refused(retraining)
        served = [one for one in (*self.names, RANDOM) if one not in refused]
        if not set(served) - {RANDOM}:
            raise NotApplicable("; ".join(refused.values()))
        whole: list[Variant] = [self._whole(seed) for seed in seeds]
        return whole + [
            self._without(name, share, seed)
            for name in served
            for share in self.shares
            for seed in seeds
        ]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Accuracy of all models, by share and by seed."""
        seeds, refused = retraining.seeds(self.seeds), self._refused(retraining)
        whole = [retraining.score(self._whole(seed)) for seed in seeds]
        measured = [*_by_seed("score_whole", np.array(whole)[:, None], seeds)]
        found: dict[str, SeedValues] = {}
        for name in (one for one in (*self.names, RANDOM) if one not in refused):
            found[name] = self._right(retraining, name, seeds)
            measured += _by_seed("score", found[name], seeds, name)
            measured += self._by_share("score", found[name], name, seeds)
        for name in (one for one in found if one != RANDOM):
            lost = found[RANDOM] - found[name]
            measured.append(Measurement("beyond_random", lost.mean((0, 1)), method=name))
            measured += self._by_share("beyond_random", lost, name)
        missing = (
            MissingMeasure(measure, reason, name)
            for name, reason in refused.items()
            for measure in ("score", "beyond_random")
        )
        return Findings(tuple(measured), tuple(missing))

    def _by_share(
        self, measure: str, values: SeedValues, method: str, seeds: Sequence[int] = ()
    ) -> Iterator[Measurement]:
        """A row for each share, and for each seed of it where seeds are given."""
        for place, share in enumerate(self.shares):
            setting = f"share {share:g}"
            yield Measurement(measure, values[:, place].mean(0), setting, method)
            for row, seed in enumerate(seeds):
                yield Measurement(measure, values[row, place], setting, method, seed=seed)

    def _refused(self, retraining: RetrainingContext) -> dict[str, str]:
        """The methods that cannot score the audited texts, with the reasons."""
        found: dict[str, str] = {}
        for name in (*self.names, RANDOM):
            try:
                retraining.texts.hidden(self._hidden(name, self.shares[0]))
            except NotApplicable as reason:
                found[name] = str(reason)
        return found

    def _hidden(self, name: str, share: float) -> HiddenWords:
        chosen = next((one for one in self.methods if method_name(one) == name), name)
        return HiddenWords("saliency", method=name, share=share, settings=_changed_settings(chosen))

    def _without(self, name: str, share: float, seed: int) -> WithoutWordsVariant:
        return WithoutWordsVariant(self._hidden(name, share), seed, self.pace)

    def _whole(self, seed: int) -> RetrainedVariant:
        return RetrainedVariant(seed, "own", self.pace)

    def _right(self, retraining: RetrainingContext, name: str, seeds: Sequence[int]) -> SeedValues:
        def correct(share: float, seed: int) -> TextValues:
            subject = retraining.trained(self._without(name, share, seed)).subject
            shorter = retraining.texts.without(self._hidden(name, share), placeholder_id(subject))
            return retraining.correct(predict_all(subject, shorter).probabilities)

        return np.array([[correct(share, seed) for share in self.shares] for seed in seeds])


def _by_seed(
    measure: str, values: SeedValues, seeds: Sequence[int], method: str | None = None
) -> Iterator[Measurement]:
    """A row for each seed, the mean over shares, and the mean of all."""
    for seed, one in zip(seeds, values, strict=True):
        yield Measurement(measure, one.mean(0), method=method, seed=seed)
    yield Measurement(measure, values.mean((0, 1)), method=method)


def _changed_settings(one: MethodOrName) -> tuple[tuple[str, Any], ...]:
    """The settings of a method that differ from its defaults."""
    if isinstance(one, str):
        return ()
    part: Any = build_method(one)
    usual, own = asdict(methods.build(method_name(one))), asdict(part)
    return tuple((key, value) for key, value in own.items() if value != usual[key])
