"""Read, replace and differentiate the attention weights of any transformers model.

transformers 5 computes attention in fused kernels that never form the weights, and returns an
empty tuple when weights are requested. Two paths reach them. *interface*: our attention function,
registered with transformers, calls the family's own eager implementation, so that soft-caps,
position biases, sinks, grouped queries and windows are preserved. *tap*: for families outside that
registry, softmax is intercepted while an attention module runs; weights are visible, values are
not. Models that neither path serves are refused.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal
from weakref import finalize

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.core.errors import AttentionUnavailable
from heedful.models.attention_access.layer_hooks import forward_hooks
from heedful.models.attention_access.recorder import (
    AttentionCall,
    AttentionRecorder,
    Edit,
    HeadOutput,
    active_recorder,
)
from heedful.models.attention_access.supported_families import ATTENTION_ARGUMENTS, ATTENTION_CLASS

ATTENTION_NAME = "heedful"
ACCESS_PATHS: tuple[Literal["interface", "tap"], ...] = ("interface", "tap")
SOFTMAX_FUNCTIONS = (torch.softmax, torch.nn.functional.softmax, Tensor.softmax)
# Largest allowed difference from the unmodified model's logits, relative to the largest logit. It
# covers rounding by another order of summation; a lost mask moves logits by their own size.
PARITY_TOLERANCE, HALF_PRECISION_PARITY_TOLERANCE = 1e-4, 0.05

_locks: dict[int, RLock] = {}  # by config, which models may share and which patching modifies


@dataclass(eq=False)
class AttentionAccess:
    """Access to the attention of one model.

    `parity` is the largest difference from the unmodified model's logits in the check at load
    time; `modules` are the names of the modules that compute attention in one pass, in order.
    """

    model: nn.Module
    path: Literal["interface", "tap"]
    parity: float = 0.0
    modules: tuple[str, ...] = ()
    tokens_first: bool = False  # inputs of attention modules are (T, B, …), not (B, T, …)

    @property
    def calls(self) -> int:
        """Number of attentions computed in one pass."""
        return len(self.modules)

    @contextmanager
    def patched(
        self, edit: Edit | None = None, *, keep: bool = True
    ) -> Iterator[AttentionRecorder]:
        """Record and edit attentions inside the block; restore the model afterwards.

        One thread at a time per model. Other models and the edits of other threads are unaffected.
        """
        if self.model.training:
            raise AttentionUnavailable(
                "The model is in training mode, where dropout changes its attention; "
                "call model.eval() first."
            )
        names = {id(module): name for name, module in self.model.named_modules()}
        recorder = AttentionRecorder(names, edit, keep)
        interface = self.path == "interface"
        with model_lock(self.model):
            token = active_recorder.set(recorder if interface else None)
            try:
                with (
                    _attention_implementation(self.model, ATTENTION_NAME if interface else "eager"),
                    nullcontext() if interface else _softmax_recorded(self.model, recorder),
                ):
                    yield recorder
            finally:
                active_recorder.reset(token)
        if self.modules and recorder.count % self.calls:
            raise AttentionUnavailable(
                f"A pass computed {recorder.count} attentions where {self.calls} were expected; "
                "some of them were not recorded."
            )


def find_attention_access(
    model: nn.Module, run: Callable[[], Float[Tensor, "B C"]]
) -> AttentionAccess:
    """Return the first access path that passes all checks; raise AttentionUnavailable if none does.

    `run` passes texts of unequal length through the model and returns their logits, so that a lost
    padding mask is detected.
    """
    _register()
    reasons = []
    for path in ACCESS_PATHS:
        access = AttentionAccess(model, path)
        try:
            return _check_access(access, run)
        except AttentionUnavailable as reason:
            reasons.append(f"{path}: {reason}")
    raise AttentionUnavailable(
        f"The attention of {type(model).__name__} cannot be reached ({' '.join(reasons)}). Load it "
        "with attn_implementation='eager', or write a heedful.Subject for it: "
        "docs/your-own-model.md shows how."
    )


def _check_access(
    access: AttentionAccess, run: Callable[[], Float[Tensor, "B C"]]
) -> AttentionAccess:
    with torch.no_grad():
        before = run()
    nudges: list[Tensor] = []

    def nudge(call: AttentionCall) -> Tensor:
        nudges.append(torch.zeros_like(call.weights).requires_grad_())
        return call.weights + nudges[-1]

    detector = _FusedAttentionDetector()
    with access.patched(nudge) as recorder, torch.enable_grad(), detector:
        after = run()
        if not recorder.count:
            raise AttentionUnavailable("no attention was recorded.")
        if detector.calls:
            raise AttentionUnavailable(
                "some attention is computed by a fused kernel, which cannot be read."
            )
        slopes = torch.autograd.grad(after.sum(), nudges, allow_unused=True)
    if any(one is None for one in slopes):
        raise AttentionUnavailable("some recorded attention does not affect the output.")
    for call in recorder.calls:
        _require_weights(call.module, call.weights.detach())
    parity = float((after.detach() - before).abs().max())
    exact = before.dtype in (torch.float32, torch.float64)
    tolerance = PARITY_TOLERANCE if exact else HALF_PRECISION_PARITY_TOLERANCE
    if not parity <= tolerance * max(1.0, float(before.abs().max())):
        raise AttentionUnavailable(
            f"the logits differ from the unmodified model's by {parity:.2g}."
        )
    modules = tuple(call.module for call in recorder.calls)
    tokens_first = _has_tokens_first(recorder.calls[0])
    return AttentionAccess(access.model, access.path, parity, modules, tokens_first)


def _has_tokens_first(call: AttentionCall) -> bool:
    """Whether an attention module receives (T, B, …) states, as in XLNet."""
    texts, keys, states = call.weights.shape[0], call.weights.shape[-1], call.module_input
    return states is not None and texts != keys and states.shape[:2] == (keys, texts)


def _require_weights(module: str, weights: Tensor) -> None:
    """Require rows that sum to one, or to less where a learned sink takes the rest."""
    total = weights.sum(-1)
    if weights.dim() != 4 or bool((weights < 0).any()) or not bool((total <= 1.01).all()):
        raise AttentionUnavailable(f"{module} does not compute attention of shape texts × heads.")


def _attention_forward(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **more: Any
) -> tuple[Tensor, Tensor]:
    """The family's eager attention, with its weights recorded and possibly replaced."""
    own = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if own is None:
        raise AttentionUnavailable(f"the family of {type(module).__name__} has no eager attention.")
    given = {name for name, one in more.items() if one is not None}
    if unknown := sorted(given - ATTENTION_ARGUMENTS):
        raise AttentionUnavailable(
            f"{type(module).__name__} passes its attention {unknown[0]!r}, which heedful does not "
            "know; an edit could be wrong where this matters."
        )
    output, weights = own(module, query, key, value, mask, **more)
    recorder = active_recorder.get()
    if recorder is None:
        return output, weights
    groups = weights.shape[1] // value.shape[1]  # grouped queries share keys and values
    values = value if groups == 1 else value.repeat_interleave(groups, dim=1)
    new = recorder.record(module, weights, values)
    if new is None:
        return output, weights
    if isinstance(new, HeadOutput):
        return new.output.transpose(1, 2).contiguous(), weights
    mixed = new.to(values.dtype) @ values
    return mixed.transpose(1, 2).contiguous(), new


def model_lock(model: nn.Module) -> RLock:
    """The lock of a model; hold it while the model is patched."""
    config = getattr(model, "config", model)
    if id(config) not in _locks:
        finalize(config, _locks.pop, id(config), None)
    return _locks.setdefault(id(config), RLock())


@contextmanager
def _attention_implementation(model: nn.Module, name: str) -> Iterator[None]:
    """Select an attention function in every config of a part of the model."""
    attribute = "_attn_implementation_internal"
    parts = (getattr(module, "config", None) for module in model.modules())
    configs = {id(one): one for one in parts if hasattr(one, attribute)}
    before = {key: getattr(one, attribute) for key, one in configs.items()}
    try:
        for one in configs.values():
            setattr(one, attribute, name)
        yield
    finally:
        for key, one in configs.items():
            setattr(one, attribute, before[key])


class _SoftmaxRecorder(TorchFunctionMode):
    """Records and edits softmax calls made inside an attention module."""

    def __init__(self, recorder: AttentionRecorder, inside: list[tuple[nn.Module, Tensor]]) -> None:
        super().__init__()
        self.recorder, self.inside = recorder, inside

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in SOFTMAX_FUNCTIONS or not self.inside:
            return result
        module, states = self.inside[-1]
        # some families keep heads and texts on one axis
        weights = result.unflatten(0, (len(states), -1)) if result.dim() == 3 else result
        new = self.recorder.record(module, weights, module_input=states)
        if isinstance(new, HeadOutput):
            raise AttentionUnavailable(
                "The tap path sees weights only; it cannot replace the output of heads."
            )
        return result if new is None else new.reshape(result.shape).to(result.dtype).contiguous()


class _FusedAttentionDetector(TorchFunctionMode):
    """Counts calls of the fused attention kernel, whose weights cannot be read."""

    calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += func is torch.nn.functional.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


@contextmanager
def _softmax_recorded(model: nn.Module, recorder: AttentionRecorder) -> Iterator[None]:
    """Record every softmax of the model's attention modules inside the block."""
    inside: list[tuple[nn.Module, Tensor]] = []

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        first = next(one for one in (*args, *kwargs.values()) if isinstance(one, Tensor))
        inside.append((module, first))

    def leave(*_: object) -> None:
        inside.pop()

    attentions = [one for one in model.modules() if ATTENTION_CLASS in type(one).__name__]
    with forward_hooks(attentions, enter, leave), _SoftmaxRecorder(recorder, inside):
        yield


def _register() -> None:
    """Register our attention and mask functions with transformers; repeated calls are harmless.

    Without the mask function a model would silently get no mask and attend to padding and to later
    tokens.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(ATTENTION_NAME, _attention_forward)
    AttentionMaskInterface.register(ATTENTION_NAME, _attention_mask)


def _attention_mask(*given: Any, **more: Any) -> Tensor | None:
    """The eager mask, clamped to the range of float32, in which many families compute softmax.

    Below that range the row of a padding token, whose keys are all masked, would become NaN and
    spread.
    """
    from transformers.masking_utils import eager_mask

    mask: Tensor | None = eager_mask(*given, **more)
    lowest = torch.finfo(torch.float32).min
    return mask.clamp(min=lowest) if mask is not None and mask.dtype == torch.float64 else mask
