"""Copies of a model with some groups of weights randomised, from the output down."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from heedful.core.errors import NotApplicable
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject

WeightGroups = Mapping[str, tuple[str, ...]]
"""The names of the weights in each group; the group nearest to the output comes first."""
HEAD, EMBEDDINGS = "head", "embeddings"


def group_recurrent_weights(network: AttentionClassifier) -> WeightGroups:
    """Output layer, attention, encoders, word vectors; parts without weights are left out."""
    parts = ("decoder", "attention", "encoder", "question", "embedding")
    names = [name for name, _ in network.named_parameters()]
    groups = {part: tuple(one for one in names if one.startswith(f"{part}.")) for part in parts}
    return {part: group for part, group in groups.items() if group}


def group_transformer_weights(model: nn.Module, attentions: Sequence[str]) -> WeightGroups:
    """The head, every layer that contains one of the attentions, and the embeddings.

    Embedding tables outside the layers, and weights with "emb" in their name, are embeddings;
    weights between two stacks of layers belong to the layer before them; all others are the head.
    Weights that head and embeddings share belong to the embeddings.
    """
    layers = _name_layers(attentions)
    names = [name for name, _ in model.named_parameters()]
    tables = {name for name, part in model.named_modules() if isinstance(part, nn.Embedding)}
    own = [
        next((layer for layer in layers if name.startswith(f"{layer}.")), None) for name in names
    ]
    last = max((place for place, layer in enumerate(own) if layer), default=-1)
    groups: dict[str, list[str]] = {}
    before = HEAD  # some models name their head first
    for place, name in enumerate(names):
        if layer := own[place]:
            before = group = layers[layer]
        elif name.rpartition(".")[0] in tables or "emb" in name.lower():
            group = EMBEDDINGS
        else:
            group = HEAD if place > last else before
        groups.setdefault(group, []).append(name)
    order = (HEAD, *reversed(layers.values()), EMBEDDINGS)
    return {name: tuple(groups[name]) for name in dict.fromkeys(order) if groups.get(name)}


def _name_layers(attentions: Sequence[str]) -> dict[str, str]:
    """The module of each layer and its display name, in order of the pass; shared ones once."""
    modules = dict.fromkeys(map(_layer_module_name, attentions))
    stacks = dict.fromkeys(name.rpartition(".")[0] for name in modules)
    display: dict[str, str] = {}
    for stack in stacks:
        parts = stack.split(".")
        side = f"{parts[-2]} " if len(stacks) > 1 and len(parts) > 1 else ""
        mine = [name for name in modules if name.rpartition(".")[0] == stack]
        display |= {name: f"{side}layer {place}" for place, name in enumerate(mine, start=1)}
    return display


def _layer_module_name(attention: str) -> str:
    """From the name of an attention to that of its layer, which ends in the first number.

    >>> _layer_module_name("bert.encoder.layer.0.attention.self")
    'bert.encoder.layer.0'
    """
    parts = attention.split(".")
    stack = list(takewhile(lambda part: not part.isdigit(), parts))
    return ".".join(parts[: len(stack) + 1])


_copy_cache: WeakKeyDictionary[Subject, tuple[int, "RandomisableCopy"]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class RandomisableCopy:
    """A copy of a subject, fresh weights for it, and its groups of weights from the output down."""

    copied: Subject
    fresh: Mapping[str, Tensor]
    groups: WeightGroups

    def randomise(self, subject: Subject, group_names: Iterable[str]) -> Subject:
        """The subject with fresh weights in these groups; valid until the next call."""
        chosen = {name for group in group_names for name in self.groups[group]}
        own = dict(_module(subject).named_parameters())
        with torch.no_grad():
            for name, weight in _module(self.copied).named_parameters():
                weight.copy_(self.fresh[name] if name in chosen else own[name])
        # a subject caches results of its weights: return a new one with empty caches
        randomised: Subject = replace(self.copied)  # type: ignore[type-var]
        return randomised


def randomisable_copy(subject: Subject, *, seed: int) -> RandomisableCopy:
    """The copy of a subject, made once; NotApplicable if its initialisation is unknown.

    Draws depend on the seed only; the global random state of torch is neither used nor changed.
    """
    if subject in _copy_cache and _copy_cache[subject][0] == seed:
        return _copy_cache[subject][1]
    number = int(generator(seed, "weights drawn anew").integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        if isinstance(subject, RecurrentSubject):
            copied = _copy_recurrent(subject)
        else:
            copied = _copy_transformer(subject)
    _copy_cache[subject] = seed, copied
    return copied


def _copy_recurrent(subject: RecurrentSubject) -> RandomisableCopy:
    fresh = AttentionClassifier(subject.network.shape)
    network = copy.deepcopy(subject.network).requires_grad_(False)
    return RandomisableCopy(
        replace(subject, network=network),
        _match_parameters(fresh, network),
        group_recurrent_weights(network),
    )


def _copy_transformer(subject: Subject) -> RandomisableCopy:
    from heedful.models.transformer.subject import TransformerSubject

    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(
            f"the initialisation of {subject.family} is unknown, so it cannot be randomised"
        )
    from heedful.models.transformer.from_pretrained import replace_model
    from heedful.models.transformer.quiet_loading import quiet_transformers

    model = subject.model
    with quiet_transformers():
        try:
            fresh = type(model)(copy.deepcopy(model.config))
        except (TypeError, ValueError, AttributeError) as error:
            raise NotApplicable(
                f"{type(model).__name__} cannot be built from its config: {error}"
            ) from error
        copied = replace_model(subject, copy.deepcopy(model).requires_grad_(False))
    return RandomisableCopy(
        copied,
        _match_parameters(fresh, model),
        group_transformer_weights(model, subject.access.modules),
    )


def _match_parameters(fresh: nn.Module, own: nn.Module) -> dict[str, Tensor]:
    """The fresh weights, with the dtype and device of the weights that they may replace."""
    drawn, wanted = dict(fresh.named_parameters()), dict(own.named_parameters())
    shapes, needed = ({name: one.shape for name, one in each.items()} for each in (drawn, wanted))
    if shapes != needed:
        raise NotApplicable(f"a fresh {type(own).__name__} has other weights than this one")
    return {name: drawn[name].detach().to(weight) for name, weight in wanted.items()}


def _module(subject: Subject) -> nn.Module:
    module: nn.Module = getattr(subject, "network", None) or subject.model  # type: ignore[attr-defined]
    return module
