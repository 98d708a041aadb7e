"""Gradient-weighted attention through the layers (Chefer et al., ICCV 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import require_layers, row_on_words, without_identity
from heedful.methods.base import Join, Kind, methods, require_one_of
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.gradients import slopes
from heedful.numerics.tensor.attention_maps import relevance, relevance_across
from heedful.numerics.tensor.target import OF, Of


@methods.register("gradient_rollout")
@dataclass(frozen=True)
class GradientRollout:
    """Attention times its gradient, positive part, mean of the heads, added up through the layers.

    Ā = E_h((∇A ⊙ A)⁺), R ← R + Ā R from R = I: the product of I + Ā, last · … · first; in an
    encoder–decoder with the rules for cross-attention. What is shown is R − I, so that the
    explained position gets no score for being itself. The size of the gradient matters here: that
    of the probability vanishes where a model is sure, so the log-odds are explained (the paper
    takes the logit, which models of two classes may not have for each).
    """

    of: Of = "log_odds"
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("of", self.of, OF)

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        require_layers(sitting, "gradient_rollout")
        return row_on_words("gradient_rollout", sitting, self.relevance(sitting, target))

    def relevance(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Float[Tensor, "B Q K"]:
        """R − I of one stack; of an encoder–decoder the relevance of the text to each position."""
        forward, slope = sitting.forward, slopes(sitting, target, self.of)
        maps = weighted(forward.maps, slope.maps)
        if not forward.decoder_maps:
            return without_identity(relevance(maps))
        text = relevance(weighted(forward.encoder_maps, slope.encoder_maps))
        return relevance_across(text, weighted(forward.decoder_maps, slope.decoder_maps), maps)


def weighted(
    maps: tuple[Float[Tensor, "B H Q K"], ...], slopes: tuple[Float[Tensor, "B H Q K"], ...]
) -> list[Float[Tensor, "B Q K"]]:
    """E_h((∇A ⊙ A)⁺) of each layer: clamped before the mean of the heads."""
    pairs = zip(maps, slopes, strict=True)
    return [(one * slope.to(one)).clamp(min=0).mean(1) for one, slope in pairs]
