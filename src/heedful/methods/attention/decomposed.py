"""Decompositions of hidden states into the contributions of tokens: ALTI and GlobEnc."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    RowNormalisation,
    explanation_from_row,
)
from heedful.methods.base import methods
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import ContributionsComputation
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.vector_parts import normalise_rows


@methods.register("alti", kind="attention")
@dataclass(frozen=True)
class Alti:
    """Contributions by the L1 distance to the state (Ferrando et al., 2022), rolled out.

    c = max(0, ‖y‖₁ − ‖y − T(x)‖₁), where T(x) is the contribution of a token to the state y after
    attention, residual and layer norm; rows are normalised to sum to 1 and multiplied
    last · … · first. That all T and the biases sum to y is verified at run time. Takes one pass;
    the same for every target.
    """

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        layers = [normalise_rows(one) for one in context.cached(ContributionsComputation("alti"))]
        return explanation_from_row("alti", context, multiply_layers(layers))


@methods.register("globenc", kind="attention")
@dataclass(frozen=True)
class GlobEnc:
    """Norms of the tokens' contributions to states (Modarressi et al., 2022), rolled out.

    ‖T(x)‖₂ after both layer norms of a layer, without its feed-forward part but with the residual
    around it; multiplied last · … · first. As published, rows are not normalised (normalise="row"
    does so): each layer is only divided by its largest row sum, which does not change the ranking.
    Takes one pass; the same for every target.
    """

    normalise: RowNormalisation = "none"

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        layers = [
            self._scale(norms, context)
            for norms in context.cached(ContributionsComputation("globenc"))
        ]
        return explanation_from_row("globenc", context, multiply_layers(layers))

    def _scale(
        self, norms: Float[Tensor, "B T T"], context: BatchContext
    ) -> Float[Tensor, "B T T"]:
        if self.normalise == "row":
            return normalise_rows(norms)
        present = context.batch.present.to(norms.device)
        largest = norms.sum(-1).masked_fill(~present, 0.0).amax(-1)[:, None, None]
        return norms / largest.clamp(min=1e-30)
