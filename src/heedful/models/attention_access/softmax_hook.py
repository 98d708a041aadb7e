"""The tap: hear and replace softmax while one of a model's attention modules runs.

For families that do not attend through transformers' registry. The tap sees weights, never values.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.core.errors import AttentionUnavailable
from heedful.models.attention_access.recorder import AttentionRecorder, HeadOutput

SOFTMAX_FUNCTIONS = (torch.softmax, torch.nn.functional.softmax, Tensor.softmax)


class _SoftmaxHook(TorchFunctionMode):
    """Hears softmax where it is called from inside an attention module."""

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
        new = self.recorder.record(module, weights, entered=states)
        if isinstance(new, HeadOutput):
            raise AttentionUnavailable("The tap sees weights only; it cannot give heads' output.")
        return result if new is None else new.reshape(result.shape).to(result.dtype).contiguous()


class FusedAttentionDetector(TorchFunctionMode):
    """Sees whether attention was computed by a fused kernel, which nobody can hear."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += func is torch.nn.functional.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


@contextmanager
def softmax_hooked(model: nn.Module, recorder: AttentionRecorder) -> Iterator[None]:
    """Inside the block every softmax of the model's attention modules is heard."""
    inside: list[tuple[nn.Module, Tensor]] = []
    ours = get_ident()  # another thread may use the model as it is; its calls are not ours

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if get_ident() != ours:
            return
        first = next(one for one in (*args, *kwargs.values()) if isinstance(one, Tensor))
        inside.append((module, first))

    def leave(*_: object) -> None:
        if get_ident() == ours:
            inside.pop()

    handles = []
    try:
        for module in model.modules():
            if "ttention" in type(module).__name__:
                handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                handles.append(module.register_forward_hook(leave, always_call=True))
        with _SoftmaxHook(recorder, inside):
            yield
    finally:
        for handle in handles:
            handle.remove()
