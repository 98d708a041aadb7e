"""Integrated gradients (Sundararajan et al., 2017), with as many nodes as completeness needs."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.mask_words import get_mask_embedding
from heedful.models.perturbed.path_gradients import StraightPath
from heedful.numerics.tensor.quadrature import clenshaw_curtis, warped_clenshaw_curtis
from heedful.numerics.tensor.target import TARGET_VALUES, TargetValue

STEPS = (12, 24, 48)  # of the rules for the whole way, each of which keeps the nodes before it
PART, DEEPEST = 16, 20  # steps in a part of it, and how often one may be halved
SHARE = 16  # a part is done when it is off by this share of the tolerance


@methods.register("integrated_gradients")
@dataclass(frozen=True)
class IntegratedGradients:
    """⟨x − b, ∫ ∂f/∂x da⟩ along the straight way from a text of blanks b to the text x.

    The blank is the subject's own ([MASK], say), or zeros; special tokens and places stay as they
    are. The scores of the tokens add up to f(x) − f(b), to within `tolerance`: each text gets 13,
    25 or 49 nodes, and where that is not enough the way is halved wherever its part is off.
    """

    tolerance: float = 1e-3
    baseline: Literal["blank", "zero"] = "blank"
    of: TargetValue = "probability"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("baseline", self.baseline, ("blank", "zero"))
        require_one_of("of", self.of, TARGET_VALUES)
        if not self.tolerance > 0:
            raise ConfigError(f"tolerance must be above 0, not {self.tolerance}.")

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        way = StraightPath(context, self._begins(context), target, self.of)
        with context.clock("integrated_gradients"):
            scores, left = self._at_once(way)
            if len(left):
                scores[left] = self._in_parts(way, left)
        return explanation_from_scores("integrated_gradients", context, scores)

    def _begins(self, context: BatchContext) -> Float[Tensor, "B T E"]:
        vectors = context.embedded.detach()
        blank = get_mask_embedding(context).vector.to(vectors)
        start = torch.zeros_like(blank) if self.baseline == "zero" else blank
        return torch.where(context.batch.mask[..., None], start, vectors)

    def _at_once(self, way: StraightPath) -> tuple[Float[Tensor, "B T"], Int[Tensor, "M"]]:
        """The whole way by nested rules; also the texts for which that is not enough."""
        scores = way.start_vectors.new_zeros(way.start_vectors.shape[:2])
        left = torch.arange(len(scores))
        parts, values = way.grid(left, _tensor(warped_clenshaw_curtis(STEPS[0])[0], scores))
        for steps in STEPS:
            nodes, weights = (_tensor(one, scores) for one in warped_clenshaw_curtis(steps))
            if len(parts) < len(nodes):
                parts, values = _between(parts), _between(values)
                parts[1::2], values[1::2] = way.grid(left, nodes[1::2])
            whole = torch.tensordot(weights, parts, 1)
            done = (whole.sum(-1) - (values[-1] - values[0])).abs() <= self.tolerance
            scores[left[done]] = whole[done]
            left, parts, values = left[~done], parts[:, ~done], values[:, ~done]
            if not len(left):
                break
        return scores, left

    def _in_parts(self, way: StraightPath, texts: Int[Tensor, "M"]) -> Float[Tensor, "M T"]:
        """The way in parts, halved where the output moves by more than the part accounts for.

        A part knows what it must add up to: the output at its two ends.
        """
        scores = way.start_vectors.new_zeros(len(texts), way.start_vectors.shape[1])
        nodes, weights = (_tensor(one, scores) for one in clenshaw_curtis(PART))
        owner, low = torch.arange(len(texts)).repeat(2), _tensor([0.0, 0.5], scores)
        low, width = low.repeat_interleave(len(texts)), 0.5
        for _ in range(DEEPEST):
            steps = (low[:, None] + width * nodes).flatten()
            parts, values = way.at(texts[owner].repeat_interleave(len(nodes)), steps)
            parts = parts.reshape(len(low), len(nodes), -1)
            values = values.reshape(len(low), len(nodes))
            found = width * torch.einsum("n,pnt->pt", weights, parts)
            gap = (found.sum(-1) - (values[:, -1] - values[:, 0])).abs()
            done = gap <= self.tolerance / SHARE
            scores.index_add_(0, owner[done], found[done])
            if bool(done.all()):
                return scores
            width /= 2
            owner, low = owner[~done].repeat(2), torch.cat([low[~done], low[~done] + width])
        raise NotApplicable(
            "integrated_gradients needs an output that moves without jumps; on the way from the "
            f"blank text it jumps by {float(gap.max()):.2g} at {float(low[0]):.3f} of the way."
        )


def _tensor(numbers: object, like: Tensor) -> Tensor:
    return torch.as_tensor(numbers).to(like)


def _between(kept: Float[Tensor, "N *K"]) -> Float[Tensor, "M *K"]:
    """Room for a new node between every two."""
    wide = kept.new_zeros(2 * len(kept) - 1, *kept.shape[1:])
    wide[::2] = kept
    return wide
