"""The items of a batch: what methods rank and checks remove, and the scores they are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.draws import draw_uniform
from heedful.checks.requested_methods import (
    MethodOrName,
    build_method,
    method_name,
    registry_order,
    score_with_method,
)
from heedful.methods.base import Join, ready_methods
from heedful.models.batch_context import BatchContext

CONTROLS = ("uniform", "random")  # always measured, whether requested or not
DEFAULT_METHODS = ("attention", "input_x_gradient", "one_hot_gradient", "leave_one_out")


@dataclass(frozen=True, eq=False)
class ItemView:
    """The items of each text of a batch, and the tokens they consist of.

    What an item is, the batch says. Tensors over items have I columns, as many as the longest text
    has items.
    """

    context: BatchContext

    @cached_property
    def item_index(self) -> Int[Tensor, "B T"]:
        """The index of the item that each token belongs to; −1 for none."""
        return self.context.batch.item_index

    @cached_property
    def counts(self) -> Int[Tensor, "B"]:
        """The number of items of each text."""
        return self.item_index.amax(-1) + 1

    @cached_property
    def real(self) -> Bool[Tensor, "B I"]:
        """True where a text has an item, False where it is padded."""
        return torch.arange(max(1, int(self.counts.max()))) < self.counts[:, None]

    def tokens(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> Bool[Tensor, "N T"]:
        """The tokens of the marked items of texts rows[n]."""
        item_index = self.item_index[rows]
        return gone.gather(1, item_index.clamp(min=0)) & (item_index >= 0)

    def joined(self, scores: Float64[Tensor, "B T"], join: Join) -> Float64[Tensor, "B I"]:
        """Scores of items from those of their tokens: the sum, or the norm."""
        parts = scores.square() if join == "norm" else scores
        added = torch.zeros(self.real.shape, dtype=torch.float64).scatter_add(
            1, self.item_index.clamp(min=0), parts.masked_fill(self.item_index < 0, 0.0)
        )
        return added.sqrt() if join == "norm" else added


def methods_without_controls() -> tuple[str, ...]:
    """What "all" stands for: every method except the controls."""
    return tuple(name for name in ready_methods() if name not in CONTROLS)


def with_attention(asked: Sequence[MethodOrName]) -> tuple[MethodOrName, ...]:
    """Attention and the requested methods, without the controls."""
    chosen = registry_order(("attention", *asked), methods_without_controls)
    return tuple(one for one in chosen if method_name(one) not in CONTROLS)


class ComparesMethods:
    """A check with a setting for the methods it compares; attention is always one of them."""

    methods: tuple[MethodOrName, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))


def score_items(
    items: ItemView, asked: Sequence[MethodOrName], target: Tensor
) -> tuple[list[Float64[Tensor, "B I"]], dict[str, str]]:
    """Scores by every method, and by method the reason why it has none for some text (NaN)."""
    rows, reasons = [], dict[str, str]()
    for one in asked:
        scores, reason = score_with_method(build_method(one), items.context, target)
        rows.append(items.joined(scores.cpu(), build_method(one).join))
        if reason is not None:
            reasons[method_name(one)] = reason
    return rows, reasons


def random_scores(items: ItemView, purpose: str, *, draws: int) -> Float64[Tensor, "R B I"]:
    """Random scores; 0 where a text has no item."""
    drawn = draw_uniform(items.context, purpose, draws=draws, lengths=items.counts.tolist())
    return drawn.transpose(0, 1)[..., : items.real.shape[1]].masked_fill(~items.real, 0.0)
