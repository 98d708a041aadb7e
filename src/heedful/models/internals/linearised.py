"""A transformer linearised at its input: norms, activations, products and softmax become affine.

No family is special-cased. Norms and activations are recognised by their type or name, and by what
they compute; functions, and products of two tensors that both depend on the input, are intercepted
where they are called. Anything else is left as it is; callers that need the whole to be linear must
check that it is.

In the first pass all values are the model's own and gradients are those of the affine maps, so that
input × gradient is relevance propagation. The maps of that pass can be replayed for other inputs:
the model is then affine in its input. Each map is exact at the point where it is made.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import SOFTMAX_FUNCTIONS, model_lock
from heedful.models.attention_access.layer_hooks import forward_hooks
from heedful.models.attention_access.recorder import AttentionCall, Edit
from heedful.models.attention_access.supported_families import (
    ACTIVATION_ENDINGS,
    ACTIVATION_PACKAGES,
    NORM_CLASS,
)
from heedful.models.internals.closeness import TOLERANCE, require_close

Nonlinearity = Callable[..., Any]
AffineMap = Callable[..., Tensor]
"""What replaces a non-linear part; it takes the same arguments."""
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
PRODUCTS_WITH_ADDEND = {torch.baddbmm, Tensor.baddbmm}  # their first argument is added
MIXING_MODULES = (
    *(nn.Softmax, nn.Softmax2d, nn.LogSoftmax, nn.Softmin, nn.GLU, nn.MultiheadAttention),
)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # affine in evaluation mode
HALF_PRECISION_TOLERANCE = 0.05  # of norms in float16 and bfloat16
OTHER_PARTS_MESSAGE = (
    "The model ran other non-linear parts than those that were recorded: which of them run depends "
    "on its input, so that the model cannot be linearised."
)


@dataclass(eq=False)
class LinearisedModel:
    """The non-linear parts of one pass, in order, each with its affine map.

    The map is None for a part that does not depend on the input.
    """

    model: nn.Module
    linear_parts: list[tuple[object, AffineMap | None]] = field(default_factory=list)

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Use the recorded maps instead of the model's own parts, in passes of this thread."""
        mode = _FreezeMode(self, replaying=True)
        with model_lock(self.model), _nonlinearities_hooked(self.model, mode), mode:
            yield
        if self.linear_parts and mode.count % len(self.linear_parts):
            raise NotApplicable(OTHER_PARTS_MESSAGE)


@contextmanager
def linearised(model: nn.Module) -> Iterator[LinearisedModel]:
    """Record one pass inside the block, with its own values and the gradients of affine maps.

    Parts depend on the input if autograd tracks them: run the pass from vectors that require
    gradients. The model's weights are constant meanwhile; one thread at a time.
    """
    linearised_model = LinearisedModel(model)
    mode = _FreezeMode(linearised_model)
    with (
        model_lock(model),
        _parameters_frozen(model),
        _nonlinearities_hooked(model, mode),
        mode,
        torch.enable_grad(),
    ):
        yield linearised_model


def replay_attention(calls: list[AttentionCall]) -> Edit:
    """An edit that uses the attention of an earlier pass."""

    def edit(call: AttentionCall) -> Tensor:
        return repeat_to_batch(calls[call.order].weights.detach(), call.weights)

    return edit


class _StraightThrough(torch.autograd.Function):
    """The value of one tensor with the gradient of another."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, linear: Tensor) -> Tensor:
        ctx.dtype = linear.dtype
        return value.clone()  # the model may change it in place

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0].to(ctx.dtype)


class _FreezeMode(TorchFunctionMode):
    """Intercepts every non-linear part of a pass, and records or replays its affine map."""

    def __init__(self, linearised_model: LinearisedModel, *, replaying: bool = False) -> None:
        super().__init__()
        self.linear_parts, self.replaying = linearised_model.linear_parts, replaying
        self.inside = self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        more = kwargs or {}
        value = func(*args, **more)
        if self.inside or not isinstance(value, Tensor):
            return value
        if func in PRODUCTS:
            return self._product(func, args, more, value)
        if func in ACTIVATIONS or func in SOFTMAX_FUNCTIONS:
            return self._function_of_one(func, args, more, value)
        return value

    def module(self, module: nn.Module, entered: Tensor, left: Tensor) -> Tensor:
        """The output of a norm or activation module."""
        make = linearise_norm if _is_norm(module) else linearise_activation
        affine = make(module.forward, entered, left) if self._is_new(entered) else None
        return self._record_or_replay((module, affine), left, entered)

    def _function_of_one(self, func: Any, args: Any, more: Any, value: Tensor) -> Tensor:
        """The output of an activation function or softmax."""
        settings = {name: one for name, one in more.items() if name not in ("input", "inplace")}
        entered, *rest = args or (more["input"],)
        affine = None
        if self._is_new(entered):
            if func in SOFTMAX_FUNCTIONS:
                axis = settings["dim"] if "dim" in settings else rest[0]
                affine = linearise_softmax(entered, value, axis)
            else:
                affine = linearise_activation(lambda x: func(x, *rest, **settings), entered, value)
        return self._record_or_replay((func, affine), value, entered)

    def _product(self, func: Any, args: Any, more: Any, value: Tensor) -> Tensor:
        """The output of a product, which is not linear if two factors depend on the input."""
        given: dict[int | str, Any] = {**dict(enumerate(args)), **more}
        if func in PRODUCTS_WITH_ADDEND:
            given = {at: one for at, one in given.items() if at not in (0, "input")}
        tensors = {at: one for at, one in given.items() if isinstance(one, Tensor)}
        varying = {at: one for at, one in tensors.items() if self._is_new(one)}
        affine = linearise_product(func, varying) if len(varying) == 2 else None
        return self._record_or_replay((func, affine), value, *args, **more)

    def _is_new(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the input, in a pass that is recorded."""
        return not self.replaying and tensor.requires_grad

    def _record_or_replay(
        self, new: tuple[object, AffineMap | None], value: Tensor, *given: Any, **more: Any
    ) -> Tensor:
        """Record the next part and return its own value, or replay the recorded map."""
        part, affine = new
        place, self.count = self.count, self.count + 1
        if not self.replaying:
            self.linear_parts.append(new)
            if affine is None:
                return value
            linear: Tensor = _StraightThrough.apply(value.detach(), affine(*given, **more))  # type: ignore[no-untyped-call]
            return linear
        recorded, affine = self.linear_parts[place % len(self.linear_parts)]
        if recorded is not part:
            raise NotApplicable(OTHER_PARTS_MESSAGE)
        return value if affine is None else affine(*given, **more)


@contextmanager
def _parameters_frozen(model: nn.Module) -> Iterator[None]:
    """Make no weight of the model require a gradient inside the block."""
    trained = [one for one in model.parameters() if one.requires_grad]
    try:
        for one in trained:
            one.requires_grad_(False)
        yield
    finally:
        for one in trained:
            one.requires_grad_(True)


@contextmanager
def _nonlinearities_hooked(model: nn.Module, mode: _FreezeMode) -> Iterator[None]:
    """Pass the outputs of norms and activations to the mode, and hide their inner parts."""

    def enter(*_: object) -> None:
        mode.inside += 1

    def leave(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        try:
            entered = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
            if mode.inside > 1 or not isinstance(output, Tensor):
                return None
            if len(entered) != 1 or entered[0].shape != output.shape:
                raise NotApplicable(
                    f"{type(module).__name__} takes {len(entered)} tensors; a norm or activation "
                    "must take one and keep its shape to be linearised."
                )
            return mode.module(module, entered[0], output)
        finally:
            mode.inside -= 1

    parts = [one for one in model.modules() if _is_norm(one) or _is_activation(one)]
    with forward_hooks(parts, enter, leave):
        yield


def _is_norm(module: nn.Module) -> bool:
    named = NORM_CLASS in type(module).__name__ and not isinstance(module, BATCH_NORMS)
    return named and next(module.children(), None) is None


def _is_activation(module: nn.Module) -> bool:
    package, name = type(module).__module__, type(module).__name__.lower()
    named = package in ACTIVATION_PACKAGES or name.endswith(ACTIVATION_ENDINGS)
    mixing = isinstance(module, MIXING_MODULES)
    return named and not mixing and next(module.children(), None) is None


def linearise_activation(part: Nonlinearity, entered: Tensor, left: Tensor) -> AffineMap:
    """f(x) as x times the slope (f(x) − f(0))/x, plus f(0).

    >>> affine = linearise_activation(
    ...     torch.relu, torch.tensor([2.0, -1.0]), torch.tensor([2.0, 0.0])
    ... )
    >>> affine(torch.tensor([-5.0, 5.0]))
    tensor([-5.,  0.])
    """
    with torch.no_grad():
        tiny = torch.finfo(entered.dtype).eps ** 0.5
        away = torch.where(entered.abs() < tiny, tiny, entered)
        start = part(torch.zeros_like(entered[:1]))
        slope = (part(away) - start) / away
    return _scale_map(slope, entered, left)


def linearise_norm(part: Nonlinearity, entered: Tensor, left: Tensor) -> AffineMap:
    """A layer norm or RMS norm with fixed deviation: c · γ ⊙ (x − mean x) + β, or without mean.

    γ (or 1 + γ), β, and whether there is a mean are read off the outputs for zeros, ones and ±1. A
    norm whose output this does not reproduce is refused.
    """
    with torch.no_grad():
        zeros = torch.zeros_like(entered[:1])
        signs = _alternating_signs(zeros)
        bias, ones = part(zeros), part(zeros + 1)
        gamma = (part(signs) - bias) / signs
        centred = bool((ones - bias).abs().max() <= 1e-3 * (gamma * signs).abs().max())
        direction = gamma * (entered - entered.mean(-1, keepdim=True) if centred else entered)
        size = direction.square().sum(-1, keepdim=True)
        fit = ((left - bias) * direction).sum(-1, keepdim=True) / torch.where(size > 0, size, 1.0)
        owner = type(getattr(part, "__self__", part)).__name__
        exact = left.dtype in (torch.float32, torch.float64)
        tolerance = TOLERANCE if exact else HALF_PRECISION_TOLERANCE
        why = "does not scale its input as layer norms and RMS norms do"
        message, made = f"{owner} is named a norm, but {why}", fit * direction
        require_close(made, left - bias, message, tolerance=tolerance, floor=1e-6)
    return _scale_map(fit * gamma, entered, left, centred=centred)


def linearise_product(part: Nonlinearity, factors: Mapping[int | str, Tensor]) -> AffineMap:
    """a · b as ½ (a · b₀ + a₀ · b), which treats both factors equally.

    The keys of the two factors are their argument positions or names.
    """
    kept = {place: factor.detach() for place, factor in factors.items()}

    def affine(*given: Any, **more: Any) -> Tensor:
        halves = []
        for place, factor in kept.items():
            placed, named = list(given), dict(more)
            here: Any = placed if isinstance(place, int) else named
            here[place] = repeat_to_batch(factor, here[place])
            halves.append(part(*placed, **named))
        half: Tensor = (halves[0] + halves[1]) / 2
        return half

    return affine


def linearise_softmax(entered: Tensor, left: Tensor, axis: int) -> AffineMap:
    """The tangent s + s ⊙ (d − ⟨s, d⟩) with d = x − x₀; masked entries stay 0."""
    point, share = entered.detach(), left.detach().to(entered.dtype)

    def affine(given: Tensor) -> Tensor:
        here, shares = repeat_to_batch(point, given), repeat_to_batch(share, given)
        moved = (given - here).masked_fill(shares == 0, 0.0)
        return shares + shares * (moved - (shares * moved).sum(axis, keepdim=True))

    return affine


def repeat_to_batch(kept: Tensor, given: Tensor) -> Tensor:
    """Repeat a recorded tensor for a batch that holds its texts several times."""
    if kept.dim() != given.dim():
        return kept
    times = [
        new // old if old > 1 and new != old and new % old == 0 else 1
        for old, new in zip(kept.shape, given.shape, strict=True)
    ]
    return kept if max(times, default=1) == 1 else kept.repeat(times)


def _scale_map(slope: Tensor, entered: Tensor, left: Tensor, *, centred: bool = False) -> AffineMap:
    def scaled(given: Tensor) -> Tensor:
        steps = given - given.mean(-1, keepdim=True) if centred else given
        return repeat_to_batch(slope, given) * steps

    with torch.no_grad():
        rest = left.detach() - scaled(entered.detach())

    def affine(given: Tensor) -> Tensor:
        return scaled(given) + repeat_to_batch(rest, given)

    return affine


def _alternating_signs(like: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Non-zero numbers along the last axis that sum to 0."""
    width = like.shape[-1]
    row = torch.ones(width, dtype=like.dtype, device=like.device)
    row[1::2] = -1.0
    if width % 2 and width > 1:
        row[-1] = -2.0
        row[-2] = 1.0
    return row.expand_as(like)
