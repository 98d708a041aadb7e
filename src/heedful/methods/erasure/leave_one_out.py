"""Leave one out: how the output changes when a token, or a whole word, is deleted."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, Kind, methods, on_words, require_one_of
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.delete_words import same_word, without_each_word
from heedful.numerics.tensor.distributions import tvd
from heedful.numerics.tensor.target import value_of


@methods.register("leave_one_out")
@dataclass(frozen=True)
class LeaveOneOut:
    """v(x) − v(x without t) of the target, or the distance of the whole outputs (of="output").

    The token, or with players="words" every piece of its word, is deleted; later ones move up, the
    text is encoded anew. For two classes the distance is the absolute change of probability.
    """

    of: Literal["probability", "log_odds", "logit", "output"] = "probability"
    players: Literal["tokens", "words"] = "tokens"
    kind: ClassVar[Kind] = "saliency"
    join: ClassVar[Join] = "sum"

    def __post_init__(self) -> None:
        require_one_of("of", self.of, ("probability", "log_odds", "logit", "output"))
        require_one_of("players", self.players, ("tokens", "words"))

    @property
    def signed(self) -> bool:
        """A distance of outputs has no sign."""
        return self.of != "output"

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        if self.players == "tokens":
            return on_words("leave_one_out", sitting, self._lost(sitting, target))
        pieces = same_word(sitting.batch).sum(-1).clamp(min=1)
        lost = self._lost(sitting, target)
        return on_words("leave_one_out", sitting, lost / pieces.to(lost))

    def _lost(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Float[Tensor, "B T"]:
        before = sitting.logits.detach()
        by_word = self.players == "words"
        after = sitting.once(without_each_word) if by_word else sitting.without_each
        if self.of == "output":
            return tvd(after.softmax(-1), before[:, None].softmax(-1))
        target = target.to(before.device)
        each = target[:, None].expand(after.shape[:2])
        return value_of(before, target, self.of)[:, None] - value_of(after, each, self.of)
