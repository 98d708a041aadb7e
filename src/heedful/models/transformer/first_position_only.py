"""The last layer for the first position alone, where the output depends on no other one.

Behind its last attention block a classifier that pools [CLS] computes all other positions for
nobody: of six layers, a tenth of the work. Families are not asked for by name: the block's output
is cut to its first row, the layer's is made as wide as before, and the logits must be the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.layer_hooks import output_states, removing_hooks
from heedful.models.transformer.last_layer_replay import find_layer_list

SHORTCUT_TOLERANCE = 1e-5  # how far the logits may lie apart, as a share of the largest


@dataclass(frozen=True, eq=False)
class FirstPositionOnly:
    """The last layer, and within it the block that holds its attention."""

    layer: nn.Module
    block: nn.Module

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside the `with` this thread's passes compute only what the first position needs."""
        width: list[int] = []
        mine = get_ident()

        def cut(_: object, __: object, output: Any) -> Any:
            if get_ident() != mine:
                return output
            width.append(output_states(output).shape[1])
            return _with_changed_states(output, lambda states: states[:, :1])

        def widen(_: object, __: object, output: Any) -> Any:
            if get_ident() != mine:
                return output
            return _with_changed_states(output, lambda states: states.expand(-1, width.pop(), -1))

        handles = [self.block.register_forward_hook(cut), self.layer.register_forward_hook(widen)]
        with removing_hooks(handles):
            yield


def find_first_position_only(
    access: AttentionAccess, run: Callable[[], Float[Tensor, "B C"]]
) -> FirstPositionOnly | None:
    """The short cut, where this model takes it and its logits stay the same; else None.

    `run` passes texts of several tokens through the model and gives their logits.
    """
    layers = find_layer_list(access.model, access.modules)
    if layers is None or access.tokens_first:
        return None
    attends = access.model.get_submodule(access.modules[-1])
    inside = [one for one in layers[-1].children() if attends in one.modules()]
    if not inside:
        return None
    found = FirstPositionOnly(layers[-1], inside[0])
    with model_lock(access.model), torch.no_grad():
        before = run()
        with found.alone():
            after = run()
    near = SHORTCUT_TOLERANCE * max(1.0, float(before.abs().max()))
    return found if float((after - before).abs().max()) <= near else None


def _with_changed_states(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    states = change(output_states(output))
    return (states, *output[1:]) if isinstance(output, tuple) else states
