"""Relevance-weighted attention through the layers (Chefer et al., CVPR 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.attention.gradient_rollout import weight_by_gradient
from heedful.methods.attention.layer_stack import (
    ROW_NORMALISATIONS,
    RowNormalisation,
    explanation_from_row,
    require_layers,
    require_start,
)
from heedful.methods.base import Join, ScoreKind, methods, require_one_of
from heedful.methods.patent_notice import warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.lrp import compute_relevance
from heedful.models.perturbed.gradients import compute_gradients
from heedful.numerics.tensor.attention_maps import product_beyond_identity
from heedful.numerics.tensor.target import LINEAR_TARGET_VALUES, LinearTargetValue


@methods.register("relevance_rollout")
@dataclass(frozen=True)
class RelevanceRollout:
    """The relevance of attention times its gradient, positive part, multiplied through the layers.

    Ā = I + E_h((∇A ⊙ R)⁺), last · … · first, where R is what AttnLRP hands down to the weights A
    themselves. Shown is what goes beyond the identities alone, so that the explained position gets
    no score for being itself. All layers and rows as they are, as in the paper; the authors' code
    for BERT divides rows by their sums (normalise="row") and begins at the last layer.
    """

    of: LinearTargetValue = "log_odds"
    normalise: RowNormalisation = "none"
    start_layer: int = 0
    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("of", self.of, LINEAR_TARGET_VALUES)
        require_one_of("normalise", self.normalise, ROW_NORMALISATIONS)

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(context, "relevance_rollout")
        return explanation_from_row("relevance_rollout", context, self.rolled(context, target))

    def rolled(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B T T"]:
        """The whole matrix, less what came by the identities alone."""
        if context.forward.decoder_maps:
            raise NotApplicable(
                "relevance_rollout is for one stack of layers; gradient_rollout has rules for an "
                "encoder and its decoder."
            )
        require_start(self.start_layer, len(context.forward.maps))
        warn_patent()
        shares = compute_relevance(context, target, of=self.of, rule="attn").maps
        layers = weight_by_gradient(shares, compute_gradients(context, target, self.of).maps)
        return product_beyond_identity(
            layers[self.start_layer :], normalise=self.normalise == "row"
        )
