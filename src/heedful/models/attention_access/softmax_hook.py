"""Intercept softmax while an attention module of a model runs (the "tap" path).

For families that do not use transformers' attention registry. Weights are visible, values are not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.core.errors import AttentionUnavailable
from heedful.models.attention_access.layer_hooks import removing_hooks
from heedful.models.attention_access.recorder import AttentionRecorder, HeadOutput

SOFTMAX_FUNCTIONS = (torch.softmax, torch.nn.functional.softmax, Tensor.softmax)


class _SoftmaxHook(TorchFunctionMode):
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


class FusedAttentionDetector(TorchFunctionMode):
    """Counts calls of the fused attention kernel, whose weights cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += func is torch.nn.functional.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


@contextmanager
def softmax_hooked(model: nn.Module, recorder: AttentionRecorder) -> Iterator[None]:
    """Record every softmax of the model's attention modules inside the block."""
    inside: list[tuple[nn.Module, Tensor]] = []
    thread = get_ident()  # other threads may use the model unmodified

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if get_ident() != thread:
            return
        first = next(one for one in (*args, *kwargs.values()) if isinstance(one, Tensor))
        inside.append((module, first))

    def leave(*_: object) -> None:
        if get_ident() == thread:
            inside.pop()

    handles: list[Any] = []
    with removing_hooks(handles), _SoftmaxHook(recorder, inside):
        for module in model.modules():
            if "ttention" in type(module).__name__:
                handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                handles.append(module.register_forward_hook(leave, always_call=True))
        yield
