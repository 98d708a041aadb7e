"""States taken apart into what each token gave to them, layer by layer: ALTI and GlobEnc."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    ROW_NORMALISATIONS,
    RowNormalisation,
    explanation_from_row,
)
from heedful.methods.base import Join, ScoreKind, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import ContributionsComputation
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.vector_parts import normalise_rows


@methods.register("alti")
@dataclass(frozen=True)
class Alti:
    """Tokens whose part brings a state nearer (Ferrando et al., 2022), through the layers.

    c = max(0, ‖y‖₁ − ‖y − T(x)‖₁), where T(x) is what a token gives to the state y behind
    attention, residual and norm included; rows sum to 1 and are multiplied last · … · first. That
    all T and the biases make up y is seen at run time. One pass, the same for every target.
    """

    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        layers = [normalise_rows(one) for one in context.cached(ContributionsComputation("alti"))]
        return explanation_from_row("alti", context, multiply_layers(layers))


@methods.register("globenc")
@dataclass(frozen=True)
class GlobEnc:
    """The size of what tokens give to states (Modarressi et al., 2022), through the layers.

    ‖T(x)‖₂ behind both norms of a layer, its feed-forward part left out but for the residual beside
    it; multiplied last · … · first. As published rows are not made to sum to 1 (normalise="row"
    does): a layer is only divided by its largest row, which leaves the ranking as it is. One pass,
    the same for every target.
    """

    normalise: RowNormalisation = "none"
    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("normalise", self.normalise, ROW_NORMALISATIONS)

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        layers = [
            self._scaled(one, context)
            for one in context.cached(ContributionsComputation("globenc"))
        ]
        return explanation_from_row("globenc", context, multiply_layers(layers))

    def _scaled(
        self, sizes: Float[Tensor, "B T T"], context: BatchContext
    ) -> Float[Tensor, "B T T"]:
        if self.normalise == "row":
            return normalise_rows(sizes)
        inside = context.batch.present.to(sizes.device)
        most = sizes.sum(-1).masked_fill(~inside, 0.0).amax(-1)[:, None, None]
        return sizes / most.clamp(min=1e-30)
