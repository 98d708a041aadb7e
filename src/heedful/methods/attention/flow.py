"""Attention flow (Abnar & Zuidema, 2020): the maximum flow through the layers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.settings import Fraction
from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import LayerStack, read_row, stack_layers
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.attention_maps import add_residual, max_flow

FlowEdges = list[tuple[int, int, NDArray[np.float64]]]


@methods.register("flow", kind="attention", slow=True)
@dataclass(frozen=True)
class Flow:
    """The maximum flow from the explained position down to each token, weights as capacities.

    Layers are as in `rollout`, heads are averaged; the two attentions of a decoder layer are two
    steps. Each token is solved on its own, so flows do not sum to 1; none is below the token's
    rollout. One network is solved per token, and per position where several are explained, so texts
    have at most 64 tokens.
    """

    residual: Fraction = 0.5
    most_tokens: ClassVar[int] = 64

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        stack = stack_layers(context, "flow")
        longest = int(context.batch.present.sum(-1).max())
        if longest > self.most_tokens:
            raise NotApplicable(
                f"flow solves a network per token: a text may have at most {self.most_tokens} "
                f"tokens, one has {longest}."
            )
        top = (stack.across or stack.encoder_layers)[-1]
        weight = read_row(context, "flow", _identity(top))  # of each position in the explanation
        with context.clock("flow"):
            flows = [
                self._flow_of_text(context, stack, row, weight[row]) for row in range(len(top))
            ]
        return explanation_from_scores("flow", context, torch.stack(flows).to(top))

    def _flow_of_text(
        self, context: BatchContext, stack: LayerStack, row: int, weight: Float[Tensor, "Q"]
    ) -> Float[Tensor, "T"]:
        """Σ over the explained positions of their weight times the flow from there."""
        present = context.batch.present[row]
        edges, sinks, start = self._edges(stack, row, present)
        total = np.zeros(len(present))
        for position in weight.nonzero().flatten().tolist():
            flows = max_flow(edges, start + position, [sinks + int(t) for t in present.nonzero()])
            total[present.numpy()] += float(weight[position]) * flows
        return torch.from_numpy(total)

    def _edges(self, stack: LayerStack, row: int, present: Tensor) -> tuple[FlowEdges, int, int]:
        """The flow network of one text: edges, first input node, first top node."""
        text, edges = len(present), []
        node = 0  # nodes of the text come first, layer by layer
        for layer in stack.encoder_layers:
            edges.append((node + text, node, self._layer(layer[row])))
            node += text
        if not stack.across:
            return edges, 0, node
        below, count = node + text, stack.decoder[0].shape[-1]  # the decoder's own tokens
        kept = np.eye(count) * self.residual
        for own, cross in zip(stack.decoder, stack.across, strict=True):
            edges.append((below + count, below, self._layer(own[row])))
            edges.append((below + 2 * count, below + count, kept))
            edges.append(
                (below + 2 * count, node, (1 - self.residual) * cross[row].double().numpy())
            )
            below += 2 * count
        return edges, 0, below

    def _layer(self, weights: Float[Tensor, "T T"]) -> NDArray[np.float64]:
        mixed = add_residual(weights[None].double(), residual=self.residual, normalise=False)
        return np.asarray(mixed[0].numpy())


def _identity(matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B Q Q"]:
    """The identity; the row that is read from it is the weight of each position."""
    identity = torch.eye(matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    return identity.expand(len(matrix), -1, -1)
