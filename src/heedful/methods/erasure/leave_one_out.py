"""Leave-one-out: the change of the output when a token, or a whole word, is deleted."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.delete_words import logits_without_each_word, same_word_mask
from heedful.numerics.tensor.distributions import tvd
from heedful.numerics.tensor.target import target_value


@methods.register("leave_one_out", kind="saliency", erases="one")
@dataclass(frozen=True)
class LeaveOneOut:
    """v(x) − v(x without t) of the target, or the distance of the whole outputs (of="output").

    The token, or with players="words" every piece of its word, is deleted and the shorter text is
    encoded. The distance is the total variation: for two classes, the absolute change of
    probability.
    """

    of: Literal["probability", "log_odds", "logit", "output"] = "probability"
    players: Literal["tokens", "words"] = "tokens"

    @property
    def signed(self) -> bool:
        """A distance of outputs has no sign."""
        return self.of != "output"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        change = self._change(context, target)
        if self.players == "words":
            change = change / same_word_mask(context.batch).sum(-1).clamp(min=1).to(change)
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
