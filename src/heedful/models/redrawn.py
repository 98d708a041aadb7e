"""Copies of a subject with some or all of its weights drawn anew, as they were before training.

One copy is made of a subject and kept as long as it lives: its weights are set from the subject's
own and from fresh ones as asked, so that any number of copies takes the room of two models.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from heedful.core.errors import NotApplicable
from heedful.core.rng import generator
from heedful.models.base import Subject
from heedful.models.groups import Groups, recurrent_groups, transformer_groups
from heedful.models.networks import new_network
from heedful.models.recurrent import RecurrentSubject

_kept: WeakKeyDictionary[Subject, tuple[int, "Redrawn"]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A copy of a subject, fresh weights for it, and its weights in groups from the output down."""

    copied: Subject
    fresh: Mapping[str, Tensor]
    groups: Groups

    def of(self, subject: Subject, anew: Iterable[str]) -> Subject:
        """The subject with the weights of these groups drawn anew; good until the next is asked."""
        chosen = {name for group in anew for name in self.groups[group]}
        own = dict(_module(subject).named_parameters())
        with torch.no_grad():
            for name, weight in _module(self.copied).named_parameters():
                weight.copy_(self.fresh[name] if name in chosen else own[name])
        # a subject remembers what it made of its weights: each gets one that remembers nothing
        made: Subject = replace(self.copied)  # type: ignore[type-var]
        return made


def redrawn(subject: Subject, *, seed: int) -> Redrawn:
    """The copy of a subject, made once; NotApplicable where nobody knows how to draw its weights.

    Draws follow from the seed, whatever state torch's own stream is in, and leave that as it was.
    """
    if subject in _kept and _kept[subject][0] == seed:
        return _kept[subject][1]
    number = int(generator(seed, "weights drawn anew").integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        made = _recurrent(subject) if isinstance(subject, RecurrentSubject) else _other(subject)
    _kept[subject] = seed, made
    return made


def _recurrent(subject: RecurrentSubject) -> Redrawn:
    fresh = new_network(subject.network.shape)
    network = copy.deepcopy(subject.network).requires_grad_(False)
    return Redrawn(
        replace(subject, network=network), _like(fresh, network), recurrent_groups(network)
    )


def _other(subject: Subject) -> Redrawn:
    from heedful.models.transformer import TransformerSubject

    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(f"nobody knows how the weights of {subject.family} were drawn")
    from heedful.models.pretrained import with_model
    from heedful.models.quietly import quiet

    model = subject.model
    with quiet():
        try:
            fresh = type(model)(copy.deepcopy(model.config))
        except (TypeError, ValueError, AttributeError) as error:
            raise NotApplicable(
                f"{type(model).__name__} cannot be made anew from its config: {error}"
            ) from error
        copied = with_model(subject, copy.deepcopy(model).requires_grad_(False))
    return Redrawn(copied, _like(fresh, model), transformer_groups(model, subject.seam.modules))


def _like(fresh: nn.Module, own: nn.Module) -> dict[str, Tensor]:
    """The fresh weights, each of the type and in the place of the one it may stand for."""
    drawn, wanted = dict(fresh.named_parameters()), dict(own.named_parameters())
    if {name: one.shape for name, one in drawn.items()} != {
        name: one.shape for name, one in wanted.items()
    }:
        raise NotApplicable(f"a fresh {type(own).__name__} has other weights than this one")
    return {name: drawn[name].detach().to(one) for name, one in wanted.items()}


def _module(subject: Subject) -> nn.Module:
    found: nn.Module = getattr(subject, "network", None) or subject.model  # type: ignore[attr-defined]
    return found
