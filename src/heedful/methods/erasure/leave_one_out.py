"""The change of the output without one token or word: leave-one-out, occlusion."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods
from heedful.methods.erasure.coalitions import (
    Players,
    player_counts,
    player_index,
    spread_scores,
    target_and_rest_logits,
    target_value_of_pairs,
)
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import logits_without_each_word
from heedful.numerics.tensor.distributions import tvd
from heedful.numerics.tensor.target import TargetValue, target_value


@methods.register("leave_one_out", kind="saliency", erases="one")
@dataclass(frozen=True)
class LeaveOneOut:
    """v(x) − v(x without t) of the target, or the distance of the whole outputs (of="output").

    The token, or with players="words" every piece of its word, is deleted and the shorter text is
    encoded. The distance is the total variation: for two classes, the absolute change of
    probability.
    """

    of: Literal["probability", "log_odds", "logit", "output"] = "probability"
    players: Players = "tokens"

    @property
    def signed(self) -> bool:
        """A distance of outputs has no sign."""
        return self.of != "output"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        change = self._change(context, target)
        if self.players == "words":
            change = change / context.batch.same_item.sum(-1).clamp(min=1).to(change)
        return explanation_from_scores("leave_one_out", context, change)

    def _change(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B T"]:
        before = context.logits.detach()
        by_word = self.players == "words"
        after = context.cached(logits_without_each_word) if by_word else context.without_each
        if self.of == "output":
            return tvd(after.softmax(-1), before[:, None].softmax(-1))
        target = target.to(before.device)
        each = target[:, None].expand(after.shape[:2])
        return target_value(before, target, self.of)[:, None] - target_value(after, each, self.of)


@methods.register("occlusion", kind="saliency", signed=True, erases="one")
@dataclass(frozen=True)
class Occlusion:
    """v(x) − v(x with t masked): the token, or with players="words" its whole word.

    Zeiler & Fergus (2014). A masked token keeps its position and gets the subject's mask embedding,
    such as that of [MASK]; leave-one-out deletes the token instead.
    """

    of: TargetValue = "probability"
    players: Players = "tokens"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        token_player = player_index(context.batch, self.players)
        number = player_counts(token_player)
        texts = torch.arange(len(token_player))
        rows = texts.repeat_interleave(torch.tensor(number))
        hidden = token_player[rows] == torch.cat([torch.arange(count) for count in number])[:, None]
        # the whole text runs in the same batches as its variants, so that only the mask differs
        nothing = torch.zeros_like(token_player, dtype=torch.bool)
        with context.clock("occlusion"):
            target_and_rest = target_and_rest_logits(
                context, target, torch.cat([texts, rows]), torch.cat([nothing, hidden])
            )
        values = target_value_of_pairs(target_and_rest, self.of)
        whole, without = values[: len(texts)], values[len(texts) :]
        change = torch.split(whole[rows] - without, number)
        return spread_scores("occlusion", context, token_player, change)
