"""Attention combined through the layers: rollout, flow, gradient and relevance rollout."""

from collections.abc import Sequence
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
from heedful.methods.attention.layer_stack import (
    HeadReduction,
    LayerStack,
    RowNormalisation,
    explanation_from_row,
    read_row,
    require_layers,
    require_start,
    stack_layers,
)
from heedful.methods.base import explanation_from_scores, methods, warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.lrp import compute_relevance
from heedful.models.perturbed.gradients import compute_gradients
from heedful.numerics.tensor.attention_maps import (
    accumulate_cross_relevance,
    accumulate_relevance,
    add_residual,
    cross_rollout,
    max_flow,
    multiply_layers,
    product_beyond_identity,
)
from heedful.numerics.tensor.target import LinearTargetValue, TargetValue

FlowEdges = list[tuple[int, int, NDArray[np.float64]]]


@methods.register("rollout", kind="attention")
@dataclass(frozen=True)
class Rollout:
    """Attention multiplied through the layers (Abnar & Zuidema, 2020), residuals included.

    Each layer is (1 − residual) · A + residual · I with its heads reduced; the product is
    last · … · first. Rows that sum to 1 keep that sum; rows of a model with attention sinks sum to
    less and are normalised only with normalise="row". The same for every target.
    """

    heads: HeadReduction = "mean"
    residual: Fraction = 0.5
    normalise: RowNormalisation = "none"
    start_layer: int = 0

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        stack = stack_layers(context, "rollout", heads=self.heads, start=self.start_layer)
        rolled = multiply_layers(self._layers(stack.encoder_layers))
        if stack.across:
            within = self._layers(stack.decoder)
            rolled = cross_rollout(rolled, within, stack.across, residual=self.residual)
        return explanation_from_row("rollout", context, rolled)

    def _layers(self, maps: tuple[Tensor, ...]) -> list[Float[Tensor, "B T T"]]:
        rows = self.normalise == "row"
        return [add_residual(layer, residual=self.residual, normalise=rows) for layer in maps]


@methods.register("flow", kind="attention", slow=True)
@dataclass(frozen=True)
class Flow:
    """The maximum flow from the explained position to each token (Abnar & Zuidema, 2020).

    Weights are capacities. Layers are as in `rollout`, heads are averaged; the two attentions of a
    decoder layer are two steps. Each token is solved on its own, so flows do not sum to 1; none is
    below the token's rollout. One network is solved per token, and per position where several are
    explained, so texts have at most 64 tokens.
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
        # the row that is read from the identity is the weight of each position in the explanation
        identity = torch.eye(top.shape[1], dtype=top.dtype, device=top.device)
        weight = read_row(context, "flow", identity.expand(len(top), -1, -1))
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
        edges, start = self._edges(stack, row, len(present))
        total = np.zeros(len(present))
        for position in weight.nonzero().flatten().tolist():
            flows = max_flow(edges, start + position, present.nonzero().flatten().tolist())
            total[present.numpy()] += float(weight[position]) * flows
        return torch.from_numpy(total)

    def _edges(self, stack: LayerStack, row: int, text: int) -> tuple[FlowEdges, int]:
        """The flow network of one text, and its first top node; the input nodes are the first."""
        edges: FlowEdges = []
        node = 0  # nodes of the text come first, layer by layer
        for layer in stack.encoder_layers:
            edges.append((node + text, node, self._layer(layer[row])))
            node += text
        if not stack.across:
            return edges, node
        below, count = node + text, stack.decoder[0].shape[-1]  # the decoder's own tokens
        kept = np.eye(count) * self.residual
        for own, cross in zip(stack.decoder, stack.across, strict=True):
            from_text = (1 - self.residual) * cross[row].double().numpy()
            edges.append((below + count, below, self._layer(own[row])))
            edges.append((below + 2 * count, below + count, kept))
            edges.append((below + 2 * count, node, from_text))
            below += 2 * count
        return edges, below

    def _layer(self, weights: Float[Tensor, "T T"]) -> NDArray[np.float64]:
        mixed = add_residual(weights[None].double(), residual=self.residual, normalise=False)
        return np.asarray(mixed[0].numpy())


@methods.register("gradient_rollout", kind="attention")
@dataclass(frozen=True)
class GradientRollout:
    """Attention times its gradient, accumulated through layers (Chefer et al., ICCV 2021).

    Ā = E_h((∇A ⊙ A)⁺), R ← R + Ā R from R = I: the product of I + Ā, last · … · first; an
    encoder–decoder follows the rules for cross-attention. The scores are R − I, so that the
    explained position gets no score for itself. The scale of the gradient matters: that of the
    probability vanishes where a model is confident, so the log-odds are explained (the paper uses
    the logit, which models of two classes may not have per class).
    """

    of: TargetValue = "log_odds"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(context, "gradient_rollout")
        return explanation_from_row("gradient_rollout", context, self._relevance(context, target))

    def _relevance(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B Q K"]:
        """R − I of one stack; in an encoder–decoder, the relevance of the text to each position."""
        forward, slope = context.forward, compute_gradients(context, target, self.of)
        maps = weight_by_gradient(forward.maps, slope.maps)
        if not forward.decoder_maps:
            relevance = accumulate_relevance(maps)
            return relevance - torch.eye(relevance.shape[-1]).to(relevance)
        text = accumulate_relevance(weight_by_gradient(forward.encoder_maps, slope.encoder_maps))
        within = weight_by_gradient(forward.decoder_maps, slope.decoder_maps)
        return accumulate_cross_relevance(text, within, maps)


@methods.register("relevance_rollout", kind="attention", patented=True)
@dataclass(frozen=True)
class RelevanceRollout:
    """Relevance of attention times its gradient, through layers (Chefer et al., CVPR 2021).

    Ā = I + E_h((∇A ⊙ R)⁺), last · … · first, where R is the relevance that AttnLRP assigns to the
    weights A. The product of the identities alone is subtracted, so that the explained position
    gets no score for itself. As in the paper, all layers are used and rows are not normalised; the
    authors' code for BERT normalises rows (normalise="row") and starts at the last layer.
    """

    of: LinearTargetValue = "log_odds"
    normalise: RowNormalisation = "none"
    start_layer: int = 0

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(context, "relevance_rollout")
        if context.forward.decoder_maps:
            raise NotApplicable(
                "relevance_rollout is for models with one stack of layers; for an encoder–decoder "
                "use gradient_rollout."
            )
        require_start(self.start_layer, len(context.forward.maps))
        warn_patent()
        shares = compute_relevance(context, target, of=self.of, rule="attn").maps
        layers = weight_by_gradient(shares, compute_gradients(context, target, self.of).maps)
        matrix = product_beyond_identity(
            layers[self.start_layer :], normalise=self.normalise == "row"
        )
        return explanation_from_row("relevance_rollout", context, matrix)


def weight_by_gradient(
    maps: Sequence[Float[Tensor, "B H Q K"]], slopes: Sequence[Float[Tensor, "B H Q K"]]
) -> list[Float[Tensor, "B Q K"]]:
    """E_h((∇A ⊙ A)⁺) of each layer, clamped before the mean over heads."""
    pairs = zip(maps, slopes, strict=True)
    return [(weights * slope.to(weights)).clamp(min=0).mean(1) for weights, slope in pairs]
