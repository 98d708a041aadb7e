"""Models on their way: a new one like the base, or a copy of it, to be taught this or that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from heedful.core.batch import Encoded
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.fit import init_recurrent_subject, require_every_class
from heedful.training.loop.epochs import EarlyStopping, summarise_training
from heedful.training.loop.recurrent_trainer import RecurrentTrainer
from heedful.training.recipe import Recipe
from heedful.training.variants.context import CheckpointSlot, TrainedVariant, TrainingContext
from heedful.training.variants.hidden_words import UNKNOWN_ID, DeceptionPenalty, HiddenWords
from heedful.training.variants.masked_copy import RandomMasks, prepare_masked_training
from heedful.training.variants.objectives import (
    Objective,
    ObjectiveFactory,
    TaskObjective,
    adversary_objective,
    deception_objective,
)


@runtime_checkable
class Trainable(Protocol):
    """A model that can be taught."""

    def task(self, stopping: EarlyStopping, slot: CheckpointSlot) -> TrainedVariant:
        """The labels."""
        ...

    def train_adversary(
        self, weight: float, stopping: EarlyStopping, slot: CheckpointSlot, *, reverse: bool
    ) -> TrainedVariant:
        """The base model's outputs by other attention."""
        ...

    def train_deceiver(
        self, plan: DeceptionPenalty, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels, with attention off the hidden words."""
        ...

    def without(
        self, hidden: HiddenWords, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels, from texts without the hidden words."""
        ...

    def distil_masked(
        self, holes: RandomMasks, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """What the base model says of whole texts, from texts with holes."""
        ...


def fresh_model(context: TrainingContext, seed: int, *, uniform: bool = False) -> Trainable:
    """A fresh model of the base's kind, with uniform attention if asked."""
    if isinstance(context.base, RecurrentSubject):
        recipe = replace(context.recipe, seed=seed)
        if uniform:
            recipe = replace(recipe, attention="uniform")
        query = context.base.network.shape.query
        subject, _ = init_recurrent_subject(
            context.base.vocabulary, context.base.labels, recipe, query=query
        )
        return RecurrentTrainable(context, subject, recipe)
    from heedful.training.variants.transformer_variants import fresh_transformer

    return fresh_transformer(context, seed, uniform=uniform)


def copied_model(context: TrainingContext, *, perturb_seed: int | None = None) -> Trainable:
    """A copy of the base model, nudged by a seed if asked.

    At the base model itself the slope of KL is zero: who starts there to get away needs a nudge.
    """
    if isinstance(context.base, RecurrentSubject):
        network = AttentionClassifier(context.base.network.shape)
        network.load_state_dict(context.base.network.state_dict())
        if perturb_seed is not None:
            perturb_weights(network.attention, perturb_seed)
        return RecurrentTrainable(
            context, replace(context.base, network=network, history={}), context.recipe
        )
    from heedful.training.variants.transformer_variants import copied_transformer

    return copied_transformer(context, perturb_seed=perturb_seed)


def perturb_weights(module: nn.Module, seed: int, *, scale: float = 0.05) -> None:
    """Move every weight by a small share of how weights beside it vary, or of its own size."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in module.parameters():
            size = one.std() if one.numel() > 1 else one.abs().mean()
            one.add_(scale * size * torch.randn(one.shape, generator=draw))


@dataclass(frozen=True, eq=False)
class RecurrentTrainable:
    """An attention classifier to be taught."""

    context: TrainingContext
    subject: RecurrentSubject
    recipe: Recipe

    def task(self, stopping: EarlyStopping, slot: CheckpointSlot) -> TrainedVariant:
        """The labels, by the published loss."""
        return self._learn(lambda texts: self._task(texts.encoded), stopping, slot)

    def train_adversary(
        self, weight: float, stopping: EarlyStopping, slot: CheckpointSlot, *, reverse: bool
    ) -> TrainedVariant:
        """TVD − λ·KL against the base model."""
        return self._learn(adversary_objective(weight, reverse=reverse), stopping, slot)

    def train_deceiver(
        self, plan: DeceptionPenalty, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels and a penalty on the weight of the hidden words."""
        return self._learn(deception_objective(plan, self._task), stopping, slot)

    def without(
        self, hidden: HiddenWords, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels, from shorter texts."""
        both = self.context.train, self.context.dev
        known, judged = (texts.without(hidden, UNKNOWN_ID) for texts in both)
        return self.train(known, judged, (self._task(known), self._task(judged)), stopping, slot)

    def distil_masked(
        self, holes: RandomMasks, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """What the base model says, from texts with holes."""
        texts, both = prepare_masked_training(
            self.subject, holes, (self.context.train, self.context.dev)
        )
        return self.train(*texts, both, stopping, slot)

    def _task(self, texts: Sequence[Encoded]) -> TaskObjective:
        return TaskObjective.of(texts, self.subject)

    def _learn(
        self, objective_for: ObjectiveFactory, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """Whatever is striven for, on the room's texts."""
        known, judged = self.context.train, self.context.dev
        both = objective_for(known), objective_for(judged)
        return self.train(known.encoded, judged.encoded, both, stopping, slot)

    def train(
        self,
        known: Sequence[Encoded],
        judged: Sequence[Encoded],
        objectives: tuple[Objective, Objective],
        stopping: EarlyStopping,
        slot: CheckpointSlot,
    ) -> TrainedVariant:
        """On some texts, judged on others, each with what counts there."""
        require_every_class(known, self.subject.labels)
        course = RecurrentTrainer(self.subject, self.recipe, known, judged, *objectives)
        state = course.train(stopping, kept=slot.kept, progress=slot.progress)
        record: dict[str, Any] = {**summarise_training(state, stopping), "torch": torch.__version__}
        self.subject.history.update(record)
        return TrainedVariant(self.subject, record)
