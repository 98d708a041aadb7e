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

from heedful.models.attention_access.access import Seam
from heedful.models.attention_access.layer_hooks import hooked, leaving
from heedful.models.transformer.last_layer_replay import layers_of

NEAR = 1e-5  # how far the logits may lie apart, as a share of the largest


@dataclass(frozen=True, eq=False)
class FirstRow:
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
            width.append(leaving(output).shape[1])
            return _changed(output, lambda states: states[:, :1])

        def widen(_: object, __: object, output: Any) -> Any:
            if get_ident() != mine:
                return output
            return _changed(output, lambda states: states.expand(-1, width.pop(), -1))

        handles = [self.block.register_forward_hook(cut), self.layer.register_forward_hook(widen)]
        with hooked(handles):
            yield


def find_first_row(seam: Seam, run: Callable[[], Float[Tensor, "B C"]]) -> FirstRow | None:
    """The short cut, where this model takes it and its logits stay the same; else None.

    `run` passes texts of several tokens through the model and gives their logits.
    """
    layers = layers_of(seam.model, seam.modules)
    if layers is None or seam.tokens_first:
        return None
    attends = seam.model.get_submodule(seam.modules[-1])
    inside = [one for one in layers[-1].children() if attends in one.modules()]
    if not inside:
        return None
    found = FirstRow(layers[-1], inside[0])
    with torch.no_grad():
        before = run()
        with found.alone():
            after = run()
    near = NEAR * max(1.0, float(before.abs().max()))
    return found if float((after - before).abs().max()) <= near else None


def _changed(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    states = change(leaving(output))
    return (states, *output[1:]) if isinstance(output, tuple) else states
