"""Relevance-weighted attention through the layers (Chefer et al., CVPR 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.attention.gradient_rollout import weighted
from heedful.methods.attention.layer_stack import (
    NORMALISE,
    Normalise,
    require_layers,
    require_start,
    row_on_words,
)
from heedful.methods.base import Join, Kind, methods, require_one_of
from heedful.methods.patent_notice import tell_patent
from heedful.models.batch_context import Sitting
from heedful.models.internals.lrp import relevance
from heedful.models.perturbed.gradients import slopes
from heedful.numerics.tensor.attention_maps import beyond_itself
from heedful.numerics.tensor.target import LINEAR, Linear


@methods.register("relevance_rollout")
@dataclass(frozen=True)
class RelevanceRollout:
    """The relevance of attention times its gradient, positive part, multiplied through the layers.

    Ā = I + E_h((∇A ⊙ R)⁺), last · … · first, where R is what AttnLRP hands down to the weights A
    themselves. Shown is what goes beyond the identities alone, so that the explained position gets
    no score for being itself. All layers and rows as they are, as in the paper; the authors' code
    for BERT divides rows by their sums (normalise="row") and begins at the last layer.
    """

    of: Linear = "log_odds"
    normalise: Normalise = "none"
    start_layer: int = 0
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("of", self.of, LINEAR)
        require_one_of("normalise", self.normalise, NORMALISE)

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(sitting, "relevance_rollout")
        return row_on_words("relevance_rollout", sitting, self.rolled(sitting, target))

    def rolled(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Float[Tensor, "B T T"]:
        """The whole matrix, less what came by the identities alone."""
        if sitting.forward.decoder_maps:
            raise NotApplicable(
                "relevance_rollout is for one stack of layers; gradient_rollout has rules for an "
                "encoder and its decoder."
            )
        require_start(self.start_layer, len(sitting.forward.maps))
        tell_patent()
        shares = relevance(sitting, target, of=self.of, rule="attn").maps
        layers = weighted(shares, slopes(sitting, target, self.of).maps)
        return beyond_itself(layers[self.start_layer :], normalise=self.normalise == "row")
