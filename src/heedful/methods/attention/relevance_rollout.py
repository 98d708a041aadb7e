"""Relevance-weighted attention through the layers (Chefer et al., CVPR 2021)."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.attention.gradient_rollout import weight_by_gradient
from heedful.methods.attention.layer_stack import (
    RowNormalisation,
    explanation_from_row,
    require_layers,
    require_start,
)
from heedful.methods.base import methods, warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.lrp import compute_relevance
from heedful.models.perturbed.gradients import compute_gradients
from heedful.numerics.tensor.attention_maps import product_beyond_identity
from heedful.numerics.tensor.target import LinearTargetValue


@methods.register("relevance_rollout", kind="attention", patented=True)
@dataclass(frozen=True)
class RelevanceRollout:
    """The relevance of attention times its gradient, positive part, multiplied through layers.

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
        return explanation_from_row("relevance_rollout", context, self.rolled(context, target))

    def rolled(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B T T"]:
        """The whole matrix, minus the product of the identities alone."""
        if context.forward.decoder_maps:
            raise NotApplicable(
                "relevance_rollout is for models with one stack of layers; for an encoder–decoder "
                "use gradient_rollout."
            )
        require_start(self.start_layer, len(context.forward.maps))
        warn_patent()
        shares = compute_relevance(context, target, of=self.of, rule="attn").maps
        layers = weight_by_gradient(shares, compute_gradients(context, target, self.of).maps)
        return product_beyond_identity(
            layers[self.start_layer :], normalise=self.normalise == "row"
        )
