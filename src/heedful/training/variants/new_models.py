"""The models that training starts from: a new one of the base model's kind, or a copy of it."""

from dataclasses import replace

import torch
from torch import nn

from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.fit import init_recurrent_subject
from heedful.training.loop.recurrent_trainable import RecurrentTrainable
from heedful.training.loop.trainer import Trainable
from heedful.training.variants.context import TrainingContext
from heedful.training.variants.hidden_words import HiddenWords


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
    from heedful.training.variants.transformer_variants import fresh_transformer

    return fresh_transformer(context, seed, uniform=uniform)


def copied_model(context: TrainingContext, *, perturb_seed: int | None = None) -> Trainable:
    """A copy of the base model, perturbed by a seed on request.

    At the base model itself the gradient of KL is zero, so an adversary must start next to it.
    """
    if isinstance(context.base, RecurrentSubject):
        network = AttentionClassifier(context.base.network.shape)
        network.load_state_dict(context.base.network.state_dict())
        if perturb_seed is not None:
            perturb_weights(network.attention, perturb_seed)
        subject = replace(context.base, network=network, history={})
        return RecurrentTrainable(subject, context.recipe)
    from heedful.training.variants.transformer_variants import copied_transformer

    return copied_transformer(context, perturb_seed=perturb_seed)


def with_blocked_words(
    trainable: Trainable, context: TrainingContext, hidden: HiddenWords
) -> Trainable:
    """Block hidden words in all texts that a transformer reads; other models stay as they are."""
    if isinstance(trainable, RecurrentTrainable):
        return trainable
    from heedful.training.variants.transformer_variants import block_trainable

    return block_trainable(trainable, context, hidden)


def perturb_weights(module: nn.Module, seed: int, *, scale: float = 0.05) -> None:
    """Add noise of `scale` times the standard deviation of each weight tensor (or its size)."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in module.parameters():
            size = one.std() if one.numel() > 1 else one.abs().mean()
            one.add_(scale * size * torch.randn(one.shape, generator=draw))
