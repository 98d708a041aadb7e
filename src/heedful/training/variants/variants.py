"""Ways to make a subject anew. A lesson is data: equal lessons on equal texts make equal models."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.variants.context import CheckpointSlot, TrainedVariant, TrainingContext
from heedful.training.variants.guided_model import GUIDES, new_guided_model
from heedful.training.variants.hidden_words import DeceptionPenalty, HiddenWords
from heedful.training.variants.masked_copy import RandomMasks
from heedful.training.variants.recurrent_variants import copied_model, fresh_model

variants = Registry("lesson")
STARTS = ("scratch", "base")


@dataclass(frozen=True)
class EpochLimits:
    """How long to train: until the dev score has not risen for `patience` epochs."""

    epochs: int = 40
    patience: int = 5

    def __post_init__(self) -> None:
        EarlyStopping(self.epochs, self.patience)  # which refuses wrong numbers

    @property
    def doubled(self) -> "EpochLimits":
        """The pace of adversaries beside this one of seeds: twice as long, as published."""
        return EpochLimits(2 * self.epochs, 2 * self.patience)

    @property
    def halved(self) -> "EpochLimits":
        """The other way round."""
        return EpochLimits(max(1, self.epochs // 2), max(1, self.patience // 2))

    @property
    def stopping(self) -> EarlyStopping:
        """As the loop wants it."""
        return EarlyStopping(self.epochs, self.patience)


@runtime_checkable
class Variant(Protocol):
    """How to make a subject; `needs` are the lessons whose subjects it is made from."""

    @property
    def needs(self) -> tuple["Variant", ...]: ...

    @property
    def pace(self) -> EpochLimits: ...

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant: ...

    def __str__(self) -> str: ...


@variants.register("retrained")
@dataclass(frozen=True)
class RetrainedVariant:
    """The base model's own recipe with another seed, perhaps with attention frozen to uniform."""

    seed: int
    attention: str = "own"
    pace: EpochLimits = EpochLimits()
    needs = ()

    def __post_init__(self) -> None:
        if self.attention not in ("own", "uniform"):
            raise ConfigError(f"attention is own or uniform, not {self.attention!r}.")

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the task."""
        trainable = fresh_model(context, self.seed, uniform=self.attention == "uniform")
        return trainable.task(self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"{self.attention} attention, seed {self.seed}"


@variants.register("adversary")
@dataclass(frozen=True)
class AdversaryVariant:
    """A whole model that says what the base model says and attends as far from it as pays."""

    weight: float
    start: str = "scratch"
    reverse: bool = False
    seed: int = 0
    pace: EpochLimits = EpochLimits(80, 10)
    needs = ()

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ConfigError(f"An adversary starts from {' or '.join(STARTS)}, not {self.start}.")
        if not self.weight >= 0:
            raise ConfigError(f"An adversary's weight starts at 0, not {self.weight}.")

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the base model's outputs and against its attention."""
        from_base = self.start == "base"
        trainable = (
            copied_model(context, perturb_seed=self.seed)
            if from_base
            else fresh_model(context, self.seed)
        )
        return trainable.train_adversary(
            self.weight, self.pace.stopping, slot, reverse=self.reverse
        )

    def __str__(self) -> str:
        return f"λ {self.weight:g} from {self.start}{', KL reversed' if self.reverse else ''}"


@variants.register("guided")
@dataclass(frozen=True)
class GuidedVariant:
    """A word-wise model whose attention is given: uniform, its own, the base's, the adversary's."""

    seed: int
    by: str
    adversary: AdversaryVariant | None = None
    encoder: str = "average"
    pace: EpochLimits = EpochLimits()

    def __post_init__(self) -> None:
        if self.by not in GUIDES:
            raise ConfigError(f"A guide is {', '.join(GUIDES)}, not {self.by!r}.")
        if (self.by == "adversary") != (self.adversary is not None):
            raise ConfigError("A model guided by an adversary, and only that, needs one.")

    @property
    def needs(self) -> tuple[Variant, ...]:
        """The adversary whose weights are taken."""
        return () if self.adversary is None else (self.adversary,)

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the task under the given weights."""
        source = None if self.adversary is None else context.trained(self.adversary)
        trainable = new_guided_model(
            context, self.seed, encoder=self.encoder, by=self.by, source=source
        )
        return trainable.task(self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"guided by {self.by}, seed {self.seed}"


@variants.register("deceived")
@dataclass(frozen=True)
class DeceptiveVariant:
    """The base model, taught to keep its attention off the hidden words and its answers right."""

    weight: float
    hidden: HiddenWords
    start: str = "base"
    worst: bool = False  # of many heads the worst, not their mean
    blocked: bool = True  # transformers: hidden words are seen by the pooled token alone
    seed: int = 0
    pace: EpochLimits = EpochLimits(20, 5)
    needs = ()

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ConfigError(f"A deceiver starts from {' or '.join(STARTS)}, not {self.start}.")
        if not self.weight >= 0:
            raise ConfigError(f"A deceiver's weight starts at 0, not {self.weight}.")

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the task with a penalty on the mass of the hidden words."""
        trainable = (
            copied_model(context) if self.start == "base" else fresh_model(context, self.seed)
        )
        plan = DeceptionPenalty(self.hidden, self.weight, self.worst, self.blocked)
        return trainable.train_deceiver(plan, self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"deceiving, λ {self.weight:g} from {self.start}"


@variants.register("without_words")
@dataclass(frozen=True)
class WithoutWordsVariant:
    """The base model's recipe on texts from which the hidden words are deleted."""

    hidden: HiddenWords
    seed: int = 0
    pace: EpochLimits = EpochLimits()
    needs = ()

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the task without the words."""
        return fresh_model(context, self.seed).without(self.hidden, self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"without {self.hidden}, seed {self.seed}"


@variants.register("shuffled")
@dataclass(frozen=True)
class ShuffledLabelsVariant:
    """The base model's recipe on texts whose labels were dealt out anew among them."""

    seed: int
    pace: EpochLimits = EpochLimits()
    needs = ()

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train until these labels are known by heart; no other texts could tell how well."""
        texts = context.train.shuffled(self.seed)
        trainable = fresh_model(replace(context, train=texts, dev=texts), self.seed)
        return trainable.task(self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"shuffled labels, seed {self.seed}"


@variants.register("masked")
@dataclass(frozen=True)
class MaskedVariant:
    """A copy of the base model that has learnt to read texts with holes, and says what it says."""

    holes: RandomMasks
    pace: EpochLimits = EpochLimits(20, 5)
    needs = ()

    def train_variant(self, context: TrainingContext, slot: CheckpointSlot) -> TrainedVariant:
        """Train on the base model's outputs of whole texts."""
        return copied_model(context).distil_masked(self.holes, self.pace.stopping, slot)

    def __str__(self) -> str:
        return f"a copy tuned on texts with holes, seed {self.holes.seed}"
