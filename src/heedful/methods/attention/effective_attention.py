"""Attention less what of it has no effect whatever (Brunner et al., 2020)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder, QueryDecoder
from heedful.methods.attention.layer_stack import HEADS, Heads, over_heads, read_row, within
from heedful.methods.base import Join, Kind, methods, on_words, require_one_of
from heedful.models.batch_context import Sitting
from heedful.models.internals.effective_attention import Inside, SeenIn, tolerance_of
from heedful.numerics.tensor.null_space import taken_apart

NAME = "effective_attention"


@methods.register(NAME)
@dataclass(frozen=True)
class EffectiveAttention:
    """A − A N Nᵀ, where N spans the left null space of what the keys carry: no distribution.

    In a transformer a key carries its value behind the output map, head by head; `layer`, `head`
    and `heads` choose as those of `attention`. With one attention over states it carries what the
    decoder reads of a state: if that is linear in C classes, at most C − 1 numbers.
    """

    layer: int | None = None
    head: int | None = None
    heads: Heads = "mean"
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("heads", self.heads, HEADS)

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        if not sitting.forward.maps:
            if self != EffectiveAttention():
                raise NotApplicable(f"{NAME} of a layer or head: this model has one attention.")
            return on_words(NAME, sitting, _of_one(sitting))
        layers, head = self._chosen(sitting)
        maps = [sitting.once(SeenIn(layer)).effective for layer in layers]
        if head is not None:
            maps = [one[:, head : head + 1] for one in maps]
        rows = [read_row(sitting, NAME, over_heads(one, self.heads)) for one in maps]
        return on_words(NAME, sitting, torch.stack(rows).mean(0).to(sitting.forward.logits.dtype))

    def _chosen(self, sitting: Sitting) -> tuple[list[int], int | None]:
        """The layers and the head: those under audit unless others are named."""
        maps, subject = sitting.forward.maps, sitting.subject
        if self == EffectiveAttention() and isinstance(subject, Inside):
            held = [layer for layer in range(len(maps)) if subject.scope.holds(layer)]
            return held, subject.scope.head
        layer = within("layer", -1 if self.layer is None else self.layer, len(maps))
        head = None if self.head is None else within("head", self.head, maps[layer].shape[1])
        return [layer], head


def _of_one(sitting: Sitting) -> Float[Tensor, "B T"]:
    """One attention over states, by what the decoder reads of each; its output must stay."""
    decoder, own = sitting.decode, sitting.forward.attention
    if isinstance(decoder, LinearDecoder):  # softmax does not see what all classes share
        read = decoder.contributions - decoder.contributions.mean(-1, keepdim=True)
    elif isinstance(decoder, QueryDecoder):
        read = decoder.read
    else:
        raise NotApplicable(
            f"{NAME} needs to know what the decoder reads of each state; this one does not say."
        )
    found: Float64[Tensor, "B T"] = torch.zeros_like(own, dtype=torch.float64)
    for text, mask in enumerate(sitting.batch.mask):
        row, carried = own[text, mask].double()[None], read[text, mask].double()
        if len(carried):
            found[text, mask] = taken_apart(row, carried, tolerance=tolerance_of(own)).effective[0]
    scores = found.to(own)
    before, after = (decoder(one).softmax(-1) for one in (own, scores))
    if not float((after - before).abs().max()) <= 1e-4:
        raise NotApplicable(f"{NAME} is refused: the output under it is not the model's own.")
    return scores
