"""A transformer made linear where it is: norms, activations, products and softmax held in place.

No family is asked for by name. Norms and activations are known by their kind or by what they are
called, and by what they do (see `local_affine`); functions and products of two things that
both depend on the input are met where they are called. What is not met stays as it is: who needs
the whole to be linear must see that it is.

In the first pass all values are the model's own, and gradients are those of the linear parts, so
that input × gradient is relevance propagation. The parts that pass met can be put in their places
again for other inputs: the model is then affine in what it reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.layer_hooks import removing_hooks
from heedful.models.attention_access.recorder import AttentionCall, Edit
from heedful.models.attention_access.softmax_hook import SOFTMAX_FUNCTIONS
from heedful.models.internals.local_affine import (
    AffineMap,
    linearise_activation,
    linearise_norm,
    linearise_product,
    linearise_softmax,
    repeat_to_batch,
)

ACTIVATIONS = {
    *(functional.gelu, functional.silu, functional.relu, functional.tanh, functional.sigmoid),
    *(functional.softplus, functional.elu, functional.leaky_relu, functional.mish),
    *(functional.relu6, functional.selu, functional.hardtanh, functional.hardswish),
    *(torch.relu, torch.tanh, torch.sigmoid, Tensor.relu, Tensor.tanh, Tensor.sigmoid),
}
PRODUCTS = {
    *(torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.__mul__, Tensor.__rmul__),
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__, torch.bmm, Tensor.bmm),
    *(torch.einsum, torch.baddbmm, Tensor.baddbmm),
}
PRODUCTS_WITH_ADDEND = {torch.baddbmm, Tensor.baddbmm}  # whose first is added, and no factor
MIXING_MODULES = (
    nn.Softmax,
    nn.Softmax2d,
    nn.LogSoftmax,
    nn.Softmin,
    nn.GLU,
    nn.MultiheadAttention,
)
BATCH_NORMS = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
)  # linear as they are, out of training
ACTIVATION_PACKAGES = ("torch.nn.modules.activation", "transformers.activations")
ACTIVATION_NAME_ENDINGS = ("gelu", "relu", "silu", "activation")
OTHER_PARTS_MESSAGE = (
    "The model ran other non-linear parts than those that were kept: which of them run depends "
    "on its input, so that they cannot be held."
)


@dataclass(eq=False)
class LinearisedModel:
    """The parts one pass met, in order: which, and what stands in for it.

    None stands in for a part that did not depend on the input.
    """

    model: nn.Module
    kept: list[tuple[object, AffineMap | None]] = field(default_factory=list)

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Inside the block passes of this thread use the kept parts in the place of their own."""
        met = _FreezeMode(self, again=True)
        with model_lock(self.model), _nonlinearities_hooked(self.model, met), met:
            yield
        if self.kept and met.count % len(self.kept):
            raise NotApplicable(OTHER_PARTS_MESSAGE)


@contextmanager
def linearised(model: nn.Module) -> Iterator[LinearisedModel]:
    """Inside the block one pass has its own values and the gradients of its linear parts.

    What depends on the input is what autograd follows: run it from vectors that require gradients.
    The model's own weights are constants meanwhile; one thread at a time.
    """
    found = LinearisedModel(model)
    met = _FreezeMode(found)
    with (
        model_lock(model),
        _parameters_frozen(model),
        _nonlinearities_hooked(model, met),
        met,
        torch.enable_grad(),
    ):
        yield found


def freeze_attention(call: AttentionCall) -> Tensor:
    """Attention as a constant."""
    return call.weights.detach()


def replay_attention(calls: list[AttentionCall]) -> Edit:
    """An edit that puts the attention of an earlier pass in its place again."""

    def put(call: AttentionCall) -> Tensor:
        return repeat_to_batch(calls[call.order].weights.detach(), call.weights)

    return put


class _StraightThrough(torch.autograd.Function):
    """The value of one tensor with the gradient of another."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, linear: Tensor) -> Tensor:
        ctx.kind = linear.dtype
        return value.clone()  # which the model may change in its place

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[None, Tensor]:
        return None, slopes[0].to(ctx.kind)


class _FreezeMode(TorchFunctionMode):
    """Meets every part of a pass, and keeps it or puts a kept one in its place."""

    def __init__(self, frozen: LinearisedModel, *, again: bool = False) -> None:
        super().__init__()
        self.frozen, self.again = frozen, again
        self.inside = self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        more = kwargs or {}
        value = func(*args, **more)
        if self.inside or not isinstance(value, Tensor):
            return value
        if func in ACTIVATIONS:
            return self._activation(func, args, more, value)
        if func in SOFTMAX_FUNCTIONS:
            return self._softmax(func, args, more, value)
        if func in PRODUCTS:
            return self._product(func, args, more, value)
        return value

    def module(self, module: nn.Module, entered: Tensor, left: Tensor) -> Tensor:
        """What leaves a norm or an activation module."""
        make = linearise_norm if _is_norm(module) else linearise_activation
        kept = make(module.forward, entered, left) if self._new(entered) else None
        return self._put((module, kept), left, entered)

    def _activation(self, func: Any, args: Any, more: Any, value: Tensor) -> Tensor:
        entered = args[0] if args else more["input"]
        rest = {name: one for name, one in more.items() if name not in ("input", "inplace")}

        def part(x: Tensor) -> Any:
            return func(x, *args[1:], **rest)

        kept = linearise_activation(part, entered, value) if self._new(entered) else None
        return self._put((func, kept), value, entered)

    def _softmax(self, func: Any, args: Any, more: Any, value: Tensor) -> Tensor:
        entered = args[0] if args else more["input"]
        axis = more["dim"] if "dim" in more else args[1]
        kept = linearise_softmax(entered, value, axis) if self._new(entered) else None
        return self._put((func, kept), value, entered)

    def _product(self, func: Any, args: Any, more: Any, value: Tensor) -> Tensor:
        given: dict[int | str, Any] = {**dict(enumerate(args)), **more}
        added = (0, "input") if func in PRODUCTS_WITH_ADDEND else ()
        moving = {
            at: one
            for at, one in given.items()
            if isinstance(one, Tensor) and self._new(one) and at not in added
        }
        kept = linearise_product(func, moving) if len(moving) == 2 else None
        return self._put((func, kept), value, *args, **more)

    def _new(self, one: Tensor) -> bool:
        return not self.again and one.requires_grad

    def _put(
        self, found: tuple[object, AffineMap | None], value: Tensor, *given: Any, **more: Any
    ) -> Tensor:
        """The next part: kept and the model's own in the first pass, the kept one in others."""
        who, kept = found
        place, self.count = self.count, self.count + 1
        if not self.again:
            self.frozen.kept.append(found)
            return value if kept is None else _straight_through(value, kept(*given, **more))
        known, part = self.frozen.kept[place % len(self.frozen.kept)]
        if known is not who:
            raise NotApplicable(OTHER_PARTS_MESSAGE)
        return value if part is None else part(*given, **more)


def _straight_through(value: Tensor, linear: Tensor) -> Tensor:
    made: Tensor = _StraightThrough.apply(value.detach(), linear)  # type: ignore[no-untyped-call]
    return made


@contextmanager
def _parameters_frozen(model: nn.Module) -> Iterator[None]:
    """Inside the block no weight of the model requires a gradient."""
    trained = [one for one in model.parameters() if one.requires_grad]
    try:
        for one in trained:
            one.requires_grad_(False)
        yield
    finally:
        for one in trained:
            one.requires_grad_(True)


@contextmanager
def _nonlinearities_hooked(model: nn.Module, met: _FreezeMode) -> Iterator[None]:
    """Inside the block what leaves norms and activations passes by; their inner parts do not."""
    mine = get_ident()  # another thread may use the model as it is

    def enter(*_: object) -> None:
        met.inside += get_ident() == mine

    def leave(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        if get_ident() != mine:
            return None
        try:
            entered = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
            if met.inside > 1 or not isinstance(output, Tensor):
                return None
            if len(entered) != 1 or entered[0].shape != output.shape:
                raise NotApplicable(
                    f"{type(module).__name__} takes {len(entered)} tensors; a norm or activation "
                    "that can be made linear takes one and keeps its shape."
                )
            return met.module(module, entered[0], output)
        finally:
            met.inside -= 1

    parts = [one for one in model.modules() if _is_norm(one) or _is_activation(one)]
    handles = [one.register_forward_pre_hook(enter) for one in parts]
    handles += [one.register_forward_hook(leave, with_kwargs=True) for one in parts]
    with removing_hooks(handles):
        yield


def _is_norm(module: nn.Module) -> bool:
    alone = next(module.children(), None) is None
    return alone and "Norm" in type(module).__name__ and not isinstance(module, BATCH_NORMS)


def _is_activation(module: nn.Module) -> bool:
    kind = type(module)
    known = kind.__module__ in ACTIVATION_PACKAGES or kind.__name__.lower().endswith(
        ACTIVATION_NAME_ENDINGS
    )
    return (
        known and not isinstance(module, MIXING_MODULES) and next(module.children(), None) is None
    )
