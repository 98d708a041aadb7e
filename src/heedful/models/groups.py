"""The weights of a model in groups, from the output down."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from torch import nn

from heedful.models.networks import Network

Groups = Mapping[str, tuple[str, ...]]
"""The names of the weights by the name of the group, the group nearest to the output first."""
HEAD, EMBEDDINGS = "head", "embeddings"


def recurrent_groups(network: Network) -> Groups:
    """Output layer, attention, encoders, word vectors; a part without weights is left out."""
    question = ("question",) if network.shape.query else ()
    parts = ("decoder", "attention", "encoder", *question, "embedding")
    named = {
        part: tuple(f"{part}.{name}" for name, _ in getattr(network, part).named_parameters())
        for part in parts
    }
    return {part: names for part, names in named.items() if names}


def transformer_groups(model: nn.Module, attentions: Sequence[str]) -> Groups:
    """The head, every layer that one of the attentions is in, and the embeddings.

    Tables of vectors outside of layers, and what is named after embeddings, are embeddings; what
    stands between two stacks of layers goes with the layer before it; all else is the head.
    Weights that head and embeddings share go with the embeddings.
    """
    layers = _layers(attentions)
    names = [name for name, _ in model.named_parameters()]
    tables = {name for name, one in model.named_modules() if isinstance(one, nn.Embedding)}
    own = [next((one for one in layers if name.startswith(f"{one}.")), None) for name in names]
    last = max((place for place, one in enumerate(own) if one), default=-1)
    groups: dict[str, list[str]] = {}
    before = HEAD  # some name their head first
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


def _layers(attentions: Sequence[str]) -> dict[str, str]:
    """The module of each layer and its name, in the order of the pass; shared ones once."""
    modules = dict.fromkeys(map(_layer_of, attentions))
    stacks = dict.fromkeys(name.rpartition(".")[0] for name in modules)
    found: dict[str, str] = {}
    for stack in stacks:
        parts = stack.split(".")
        side = f"{parts[-2]} " if len(stacks) > 1 and len(parts) > 1 else ""
        mine = [name for name in modules if name.rpartition(".")[0] == stack]
        found |= {name: f"{side}layer {place}" for place, name in enumerate(mine, start=1)}
    return found


def _layer_of(attention: str) -> str:
    """From the name of an attention to that of its layer, which ends in the first number.

    >>> _layer_of("bert.encoder.layer.0.attention.self")
    'bert.encoder.layer.0'
    """
    parts = attention.split(".")
    stack = list(takewhile(lambda part: not part.isdigit(), parts))
    return ".".join(parts[: len(stack) + 1])
