"""Leave one out: how the output changes when a token, or a whole word, is deleted."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.delete_words import logits_without_each_word, same_word_mask
from heedful.numerics.tensor.distributions import tvd
from heedful.numerics.tensor.target import target_value


@methods.register("leave_one_out")
@dataclass(frozen=True)
class LeaveOneOut:
    """v(x) − v(x without t) of the target, or the distance of the whole outputs (of="output").

    The token, or with players="words" every piece of its word, is deleted; later ones move up, the
    text is encoded anew. For two classes the distance is the absolute change of probability.
    """

    of: Literal["probability", "log_odds", "logit", "output"] = "probability"
    players: Literal["tokens", "words"] = "tokens"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"

    def __post_init__(self) -> None:
        require_one_of("of", self.of, ("probability", "log_odds", "logit", "output"))
        require_one_of("players", self.players, ("tokens", "words"))

    @property
    def signed(self) -> bool:
        """A distance of outputs has no sign."""
        return self.of != "output"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        if self.players == "tokens":
            return explanation_from_scores("leave_one_out", context, self._lost(context, target))
        pieces = same_word_mask(context.batch).sum(-1).clamp(min=1)
        lost = self._lost(context, target)
        return explanation_from_scores("leave_one_out", context, lost / pieces.to(lost))

    def _lost(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B T"]:
        before = context.logits.detach()
        by_word = self.players == "words"
        after = context.cached(logits_without_each_word) if by_word else context.without_each
        if self.of == "output":
            return tvd(after.softmax(-1), before[:, None].softmax(-1))
        target = target.to(before.device)
        each = target[:, None].expand(after.shape[:2])
        return target_value(before, target, self.of)[:, None] - target_value(after, each, self.of)
