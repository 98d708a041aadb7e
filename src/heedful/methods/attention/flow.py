"""Attention flow (Abnar & Zuidema, 2020): the most that can pass through the layers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import LayerStack, read_row, stack_layers
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.attention_maps import add_residual, max_flow

FlowEdges = list[tuple[int, int, NDArray[np.float64]]]


@methods.register("flow")
@dataclass(frozen=True)
class Flow:
    """The maximum flow from the explained position down to each token, weights as capacities.

    Layers as in `rollout`, heads by their mean; the two attentions of a decoder's layer are two
    steps. Each token is solved alone, so the flows do not add up to 1; none is below the token's
    rollout. One network is solved for every token, and for every position where all are explained:
    for texts of up to 64 tokens only.
    """

    residual: float = 0.5
    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False
    most_tokens: ClassVar[int] = 64

    def __post_init__(self) -> None:
        if not 0.0 <= self.residual <= 1.0:
            raise ConfigError(f"residual must lie between 0 and 1, not {self.residual}.")

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - attention knows no target
    ) -> Explanation:
        stack = stack_layers(context, "flow")
        longest = int(context.batch.present.sum(-1).max())
        if longest > self.most_tokens:
            raise NotApplicable(
                f"flow solves a network for every token: texts may have {self.most_tokens} tokens, "
                f"one has {longest}."
            )
        top = (stack.across or stack.within)[-1]
        asked = read_row(context, "flow", _row_numbers(top))  # which positions are explained
        with context.clock("flow"):
            flows = [self._of_text(context, stack, row, asked[row]) for row in range(len(top))]
        return explanation_from_scores("flow", context, torch.stack(flows).to(top))

    def _of_text(
        self, context: BatchContext, stack: LayerStack, row: int, weight: Float[Tensor, "Q"]
    ) -> Float[Tensor, "T"]:
        """Σ over the explained positions of their share times the flow from there."""
        present = context.batch.present[row]
        edges, sinks, start = self._edges(stack, row, present)
        total = np.zeros(len(present))
        for position in weight.nonzero().flatten().tolist():
            flows = max_flow(edges, start + position, [sinks + int(t) for t in present.nonzero()])
            total[present.numpy()] += float(weight[position]) * flows
        return torch.from_numpy(total)

    def _edges(self, stack: LayerStack, row: int, present: Tensor) -> tuple[FlowEdges, int, int]:
        """The network of one text: its edges, its first input node, its first top node."""
        text, edges = len(present), []
        node = 0  # nodes of the text come first, level by level
        for layer in stack.within:
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


def _row_numbers(matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B Q Q"]:
    """The identity: the row that is read of it says how much each position counts."""
    one = torch.eye(matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    return one.expand(len(matrix), -1, -1)
