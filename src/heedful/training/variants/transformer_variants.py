"""Transformer variants: fine-tuned again from the encoder or from the base model.

Fine-tuning follows the recipe of the base model for all of its epochs. It runs without dropout,
because objectives see the attention, and so does every variant that is compared with another.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Forward
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.protocols import Subject
from heedful.models.transformer.from_pretrained import from_model, load_pretrained
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.distributions import uniform_weights
from heedful.training.loop.trainer import Trainable
from heedful.training.loop.transformer_trainable import TransformerTrainable
from heedful.training.recipe import FineTuning
from heedful.training.variants.context import EncodedTexts, TrainingContext
from heedful.training.variants.hidden_words import HiddenWords
from heedful.training.variants.new_models import perturb_weights

SubjectType = TypeVar("SubjectType", bound=TransformerSubject)
HiddenMarks = Mapping[int, Bool[Tensor, "_"]]  # by the index of the text


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformTransformer(TransformerSubject):
    """A transformer whose audited attention rows are uniform over the words they may attend to."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass under uniform attention."""
        with torch.no_grad():
            own = super().forward(batch, embedded).rows
        assert own is not None  # noqa: S101 - a transformer's passes have rows
        uniform = uniform_weights(batch.mask[:, None] & (own > 0), dtype=own.dtype)
        placement = self.audited_rows(batch)
        return self.forward_with_edit(batch, placement.edit(uniform), embedded)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedTransformer(TransformerSubject):
    """A transformer in which hidden words affect the output only through the pooled token's row.

    In every layer hidden tokens attend to hidden tokens and other tokens to other tokens, no token
    attends to the pooled token, and the pooled token attends to all (Pruthi et al., 2020).
    """

    marks: HiddenMarks

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass without attention between hidden and other tokens."""
        pooled = self.position(batch)
        if pooled is None:
            raise NotApplicable("it pools all tokens: no single row carries all information")
        allowed = _allowed_attention(self._hidden(batch), pooled, batch.present)

        def cut(call: AttentionCall) -> Tensor:
            kept = call.weights * allowed[:, None].to(call.weights)
            return kept / kept.sum(-1, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)

        return self.forward_with_edit(batch, cut, embedded)

    def _hidden(self, batch: Batch) -> Bool[Tensor, "B T"]:
        hidden = torch.zeros_like(batch.present)
        hidden[batch.present] = torch.cat([self.marks[one] for one in batch.instances])
        return hidden


def _allowed_attention(
    hidden: Bool[Tensor, "B T"], pooled: Tensor, present: Bool[Tensor, "B T"]
) -> Bool[Tensor, "B T T"]:
    """Which token may attend to which."""
    same = hidden[:, :, None] == hidden[:, None, :]
    is_pooled = torch.zeros_like(present)
    is_pooled[torch.arange(len(is_pooled)), pooled] = True
    return (same & ~is_pooled[:, None, :]) | is_pooled[:, :, None]


def convert_subject(
    subject: TransformerSubject, kind: type[SubjectType], **more: Any
) -> SubjectType:
    """The same model as a subject of another class."""
    own = {one.name: getattr(subject, one.name) for one in fields(TransformerSubject)}
    return kind(**own, **more)


def block_hidden_words(
    subject: Subject, texts: EncodedTexts, hidden: HiddenWords
) -> BlockedTransformer:
    """A subject that reads these texts, and only these, with their hidden words blocked."""
    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(f"{subject.family} has one attention layer; there is nothing to block")
    pairs = zip(texts.encoded, texts.hidden(hidden), strict=True)
    return convert_subject(
        subject, BlockedTransformer, marks={one.index: marks for one, marks in pairs}
    )


def block_trainable(
    trainable: Trainable, context: TrainingContext, hidden: HiddenWords
) -> TransformerTrainable:
    """The same model in training, reading all texts with their hidden words blocked."""
    assert isinstance(trainable, TransformerTrainable)  # noqa: S101 - other kinds are not blocked
    train, dev = (block_hidden_words(trainable.subject, one, hidden) for one in context.splits)
    return replace(trainable, readers=(train, dev))


def build_finetuning(context: TrainingContext, seed: int | None = None) -> FineTuning:
    """The recipe of the base model, with another seed on request."""
    try:
        recipe = FineTuning(**dict(context.tuning))
    except (TypeError, ConfigError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error
    return recipe if seed is None else replace(recipe, seed=seed)


def fresh_transformer(
    context: TrainingContext, seed: int, *, uniform: bool
) -> TransformerTrainable:
    """The pretrained encoder with a new classification head."""
    recipe, base = build_finetuning(context, seed), _require_transformer(context)
    subject, _ = new_classifier(
        recipe.encoder, base.labels, seed=seed, max_tokens=recipe.max_tokens
    )
    if (
        base.subword_tokenizer.tokenizer.get_vocab()
        != subject.subword_tokenizer.tokenizer.get_vocab()
    ):
        raise NotApplicable(f"{recipe.encoder} has another vocabulary than the model")
    subject = replace(subject, scope=base.scope)
    subject = convert_subject(subject, UniformTransformer) if uniform else subject
    return TransformerTrainable(subject, recipe, readers=(subject, subject))


def copied_transformer(
    context: TrainingContext, *, perturb_seed: int | None
) -> TransformerTrainable:
    """A float32 copy of the base model, perturbed by a seed on request."""
    base = _require_transformer(context)
    model = copy.deepcopy(base.model).float()
    if perturb_seed is not None:  # all weights: which ones compute attention is not known
        perturb_weights(model, perturb_seed, scale=0.001)
    subject = from_model(
        model, base.subword_tokenizer.tokenizer, scope=base.scope, max_length=base.max_length
    )
    return TransformerTrainable(subject, build_finetuning(context), readers=(subject, subject))


def save_finetuned(subject: Subject, folder: Path) -> None:
    """Save a fine-tuned transformer."""
    assert isinstance(subject, TransformerSubject)  # noqa: S101 - other kinds are saved elsewhere
    save_classifier(subject, folder, extra_files={})


def load_finetuned(folder: Path, variant: Mapping[str, Any], base: Subject) -> TransformerSubject:
    """Load a fine-tuned transformer with the precision and scope of the base model."""
    assert isinstance(base, TransformerSubject)  # noqa: S101 - its variants are transformers
    dtype = str(base.model.dtype).removeprefix("torch.")
    subject = load_pretrained(folder, dtype=dtype, scope=base.scope)
    if variant.get("attention") == "uniform":
        return convert_subject(subject, UniformTransformer)
    return subject


def _require_transformer(context: TrainingContext) -> TransformerSubject:
    if not isinstance(context.base, TransformerSubject):
        raise NotApplicable(f"{context.base.family} has no recipe to retrain it by")
    return context.base
