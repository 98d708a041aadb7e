"""Gradient-weighted attention through the layers (Chefer et al., ICCV 2021)."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    explanation_from_row,
    require_layers,
    without_identity,
)
from heedful.methods.base import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import compute_gradients
from heedful.numerics.tensor.attention_maps import accumulate_cross_relevance, accumulate_relevance
from heedful.numerics.tensor.target import TargetValue


@methods.register("gradient_rollout", kind="attention")
@dataclass(frozen=True)
class GradientRollout:
    """Attention times its gradient, positive part, mean over heads, accumulated through layers.

    Ā = E_h((∇A ⊙ A)⁺), R ← R + Ā R from R = I: the product of I + Ā, last · … · first; an
    encoder–decoder follows the rules for cross-attention. The scores are R − I, so that the
    explained position gets no score for itself. The scale of the gradient matters: that of the
    probability vanishes where a model is confident, so the log-odds are explained (the paper uses
    the logit, which models of two classes may not have per class).
    """

    of: TargetValue = "log_odds"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(context, "gradient_rollout")
        return explanation_from_row("gradient_rollout", context, self.relevance(context, target))

    def relevance(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B Q K"]:
        """R − I of one stack; in an encoder–decoder, the relevance of the text to each position."""
        forward, slope = context.forward, compute_gradients(context, target, self.of)
        maps = weight_by_gradient(forward.maps, slope.maps)
        if not forward.decoder_maps:
            return without_identity(accumulate_relevance(maps))
        text = accumulate_relevance(weight_by_gradient(forward.encoder_maps, slope.encoder_maps))
        return accumulate_cross_relevance(
            text, weight_by_gradient(forward.decoder_maps, slope.decoder_maps), maps
        )


def weight_by_gradient(
    maps: tuple[Float[Tensor, "B H Q K"], ...], slopes: tuple[Float[Tensor, "B H Q K"], ...]
) -> list[Float[Tensor, "B Q K"]]:
    """E_h((∇A ⊙ A)⁺) of each layer, clamped before the mean over heads."""
    pairs = zip(maps, slopes, strict=True)
    return [(weights * slope.to(weights)).clamp(min=0).mean(1) for weights, slope in pairs]
