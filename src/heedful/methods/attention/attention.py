"""The attention weights themselves, and those times their gradient."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    HEADS,
    Heads,
    over_heads,
    read_row,
    require_layers,
    within,
)
from heedful.methods.base import Join, Kind, methods, on_words, require_one_of
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.gradients import slopes
from heedful.models.protocols import HasLayers
from heedful.numerics.tensor.target import OF, Of, value_of


@methods.register("attention")
@dataclass(frozen=True)
class Attention:
    """The weights the model attends with; the same for every target.

    Which of a transformer's attentions these are is the subject's to say; `layer`, `head` and
    `heads` choose others. They are shown as a distribution over the words.
    """

    layer: int | None = None
    head: int | None = None
    heads: Heads = "mean"
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("heads", self.heads, HEADS)

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - attention knows no target
    ) -> Explanation:
        if self == Attention():
            return on_words("attention", sitting, sitting.forward.attention)
        require_layers(sitting, "attention of a chosen layer or head")
        maps = sitting.forward.maps
        layer = within("layer", -1 if self.layer is None else self.layer, len(maps))
        weights = maps[layer]
        if self.head is not None:
            head = within("head", self.head, weights.shape[1])
            weights = weights[:, head : head + 1]
        row = read_row(sitting, "attention", over_heads(weights, self.heads))
        row = row * sitting.batch.mask
        total = row.sum(-1, keepdim=True)
        return on_words("attention", sitting, row / torch.where(total > 0, total, 1.0))


@methods.register("attention_x_gradient")
@dataclass(frozen=True)
class AttentionXGradient:
    """α · ∂f/∂α: what each weight under audit adds to the output, as far as that is linear.

    Heads, layers and positions under audit are added up.
    """

    of: Of = "probability"
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("of", self.of, OF)

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        rows = sitting.rows
        scores = rows * self._slope(sitting, target)
        return on_words(
            "attention_x_gradient", sitting, scores if rows.dim() == 2 else scores.sum(1)
        )

    def _slope(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Float[Tensor, "B *R T"]:
        if isinstance(sitting.subject, HasLayers) and sitting.forward.maps:
            maps = slopes(sitting, target, self.of).maps
            return sitting.subject.rows_of(sitting.batch, maps)
        with torch.enable_grad():
            leaf = sitting.rows.clone().requires_grad_()
            value = value_of(sitting.decode(leaf), target, self.of)
            (slope,) = autograd.grad(value.sum(), leaf)
        return slope
