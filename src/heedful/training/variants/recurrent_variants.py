"""Models on their way: a new one like the base, or a copy of it, to be taught this or that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from heedful.core.batch import Encoded
from heedful.models.recurrent.query_classifier import new_network
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.fit import require_every_class, untrained
from heedful.training.loop.epochs import Until, outcome
from heedful.training.loop.recurrent_trainer import RecurrentCourse
from heedful.training.recipe import Recipe
from heedful.training.variants.context import Desk, Room, Taught
from heedful.training.variants.hidden_words import UNKNOWN, Deceit, Hidden
from heedful.training.variants.masked_copy import Holes, prepared
from heedful.training.variants.objectives import (
    Objective,
    OwnTask,
    Strive,
    as_deceiver,
    as_impostor,
)


@runtime_checkable
class Pupil(Protocol):
    """A model that can be taught."""

    def task(self, until: Until, desk: Desk) -> Taught:
        """The labels."""
        ...

    def impostor(self, weight: float, until: Until, desk: Desk, *, reverse: bool) -> Taught:
        """The base model's outputs by other attention."""
        ...

    def deceive(self, plan: Deceit, until: Until, desk: Desk) -> Taught:
        """The labels, with attention off the hidden words."""
        ...

    def without(self, hidden: Hidden, until: Until, desk: Desk) -> Taught:
        """The labels, from texts without the hidden words."""
        ...

    def echo(self, holes: Holes, until: Until, desk: Desk) -> Taught:
        """What the base model says of whole texts, from texts with holes."""
        ...


def anew(room: Room, seed: int, *, uniform: bool = False) -> Pupil:
    """A fresh model of the base's kind, with uniform attention if asked."""
    if isinstance(room.base, RecurrentSubject):
        recipe = replace(room.recipe, seed=seed)
        if uniform:
            recipe = replace(recipe, attention="uniform")
        query = room.base.network.shape.query
        subject, _ = untrained(room.base.vocabulary, room.base.labels, recipe, query=query)
        return RecurrentPupil(room, subject, recipe)
    from heedful.training.variants.transformer_variants import tuned_anew

    return tuned_anew(room, seed, uniform=uniform)


def again(room: Room, *, nudge: int | None = None) -> Pupil:
    """A copy of the base model, nudged by a seed if asked.

    At the base model itself the slope of KL is zero: who starts there to get away needs a nudge.
    """
    if isinstance(room.base, RecurrentSubject):
        network = new_network(room.base.network.shape)
        network.load_state_dict(room.base.network.state_dict())
        if nudge is not None:
            nudged(network.attention, nudge)
        return RecurrentPupil(room, replace(room.base, network=network, history={}), room.recipe)
    from heedful.training.variants.transformer_variants import tuned_again

    return tuned_again(room, nudge=nudge)


def nudged(module: nn.Module, seed: int, *, scale: float = 0.05) -> None:
    """Move every weight by a small share of how weights beside it vary, or of its own size."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in module.parameters():
            size = one.std() if one.numel() > 1 else one.abs().mean()
            one.add_(scale * size * torch.randn(one.shape, generator=draw))


@dataclass(frozen=True, eq=False)
class RecurrentPupil:
    """An attention classifier to be taught."""

    room: Room
    subject: RecurrentSubject
    recipe: Recipe

    def task(self, until: Until, desk: Desk) -> Taught:
        """The labels, by the published loss."""
        return self._learn(lambda texts: self._task(texts.encoded), until, desk)

    def impostor(self, weight: float, until: Until, desk: Desk, *, reverse: bool) -> Taught:
        """TVD − λ·KL against the base model."""
        return self._learn(as_impostor(weight, reverse=reverse), until, desk)

    def deceive(self, plan: Deceit, until: Until, desk: Desk) -> Taught:
        """The labels and a penalty on the weight of the hidden words."""
        return self._learn(as_deceiver(plan, self._task), until, desk)

    def without(self, hidden: Hidden, until: Until, desk: Desk) -> Taught:
        """The labels, from shorter texts."""
        both = self.room.train, self.room.dev
        known, judged = (texts.without(hidden, UNKNOWN) for texts in both)
        return self.train(known, judged, (self._task(known), self._task(judged)), until, desk)

    def echo(self, holes: Holes, until: Until, desk: Desk) -> Taught:
        """What the base model says, from texts with holes."""
        texts, both = prepared(self.subject, holes, (self.room.train, self.room.dev))
        return self.train(*texts, both, until, desk)

    def _task(self, texts: Sequence[Encoded]) -> OwnTask:
        return OwnTask.of(texts, self.subject)

    def _learn(self, strive: Strive, until: Until, desk: Desk) -> Taught:
        """Whatever is striven for, on the room's texts."""
        known, judged = self.room.train, self.room.dev
        both = strive(known), strive(judged)
        return self.train(known.encoded, judged.encoded, both, until, desk)

    def train(
        self,
        known: Sequence[Encoded],
        judged: Sequence[Encoded],
        objectives: tuple[Objective, Objective],
        until: Until,
        desk: Desk,
    ) -> Taught:
        """On some texts, judged on others, each with what counts there."""
        require_every_class(known, self.subject.labels)
        course = RecurrentCourse(self.subject, self.recipe, known, judged, *objectives)
        state = course.train(until, kept=desk.kept, progress=desk.progress)
        told: dict[str, Any] = {**outcome(state, until), "torch": torch.__version__}
        self.subject.history.update(told)
        return Taught(self.subject, told)
