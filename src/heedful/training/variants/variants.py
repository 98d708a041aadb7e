"""Variants of a base model: how each is trained, and its JSON.

A variant is data: equal variants of equal texts give equal models. Its JSON is part of the key of
its folder, so that its field names must not change.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.training.fit import require_every_class
from heedful.training.loop.epochs import EarlyStopping as EarlyStopping  # noqa: PLC0414 - for checks
from heedful.training.loop.epochs import summarise_training
from heedful.training.loop.trainer import Trainable, Trainer
from heedful.training.objectives import AdversaryObjective, DeceptionObjective, Objective
from heedful.training.variants.context import EncodedTexts, TrainedVariant, TrainingContext
from heedful.training.variants.guided_model import GUIDES, guided_objective, new_guided_model
from heedful.training.variants.hidden_words import HiddenWords, placeholder_id
from heedful.training.variants.masked_copy import RandomMasks, masking_token_id
from heedful.training.variants.new_models import copied_model, fresh_model, with_blocked_words

variants = Registry("variant")
STARTS = ("scratch", "base")
RETRAINED_PACE = EarlyStopping(40, 5)
ADVERSARY_PACE = EarlyStopping(80, 10)
COPY_PACE = EarlyStopping(20, 5)


@runtime_checkable
class Variant(Protocol):
    """How to train a model; `needs` are the variants that it is trained from."""

    @property
    def needs(self) -> tuple["Variant", ...]: ...

    @property
    def pace(self) -> EarlyStopping: ...

    def train_variant(self, context: TrainingContext) -> TrainedVariant: ...

    def __str__(self) -> str: ...


def _require_valid(start: str, weight: float) -> None:
    if start not in STARTS:
        raise ConfigError(f"start must be {' or '.join(STARTS)}, not {start!r}.")
    if not weight >= 0:
        raise ConfigError(f"weight must not be negative; got {weight}.")


@dataclass(frozen=True, eq=False)
class _Training:
    """The training of one variant: its model, its texts and its limits."""

    trainable: Trainable
    context: TrainingContext
    pace: EarlyStopping

    def on_task(self) -> TrainedVariant:
        """Train on the labels of the texts of the context."""
        return self.on_context(lambda texts: self.trainable.task_objective(texts.encoded))

    def on_context(self, objective_for: Callable[[EncodedTexts], Objective]) -> TrainedVariant:
        """Train on the texts of the context."""
        return self.on([(texts.encoded, objective_for(texts)) for texts in self.context.splits])

    def on(self, splits: Sequence[tuple[Sequence[Encoded], Objective]]) -> TrainedVariant:
        """Train on the first texts, select on the second, each with its objective."""
        (train_texts, train_objective), (dev_texts, dev_objective) = splits
        subject, stopping = self.trainable.subject, self.trainable.limits(self.pace)
        require_every_class(train_texts, subject.labels)
        trainer = Trainer(
            self.trainable, train_texts, dev_texts, train_objective, dev_objective, stopping
        )
        state = trainer.train(checkpoint=self.context.checkpoint, progress=self.context.progress)
        record = {**summarise_training(state, stopping), "torch": torch.__version__}
        return TrainedVariant(subject, record)


@variants.register("retrained")
@dataclass(frozen=True)
class RetrainedVariant:
    """The base model's recipe with another seed, with its own or with uniform attention."""

    seed: int
    attention: str = "own"
    pace: EarlyStopping = RETRAINED_PACE
    needs = ()

    def __post_init__(self) -> None:
        if self.attention not in ("own", "uniform"):
            raise ConfigError(f"attention must be own or uniform, not {self.attention!r}.")

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the task."""
        model = fresh_model(context, self.seed, uniform=self.attention == "uniform")
        return _Training(model, context, self.pace).on_task()

    def __str__(self) -> str:
        return f"{self.attention} attention, seed {self.seed}"


@variants.register("adversary")
@dataclass(frozen=True)
class AdversaryVariant:
    """A model with the base model's predictions and attention as far from it as possible.

    `weight` is λ of the distance between the attentions.
    """

    weight: float
    start: str = "scratch"
    reverse: bool = False
    seed: int = 0
    pace: EarlyStopping = ADVERSARY_PACE
    needs = ()

    def __post_init__(self) -> None:
        _require_valid(self.start, self.weight)

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the base model's outputs and away from its attention."""
        from_base = self.start == "base"
        model = (
            copied_model(context, perturb_seed=self.seed)
            if from_base
            else fresh_model(context, self.seed)
        )

        def objective_for(texts: EncodedTexts) -> Objective:
            base = texts.base_predictions
            return AdversaryObjective(base.probabilities, base.attention, self.weight, self.reverse)

        return _Training(model, context, self.pace).on_context(objective_for)

    def __str__(self) -> str:
        return f"λ {self.weight:g} from {self.start}{', KL reversed' if self.reverse else ''}"


@variants.register("guided")
@dataclass(frozen=True)
class GuidedVariant:
    """A word-wise model with uniform attention, its own, the base model's or an adversary's."""

    seed: int
    by: str
    adversary: AdversaryVariant | None = None
    encoder: str = "average"
    pace: EarlyStopping = RETRAINED_PACE

    def __post_init__(self) -> None:
        if self.by not in GUIDES:
            raise ConfigError(f"by must be one of {', '.join(GUIDES)}, not {self.by!r}.")
        if (self.by == "adversary") != (self.adversary is not None):
            raise ConfigError("Give an adversary with by = adversary, and only with it.")

    @property
    def needs(self) -> tuple[Variant, ...]:
        """The adversary whose attention is used."""
        return () if self.adversary is None else (self.adversary,)

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the task under the given weights."""
        source = context.base if self.by == "base" else None
        if self.adversary is not None:
            source = context.trained(self.adversary)
        model = new_guided_model(context, self.seed, encoder=self.encoder, by=self.by)
        return _Training(model, context, self.pace).on(
            [guided_objective(model, texts, source) for texts in context.splits]
        )

    def __str__(self) -> str:
        return f"guided by {self.by}, seed {self.seed}"


@variants.register("deceived")
@dataclass(frozen=True)
class DeceptiveVariant:
    """A model trained to predict the labels without attention on the hidden words.

    `worst` penalises the head with most attention on them instead of the mean over heads. With
    `blocked`, only the pooled token of a transformer attends to hidden words.
    """

    weight: float
    hidden: HiddenWords
    start: str = "base"
    worst: bool = False
    blocked: bool = True
    seed: int = 0
    pace: EarlyStopping = COPY_PACE
    needs = ()

    def __post_init__(self) -> None:
        _require_valid(self.start, self.weight)

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the task with a penalty on attention to the hidden words."""
        model = copied_model(context) if self.start == "base" else fresh_model(context, self.seed)
        if self.blocked:
            model = with_blocked_words(model, context, self.hidden)

        def objective_for(texts: EncodedTexts) -> Objective:
            task, hidden = model.task_objective(texts.encoded), texts.hidden(self.hidden)
            return DeceptionObjective(task.gold, task.criterion, hidden, self.weight, self.worst)

        return _Training(model, context, self.pace).on_context(objective_for)

    def __str__(self) -> str:
        return f"deceiving, λ {self.weight:g} from {self.start}"


@variants.register("without_words")
@dataclass(frozen=True)
class WithoutWordsVariant:
    """The base model's recipe on texts from which the hidden words are deleted."""

    hidden: HiddenWords
    seed: int = 0
    pace: EarlyStopping = RETRAINED_PACE
    needs = ()

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the task without the words."""
        model = fresh_model(context, self.seed)
        blank = placeholder_id(model.subject)
        shortened = [texts.without(self.hidden, blank) for texts in context.splits]
        return _Training(model, context, self.pace).on(
            [(texts, model.task_objective(texts)) for texts in shortened]
        )

    def __str__(self) -> str:
        return f"without {self.hidden}, seed {self.seed}"


@variants.register("shuffled")
@dataclass(frozen=True)
class ShuffledLabelsVariant:
    """The base model's recipe on texts with permuted labels."""

    seed: int
    pace: EarlyStopping = RETRAINED_PACE
    needs = ()

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train to memorise the labels: epochs are selected on the training texts themselves."""
        texts = context.train.shuffled(self.seed)
        shuffled = replace(context, train=texts, dev=texts)
        model = fresh_model(shuffled, self.seed)
        return _Training(model, shuffled, self.pace).on_task()

    def __str__(self) -> str:
        return f"shuffled labels, seed {self.seed}"


@variants.register("masked")
@dataclass(frozen=True)
class MaskedVariant:
    """A copy of the base model, distilled on texts with randomly masked words."""

    holes: RandomMasks
    pace: EarlyStopping = COPY_PACE
    needs = ()

    def train_variant(self, context: TrainingContext) -> TrainedVariant:
        """Train on the base model's outputs for whole texts."""
        model = copied_model(context)
        blank = masking_token_id(model.subject)
        return _Training(model, context, self.pace).on(
            [
                (self.holes.masked_texts(texts.encoded, blank), self.holes.objective(texts))
                for texts in context.splits
            ]
        )

    def __str__(self) -> str:
        return f"a copy tuned on texts with holes, seed {self.holes.seed}"


NESTED_TYPES = {
    "adversary": AdversaryVariant,
    "hidden": HiddenWords,
    "holes": RandomMasks,
    "pace": EarlyStopping,
}


def variant_to_dict(variant: Variant) -> dict[str, Any]:
    """A variant as JSON data."""
    part: Any = variant
    return {"lesson": variants.name_of(variant), **asdict(part, dict_factory=_without_ceiling)}


def _without_ceiling(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a part; no variant sets a ceiling of its pace, and old keys do not have one."""
    return {name: value for name, value in pairs if name != "ceiling"}


def variant_from_dict(raw: dict[str, Any]) -> Variant:
    """A variant from JSON data."""
    kind: Any = variants[raw["lesson"]]
    variant: Variant = kind(**{one.name: _read(one.name, raw[one.name]) for one in fields(kind)})
    return variant


def _read(name: str, value: Any) -> Any:
    """A field from JSON, where tuples are lists and parts are objects."""
    if name in NESTED_TYPES and isinstance(value, dict):
        return NESTED_TYPES[name](**{key: _read(key, one) for key, one in value.items()})
    return tuple(_read("", one) for one in value) if isinstance(value, list) else value
