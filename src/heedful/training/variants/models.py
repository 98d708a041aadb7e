"""The models that training starts from: a new one of the base model's kind, or a copy of it.

Transformers are fine-tuned again, by the recipe of the base model and for all of its epochs.
This runs without dropout, because objectives see the attention, and so does every variant that is
compared with another.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import ConfigError, HeedfulError, NotApplicable
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Forward
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.protocols import Subject
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import WordTokenizer
from heedful.models.transformer.from_pretrained import from_model
from heedful.models.transformer.new_classifier import new_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.distributions import uniform_weights
from heedful.training.fit import init_recurrent_subject
from heedful.training.loop.epochs import Checkpoint
from heedful.training.loop.trainables import RecurrentTrainable, TransformerTrainable
from heedful.training.loop.trainer import Trainable
from heedful.training.recipe import FineTuning, Recipe
from heedful.training.variants.texts import EncodedTexts, HiddenWords

SubjectType = TypeVar("SubjectType", bound=TransformerSubject)


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """Everything that the training of a variant may use.

    `trained` returns the subject of another variant; `tuning` is the fine-tuning recipe of the base
    model if it is a transformer; `checkpoint` is where an interrupted training resumes from.
    """

    base: Subject
    train: EncodedTexts
    dev: EncodedTexts
    trained: Callable[[Any], Subject]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    progress: Progress = no_progress

    @property
    def splits(self) -> tuple[EncodedTexts, EncodedTexts]:
        """Training and dev texts."""
        return self.train, self.dev

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of the base model."""
        return read_recipe(self.base)


def read_recipe(base: Subject) -> Recipe:
    """The recipe in the history of an attention classifier."""
    if not isinstance(base, RecurrentSubject):
        raise NotApplicable(f"{base.family} has no recipe to retrain it by")
    record: Mapping[str, Any] = base.history.get("recipe", {})
    if not record:
        raise NotApplicable("the model has no record of how it was trained")
    try:
        given = {**record, "tokenizer": WordTokenizer(**record["tokenizer"])}
        return Recipe(**given)
    except (TypeError, KeyError, HeedfulError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error


def read_finetuning(context: TrainingContext) -> FineTuning:
    """The recipe of a fine-tuned base model."""
    try:
        return FineTuning(**dict(context.tuning))
    except (TypeError, ConfigError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error


def fresh_model(context: TrainingContext, seed: int, *, uniform: bool = False) -> Trainable:
    """A new model of the base model's kind, with uniform attention on request."""
    base = context.base
    if isinstance(base, RecurrentSubject):
        recipe = replace(context.recipe, seed=seed)
        if uniform:
            recipe = replace(recipe, attention="uniform")
        query = base.network.shape.query
        subject, _ = init_recurrent_subject(base.vocabulary, base.labels, recipe, query=query)
        return RecurrentTrainable(subject, recipe)
    base, tuning = _require_transformer(base), replace(read_finetuning(context), seed=seed)
    encoder, tokens = tuning.encoder, tuning.max_tokens
    fresh, _ = new_classifier(encoder, base.labels, seed=seed, max_tokens=tokens)
    own, new = (one.subword_tokenizer.tokenizer.get_vocab() for one in (base, fresh))
    if own != new:
        raise NotApplicable(f"{encoder} has another vocabulary than the model")
    fresh = replace(fresh, scope=base.scope)
    fresh = convert_subject(fresh, UniformTransformer) if uniform else fresh
    return TransformerTrainable(fresh, tuning, readers=(fresh, fresh))


def copied_model(context: TrainingContext, *, perturb_seed: int | None = None) -> Trainable:
    """A copy of the base model, of a transformer in float32, perturbed by a seed on request.

    At the base model itself the gradient of KL is zero, so an adversary must start next to it.
    """
    base = context.base
    if isinstance(base, RecurrentSubject):
        network = AttentionClassifier(base.network.shape)
        network.load_state_dict(base.network.state_dict())
        if perturb_seed is not None:
            perturb_weights(network.attention, perturb_seed)
        return RecurrentTrainable(replace(base, network=network, history={}), context.recipe)
    base = _require_transformer(base)
    model = copy.deepcopy(base.model).float()
    if perturb_seed is not None:  # all weights: which ones compute attention is not known
        perturb_weights(model, perturb_seed, scale=0.001)
    tokenizer = base.subword_tokenizer.tokenizer
    subject = from_model(model, tokenizer, scope=base.scope, max_length=base.max_length)
    return TransformerTrainable(subject, read_finetuning(context), readers=(subject, subject))


def _require_transformer(base: Subject) -> TransformerSubject:
    if not isinstance(base, TransformerSubject):
        raise NotApplicable(f"{base.family} has no recipe to retrain it by")
    return base


def perturb_weights(module: nn.Module, seed: int, *, scale: float = 0.05) -> None:
    """Add noise of `scale` times the standard deviation of each weight tensor (or its size)."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in module.parameters():
            size = one.std() if one.numel() > 1 else one.abs().mean()
            one.add_(scale * size * torch.randn(one.shape, generator=draw))


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

    marks: Mapping[int, Bool[Tensor, "_"]]  # of hidden words, by the index of the text

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Forward:
        """A pass without attention between hidden and other tokens."""
        pooled = self.position(batch)
        if pooled is None:
            raise NotApplicable("it pools all tokens: no single row carries all information")
        hidden = torch.zeros_like(batch.present)
        hidden[batch.present] = torch.cat([self.marks[one] for one in batch.instances])
        same = hidden[:, :, None] == hidden[:, None, :]
        is_pooled = torch.arange(hidden.shape[1]) == pooled[:, None]
        allowed = (same & ~is_pooled[:, None, :]) | is_pooled[:, :, None]

        def cut(call: AttentionCall) -> Tensor:
            kept = call.weights * allowed[:, None].to(call.weights)
            return kept / kept.sum(-1, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)

        return self.forward_with_edit(batch, cut, embedded)


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


def with_blocked_words(
    trainable: Trainable, context: TrainingContext, hidden: HiddenWords
) -> Trainable:
    """Block hidden words in all texts that a transformer reads; other models stay as they are."""
    if not isinstance(trainable, TransformerTrainable):
        return trainable
    train, dev = (block_hidden_words(trainable.subject, one, hidden) for one in context.splits)
    return replace(trainable, readers=(train, dev))
