"""Variants of a base model: how each is trained, and its JSON.

A variant is data: equal variants of equal texts give equal models. Its JSON is part of the key of
its folder, so that its field names must not change.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

import torch

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.core.settings import check_on_init
from heedful.models.protocols import Subject
from heedful.training.fit import require_every_class
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.trainer import Task, Trainable, Trainer
from heedful.training.objectives import AdversaryObjective, DeceptionObjective, Objective
from heedful.training.recipe import NonNegativeFloat
from heedful.training.variants.guided_model import GuideName, guided_task, new_guided_model
from heedful.training.variants.models import (
    TrainingContext,
    copied_model,
    fresh_model,
    with_blocked_words,
)
from heedful.training.variants.texts import (
    EncodedTexts,
    HiddenWords,
    RandomMasks,
    masking_token_id,
    placeholder_id,
)

variants = Registry("variant")
Start = Literal["scratch", "base"]
STARTS: tuple[Start, ...] = get_args(Start)
RETRAINED_PACE = EarlyStopping(40, 5)
ADVERSARY_PACE = EarlyStopping(80, 10)
COPY_PACE = EarlyStopping(20, 5)
Training = tuple[Trainable, Sequence[Task]]
"""A model in training, with its training task and its dev task."""


class Variant(ABC):
    """How to train a model; the limits of `pace` do not bind a fine-tuning schedule."""

    pace: EarlyStopping

    @property
    def needs(self) -> "tuple[Variant, ...]":
        """The variants that it is trained from."""
        return ()

    @abstractmethod
    def prepare(self, context: TrainingContext) -> Training:
        """The model to train, with the texts and objectives of training and dev."""


@dataclass(frozen=True, eq=False)
class TrainedVariant:
    """A trained subject and the record of its training."""

    subject: Subject
    record: dict[str, Any]


def train_variant(variant: Variant, context: TrainingContext) -> TrainedVariant:
    """Train on one thread; `plateau` in the record is None where no early stopping was asked."""
    with single_thread():
        trainable, (train, dev) = variant.prepare(context)
        stopping = trainable.limits(variant.pace)
        require_every_class(train[0], trainable.subject.labels)
        state = Trainer(trainable, train, dev, stopping).train(
            checkpoint=context.checkpoint, progress=context.progress
        )
    plateau = None if stopping.patience is None else stopping.has_plateaued(state)
    record = {**state.summary(), "epochs": len(state.scores), "plateau": plateau}
    return TrainedVariant(trainable.subject, {**record, "torch": torch.__version__})


@contextmanager
def single_thread() -> Iterator[None]:
    """Run torch on one thread: another order of sums would train another model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@variants.register("retrained")
@check_on_init
@dataclass(frozen=True)
class RetrainedVariant(Variant):
    """The base model's recipe with another seed, with its own or with uniform attention."""

    seed: int
    attention: Literal["own", "uniform"] = "own"
    pace: EarlyStopping = RETRAINED_PACE

    def prepare(self, context: TrainingContext) -> Training:
        model = fresh_model(context, self.seed, uniform=self.attention == "uniform")
        return model, _on_labels(model, context)

    def __str__(self) -> str:
        return f"{self.attention} attention, seed {self.seed}"


@variants.register("adversary")
@check_on_init
@dataclass(frozen=True)
class AdversaryVariant(Variant):
    """A model with the base model's predictions and attention as far from it as possible.

    `weight` is λ of the distance between the attentions.
    """

    weight: NonNegativeFloat
    start: Start = "scratch"
    reverse: bool = False
    seed: int = 0
    pace: EarlyStopping = ADVERSARY_PACE

    def prepare(self, context: TrainingContext) -> Training:
        if self.start == "base":
            model = copied_model(context, perturb_seed=self.seed)
        else:
            model = fresh_model(context, self.seed)

        def objective_for(texts: EncodedTexts) -> Objective:
            base = texts.base_predictions
            return AdversaryObjective(base.probabilities, base.attention, self.weight, self.reverse)

        return model, _with_objective(objective_for, context)

    def __str__(self) -> str:
        return f"λ {self.weight:g} from {self.start}{', KL reversed' if self.reverse else ''}"


@variants.register("guided")
@check_on_init
@dataclass(frozen=True)
class GuidedVariant(Variant):
    """A word-wise model with uniform attention, its own, the base model's or an adversary's."""

    seed: int
    by: GuideName
    adversary: AdversaryVariant | None = None
    encoder: str = "average"
    pace: EarlyStopping = RETRAINED_PACE

    def __post_init__(self) -> None:
        if (self.by == "adversary") != (self.adversary is not None):
            raise ConfigError("Give an adversary with by = adversary, and only with it.")

    @property
    def needs(self) -> tuple[Variant, ...]:
        return () if self.adversary is None else (self.adversary,)

    def prepare(self, context: TrainingContext) -> Training:
        source = context.base if self.by == "base" else None
        if self.adversary is not None:
            source = context.trained(self.adversary)
        model = new_guided_model(context, self.seed, encoder=self.encoder, by=self.by)
        return model, [guided_task(model, texts, source) for texts in context.splits]

    def __str__(self) -> str:
        return f"guided by {self.by}, seed {self.seed}"


@variants.register("deceived")
@check_on_init
@dataclass(frozen=True)
class DeceptiveVariant(Variant):
    """A model trained to predict the labels without attention on the hidden words.

    `worst` penalises the head with most attention on them instead of the mean over heads. With
    `blocked`, only the pooled token of a transformer attends to hidden words.
    """

    weight: NonNegativeFloat
    hidden: HiddenWords
    start: Start = "base"
    worst: bool = False
    blocked: bool = True
    seed: int = 0
    pace: EarlyStopping = COPY_PACE

    def prepare(self, context: TrainingContext) -> Training:
        model = copied_model(context) if self.start == "base" else fresh_model(context, self.seed)
        if self.blocked:
            model = with_blocked_words(model, context, self.hidden)

        def objective_for(texts: EncodedTexts) -> Objective:
            task, hidden = model.task_objective(texts.encoded), texts.hidden(self.hidden)
            return DeceptionObjective(task.gold, task.criterion, hidden, self.weight, self.worst)

        return model, _with_objective(objective_for, context)

    def __str__(self) -> str:
        return f"deceiving, λ {self.weight:g} from {self.start}"


@variants.register("without_words")
@check_on_init
@dataclass(frozen=True)
class WithoutWordsVariant(Variant):
    """The base model's recipe on texts from which the hidden words are deleted."""

    hidden: HiddenWords
    seed: int = 0
    pace: EarlyStopping = RETRAINED_PACE

    def prepare(self, context: TrainingContext) -> Training:
        model = fresh_model(context, self.seed)
        blank = placeholder_id(model.subject)
        return model, [model.task(one.without(self.hidden, blank)) for one in context.splits]

    def __str__(self) -> str:
        return f"without {self.hidden}, seed {self.seed}"


@variants.register("shuffled")
@check_on_init
@dataclass(frozen=True)
class ShuffledLabelsVariant(Variant):
    """The base model's recipe on texts with permuted labels.

    The model is to memorise them: epochs are selected on the training texts themselves.
    """

    seed: int
    pace: EarlyStopping = RETRAINED_PACE

    def prepare(self, context: TrainingContext) -> Training:
        texts = context.train.shuffled(self.seed)
        shuffled = replace(context, train=texts, dev=texts)
        model = fresh_model(shuffled, self.seed)
        return model, _on_labels(model, shuffled)

    def __str__(self) -> str:
        return f"shuffled labels, seed {self.seed}"


@variants.register("masked")
@check_on_init
@dataclass(frozen=True)
class MaskedVariant(Variant):
    """A copy of the base model, distilled on texts with randomly masked words."""

    holes: RandomMasks
    pace: EarlyStopping = COPY_PACE

    def prepare(self, context: TrainingContext) -> Training:
        model = copied_model(context)
        blank = masking_token_id(model.subject)
        return model, [
            (self.holes.masked_texts(texts.encoded, blank), self.holes.objective(texts))
            for texts in context.splits
        ]

    def __str__(self) -> str:
        return f"a copy tuned on texts with holes, seed {self.holes.seed}"


def _on_labels(model: Trainable, context: TrainingContext) -> list[Task]:
    return [model.task(texts.encoded) for texts in context.splits]


def _with_objective(
    objective_for: Callable[[EncodedTexts], Objective], context: TrainingContext
) -> list[Task]:
    return [(texts.encoded, objective_for(texts)) for texts in context.splits]


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
