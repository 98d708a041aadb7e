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
from heedful.models.attention_access.edits import RowPlacement
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.protocols import Subject
from heedful.models.transformer.from_pretrained import from_model, load_pretrained
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.distributions import uniform_weights
from heedful.training.fit import require_every_class
from heedful.training.loop.checkpoint import TrainingState
from heedful.training.loop.dev_scores import require_dev
from heedful.training.loop.epochs import EarlyStopping, run_epochs, summarise_training
from heedful.training.loop.transformer_trainer import (
    FineTuning,
    TransformerTrainer,
    build_transformer_optimiser,
)
from heedful.training.variants.context import (
    CheckpointSlot,
    EncodedTexts,
    TrainedVariant,
    TrainingContext,
)
from heedful.training.variants.hidden_words import DeceptionPenalty, HiddenWords, placeholder_id
from heedful.training.variants.masked_copy import RandomMasks, prepare_masked_training
from heedful.training.variants.objectives import (
    Objective,
    ObjectiveFactory,
    TaskObjective,
    adversary_objective,
    deception_objective,
)
from heedful.training.variants.recurrent_variants import perturb_weights

SubjectType = TypeVar("SubjectType", bound=TransformerSubject)
HiddenMarks = Mapping[int, Bool[Tensor, "_"]]  # by the number of the text


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformTransformer(TransformerSubject):
    """A transformer whose rows under audit are held at equal weights on the words they may see."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass under uniform attention."""
        with torch.no_grad():
            own = super().forward(batch, embedded).rows
        assert own is not None  # noqa: S101 - a transformer's passes have rows
        even = uniform_weights(batch.mask[:, None] & (own > 0), dtype=own.dtype)
        places = RowPlacement(
            batch, lambda call: self.is_audited(call, batch), self.scope, self.position(batch)
        )
        return self.forward_with_edit(batch, places.edit(even), embedded)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedTransformer(TransformerSubject):
    """A transformer in which hidden words reach the output through the pooled token's row alone.

    In every layer hidden and other tokens attend to their own kind only, nobody attends to the
    pooled token, and that attends to all (Pruthi et al., 2020): what the row does not take up
    cannot come by another way.
    """

    marks: HiddenMarks

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass with attention between the two kinds cut."""
        pooled = self.position(batch)
        if pooled is None:
            raise NotApplicable("it pools all tokens: there is no row that all must pass through")
        allowed = _allowed_attention(self._hidden(batch), pooled, batch.present)

        def cut(call: AttentionCall) -> Tensor:
            left = call.weights * allowed[:, None].to(call.weights)
            return left / left.sum(-1, keepdim=True).clamp(min=torch.finfo(left.dtype).tiny)

        return self.forward_with_edit(batch, cut, embedded)

    def _hidden(self, batch: Batch) -> Bool[Tensor, "B T"]:
        hidden = torch.zeros_like(batch.present)
        hidden[batch.present] = torch.cat([self.marks[one] for one in batch.instances])
        return hidden


def _allowed_attention(
    hidden: Bool[Tensor, "B T"], pooled: Tensor, present: Bool[Tensor, "B T"]
) -> Bool[Tensor, "B T T"]:
    """Which token may look at which."""
    same = hidden[:, :, None] == hidden[:, None, :]
    top = torch.zeros_like(present)
    top[torch.arange(len(top)), pooled] = True
    return (same & ~top[:, None, :]) | top[:, :, None]


def convert_subject(
    subject: TransformerSubject, kind: type[SubjectType], **more: Any
) -> SubjectType:
    """The same model as a subject of another kind."""
    own = {one.name: getattr(subject, one.name) for one in fields(TransformerSubject)}
    return kind(**own, **more)


def block_hidden_words(
    subject: Subject, texts: EncodedTexts, hidden: HiddenWords
) -> BlockedTransformer:
    """A model that reads these texts, and only these, with their hidden words blocked."""
    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(f"{subject.family} has one attention; there is nothing to block")
    pairs = zip(texts.encoded, texts.hidden(hidden), strict=True)
    return convert_subject(
        subject, BlockedTransformer, marks={one.index: marks for one, marks in pairs}
    )


def build_finetuning(context: TrainingContext, seed: int | None = None) -> FineTuning:
    """The recipe by which the base came about, with another seed."""
    try:
        recipe = FineTuning(**dict(context.tuning))
    except (TypeError, ConfigError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error
    return recipe if seed is None else replace(recipe, seed=seed)


def fresh_transformer(
    context: TrainingContext, seed: int, *, uniform: bool
) -> "TransformerTrainable":
    """The encoder with a fresh head."""
    recipe, base = build_finetuning(context, seed), _require_transformer(context)
    subject, _ = new_classifier(
        recipe.encoder, base.labels, seed=seed, max_tokens=recipe.max_tokens
    )
    own, new = (one.subword_tokenizer.tokenizer.get_vocab() for one in (base, subject))
    if own != new:
        raise NotApplicable(f"{recipe.encoder} reads other pieces of words than the model does")
    subject = replace(subject, scope=base.scope)
    return TransformerTrainable(
        context, convert_subject(subject, UniformTransformer) if uniform else subject, recipe
    )


def copied_transformer(
    context: TrainingContext, *, perturb_seed: int | None
) -> "TransformerTrainable":
    """A copy of the base, in the type that it is tuned in, nudged by a seed if asked."""
    base = _require_transformer(context)
    model = copy.deepcopy(base.model).float()
    if perturb_seed is not None:
        perturb_weights(
            model, perturb_seed, scale=0.001
        )  # of every weight: which make attention is not known
    subject = from_model(
        model, base.subword_tokenizer.tokenizer, scope=base.scope, max_length=base.max_length
    )
    return TransformerTrainable(context, subject, build_finetuning(context))


@dataclass(frozen=True, eq=False)
class TransformerTrainable:
    """A transformer to be taught."""

    context: TrainingContext
    subject: TransformerSubject
    recipe: FineTuning

    def task(self, stopping: EarlyStopping, slot: CheckpointSlot) -> TrainedVariant:  # noqa: ARG002 - the recipe has its epochs
        """The labels."""
        return self._learn(lambda texts: self._task(texts.encoded), slot)

    def train_adversary(
        self, weight: float, stopping: EarlyStopping, slot: CheckpointSlot, *, reverse: bool
    ) -> TrainedVariant:
        """TVD − λ·KL against the base model."""
        return self._learn(adversary_objective(weight, reverse=reverse), slot)

    def train_deceiver(
        self, plan: DeceptionPenalty, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels and a penalty on the weight of the hidden words."""
        blocking = plan.hidden if plan.blocked else None
        return self._learn(deception_objective(plan, self._task), slot, blocking)

    def without(
        self, hidden: HiddenWords, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """The labels, from shorter texts."""
        blank = placeholder_id(self.subject)
        known, judged = (
            texts.without(hidden, blank) for texts in (self.context.train, self.context.dev)
        )
        both = self._task(known), self._task(judged)
        return self._train((self.subject, self.subject), (known, judged), both, slot)

    def distil_masked(
        self, holes: RandomMasks, stopping: EarlyStopping, slot: CheckpointSlot
    ) -> TrainedVariant:
        """What the base model says, from texts with holes."""
        texts, both = prepare_masked_training(
            self.subject, holes, (self.context.train, self.context.dev)
        )
        return self._train((self.subject, self.subject), texts, both, slot)

    def _task(self, encoded: Sequence[Encoded]) -> TaskObjective:
        return TaskObjective([one.label for one in encoded], CrossEntropyLoss())

    def _learn(
        self,
        objective_for: ObjectiveFactory,
        slot: CheckpointSlot,
        hidden: HiddenWords | None = None,
    ) -> TrainedVariant:
        both = self.context.train, self.context.dev
        readers = self._reader(both[0], hidden), self._reader(both[1], hidden)
        texts = both[0].encoded, both[1].encoded
        return self._train(readers, texts, (objective_for(both[0]), objective_for(both[1])), slot)

    def _reader(self, texts: EncodedTexts, hidden: HiddenWords | None) -> TransformerSubject:
        return self.subject if hidden is None else block_hidden_words(self.subject, texts, hidden)

    def _train(
        self,
        readers: tuple[TransformerSubject, TransformerSubject],
        texts: tuple[Sequence[Encoded], Sequence[Encoded]],
        objectives: tuple[Objective, Objective],
        slot: CheckpointSlot,
    ) -> TrainedVariant:
        model, stopping = self.subject.model, EarlyStopping(self.recipe.epochs)
        require_every_class(texts[0], self.subject.labels)
        require_dev(texts[1], len(self.subject.labels))
        model.requires_grad_(True)
        state = TrainingState(model, build_transformer_optimiser(model, self.recipe))
        course = TransformerTrainer(
            readers[0], self.recipe, *texts, *objectives, dev_subject=readers[1]
        )
        run_epochs(course, state, stopping, kept=slot.kept, progress=slot.progress)
        model.load_state_dict(state.best)
        model.eval().requires_grad_(False)
        record: dict[str, Any] = {**summarise_training(state, stopping), "plateau": None}
        return TrainedVariant(self.subject, {**record, "torch": torch.__version__})


def save_finetuned(subject: Subject, place: Path) -> None:
    """Keep a tuned transformer."""
    assert isinstance(subject, TransformerSubject)  # noqa: S101 - who else would be tuned
    save_classifier(subject, place, extra_files={})


def load_finetuned(place: Path, variant: Mapping[str, Any], base: Subject) -> TransformerSubject:
    """Read one again, to be looked at as the base is."""
    assert isinstance(base, TransformerSubject)  # noqa: S101 - its like was tuned
    dtype = str(base.model.dtype).removeprefix("torch.")
    subject = load_pretrained(place, dtype=dtype, scope=base.scope)
    return (
        convert_subject(subject, UniformTransformer)
        if variant.get("attention") == "uniform"
        else subject
    )


def _require_transformer(context: TrainingContext) -> TransformerSubject:
    if not isinstance(context.base, TransformerSubject):
        raise NotApplicable(f"{context.base.family} does not say how to train another one like it")
    return context.base
