"""Transformers made anew: tuned from their encoder again, or from themselves, to strive for more.

Tuning follows the recipe by which the model came about, all of its epochs. Where attention is
looked at it goes without dropout, and so does the tuning it is compared with.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import CrossEntropyLoss

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Forward
from heedful.models.attention_access.edits import Places
from heedful.models.attention_access.recorder import Call
from heedful.models.protocols import Subject
from heedful.models.transformer.from_pretrained import from_model, load_pretrained
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.distributions import uniform
from heedful.training.fit import require_every_class
from heedful.training.loop.checkpoint import State
from heedful.training.loop.dev_scores import require_dev
from heedful.training.loop.epochs import Until, outcome, run_epochs
from heedful.training.loop.transformer_trainer import FineTuning, TunedCourse, optimiser_for
from heedful.training.variants.context import Desk, Room, Taught, Texts
from heedful.training.variants.hidden_words import Deceit, Hidden, blank_id
from heedful.training.variants.masked_copy import Holes, prepared
from heedful.training.variants.objectives import (
    Objective,
    OwnTask,
    Strive,
    as_deceiver,
    as_impostor,
)
from heedful.training.variants.recurrent_variants import nudged

Kind = TypeVar("Kind", bound=TransformerSubject)
Marks = Mapping[int, Bool[Tensor, "_"]]  # by the number of the text


@dataclass(frozen=True, eq=False, kw_only=True)
class Evened(TransformerSubject):
    """A transformer whose rows under audit are held at equal weights on the words they may see."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass under uniform attention."""
        with torch.no_grad():
            own = super().forward(batch, embedded).rows
        assert own is not None  # noqa: S101 - a transformer's passes have rows
        even = uniform(batch.mask[:, None] & (own > 0), dtype=own.dtype)
        places = Places(
            batch, lambda call: self.audited(call, batch), self.scope, self.position(batch)
        )
        return self.forward_under(batch, places.edit(even), embedded)


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocked(TransformerSubject):
    """A transformer in which hidden words reach the output through the pooled token's row alone.

    In every layer hidden and other tokens attend to their own kind only, nobody attends to the
    pooled token, and that attends to all (Pruthi et al., 2020): what the row does not take up
    cannot come by another way.
    """

    marks: Marks

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass with attention between the two kinds cut."""
        pooled = self.position(batch)
        if pooled is None:
            raise NotApplicable("it pools all tokens: there is no row that all must pass through")
        allowed = _allowed(self._hidden(batch), pooled, batch.present)

        def cut(call: Call) -> Tensor:
            left = call.weights * allowed[:, None].to(call.weights)
            return left / left.sum(-1, keepdim=True).clamp(min=torch.finfo(left.dtype).tiny)

        return self.forward_under(batch, cut, embedded)

    def _hidden(self, batch: Batch) -> Bool[Tensor, "B T"]:
        hidden = torch.zeros_like(batch.present)
        hidden[batch.present] = torch.cat([self.marks[one] for one in batch.instances])
        return hidden


def _allowed(
    hidden: Bool[Tensor, "B T"], pooled: Tensor, present: Bool[Tensor, "B T"]
) -> Bool[Tensor, "B T T"]:
    """Which token may look at which."""
    same = hidden[:, :, None] == hidden[:, None, :]
    top = torch.zeros_like(present)
    top[torch.arange(len(top)), pooled] = True
    return (same & ~top[:, None, :]) | top[:, :, None]


def of_kind(subject: TransformerSubject, kind: type[Kind], **more: Any) -> Kind:
    """The same model as a subject of another kind."""
    own = {one.name: getattr(subject, one.name) for one in fields(TransformerSubject)}
    return kind(**own, **more)


def blocked(subject: Subject, texts: Texts, hidden: Hidden) -> Blocked:
    """A model that reads these texts, and only these, with their hidden words blocked."""
    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(f"{subject.family} has one attention; there is nothing to block")
    pairs = zip(texts.encoded, texts.hidden(hidden), strict=True)
    return of_kind(subject, Blocked, marks={one.index: marks for one, marks in pairs})


def recipe_of_tuning(room: Room, seed: int | None = None) -> FineTuning:
    """The recipe by which the base came about, with another seed."""
    try:
        recipe = FineTuning(**dict(room.tuning))
    except (TypeError, ConfigError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error
    return recipe if seed is None else replace(recipe, seed=seed)


def tuned_anew(room: Room, seed: int, *, uniform: bool) -> "TunedPupil":
    """The encoder with a fresh head."""
    recipe, base = recipe_of_tuning(room, seed), _transformer(room)
    subject, _ = new_classifier(
        recipe.encoder, base.labels, seed=seed, max_tokens=recipe.max_tokens
    )
    own, new = (one.pieces.tokenizer.get_vocab() for one in (base, subject))
    if own != new:
        raise NotApplicable(f"{recipe.encoder} reads other pieces of words than the model does")
    subject = replace(subject, scope=base.scope)
    return TunedPupil(room, of_kind(subject, Evened) if uniform else subject, recipe)


def tuned_again(room: Room, *, nudge: int | None) -> "TunedPupil":
    """A copy of the base, in the type that it is tuned in, nudged by a seed if asked."""
    base = _transformer(room)
    model = copy.deepcopy(base.model).float()
    if nudge is not None:
        nudged(model, nudge, scale=0.001)  # of every weight: which make attention is not known
    subject = from_model(model, base.pieces.tokenizer, scope=base.scope, max_length=base.max_length)
    return TunedPupil(room, subject, recipe_of_tuning(room))


@dataclass(frozen=True, eq=False)
class TunedPupil:
    """A transformer to be taught."""

    room: Room
    subject: TransformerSubject
    recipe: FineTuning

    def task(self, until: Until, desk: Desk) -> Taught:  # noqa: ARG002 - the recipe has its epochs
        """The labels."""
        return self._learn(lambda texts: self._task(texts.encoded), desk)

    def impostor(self, weight: float, until: Until, desk: Desk, *, reverse: bool) -> Taught:  # noqa: ARG002
        """TVD − λ·KL against the base model."""
        return self._learn(as_impostor(weight, reverse=reverse), desk)

    def deceive(self, plan: Deceit, until: Until, desk: Desk) -> Taught:  # noqa: ARG002
        """The labels and a penalty on the weight of the hidden words."""
        blocking = plan.hidden if plan.blocked else None
        return self._learn(as_deceiver(plan, self._task), desk, blocking)

    def without(self, hidden: Hidden, until: Until, desk: Desk) -> Taught:  # noqa: ARG002
        """The labels, from shorter texts."""
        blank = blank_id(self.subject)
        known, judged = (texts.without(hidden, blank) for texts in (self.room.train, self.room.dev))
        both = self._task(known), self._task(judged)
        return self._train((self.subject, self.subject), (known, judged), both, desk)

    def echo(self, holes: Holes, until: Until, desk: Desk) -> Taught:  # noqa: ARG002
        """What the base model says, from texts with holes."""
        texts, both = prepared(self.subject, holes, (self.room.train, self.room.dev))
        return self._train((self.subject, self.subject), texts, both, desk)

    def _task(self, encoded: Sequence[Encoded]) -> OwnTask:
        return OwnTask([one.label for one in encoded], CrossEntropyLoss())

    def _learn(self, strive: Strive, desk: Desk, hidden: Hidden | None = None) -> Taught:
        both = self.room.train, self.room.dev
        readers = self._reader(both[0], hidden), self._reader(both[1], hidden)
        texts = both[0].encoded, both[1].encoded
        return self._train(readers, texts, (strive(both[0]), strive(both[1])), desk)

    def _reader(self, texts: Texts, hidden: Hidden | None) -> TransformerSubject:
        return self.subject if hidden is None else blocked(self.subject, texts, hidden)

    def _train(
        self,
        readers: tuple[TransformerSubject, TransformerSubject],
        texts: tuple[Sequence[Encoded], Sequence[Encoded]],
        objectives: tuple[Objective, Objective],
        desk: Desk,
    ) -> Taught:
        model, until = self.subject.model, Until(self.recipe.epochs)
        require_every_class(texts[0], self.subject.labels)
        require_dev(texts[1], len(self.subject.labels))
        model.requires_grad_(True)
        state = State(model, optimiser_for(model, self.recipe))
        course = TunedCourse(readers[0], self.recipe, *texts, *objectives, judge_by=readers[1])
        run_epochs(course, state, until, kept=desk.kept, progress=desk.progress)
        model.load_state_dict(state.best)
        model.eval().requires_grad_(False)
        told: dict[str, Any] = {**outcome(state, until), "plateau": None}
        return Taught(self.subject, {**told, "torch": torch.__version__})


def save_tuned(subject: Subject, place: Path) -> None:
    """Keep a tuned transformer."""
    assert isinstance(subject, TransformerSubject)  # noqa: S101 - who else would be tuned
    save_classifier(subject, place, beside={})


def load_tuned(place: Path, lesson: Mapping[str, Any], base: Subject) -> TransformerSubject:
    """Read one again, to be looked at as the base is."""
    assert isinstance(base, TransformerSubject)  # noqa: S101 - its like was tuned
    dtype = str(base.model.dtype).removeprefix("torch.")
    subject = load_pretrained(place, dtype=dtype, scope=base.scope)
    return of_kind(subject, Evened) if lesson.get("attention") == "uniform" else subject


def _transformer(room: Room) -> TransformerSubject:
    if not isinstance(room.base, TransformerSubject):
        raise NotApplicable(f"{room.base.family} does not say how to train another one like it")
    return room.base
