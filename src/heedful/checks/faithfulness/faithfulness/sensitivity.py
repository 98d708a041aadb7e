"""Change of explanations under small changes of the word vectors (Yeh et al., 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from heedful.checks.faithfulness.items import ItemView
from heedful.checks.requested_methods import MethodOrName, build_method, score_with_method
from heedful.core.rng import uniform_keys
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.perturbed_embeddings import PerturbedSubject
from heedful.numerics.tensor.distributions import positions_first

SENSITIVITY = "sensitivity"


@dataclass(frozen=True, eq=False)
class SensitivityMetric:
    """Texts whose word vectors are perturbed, each element by a random number in ± radius.

    The radius is a share of the typical element: the root mean square over the words of the text.
    """

    items: ItemView
    radius: float
    perturbations: int

    def columns(
        self, methods: Sequence[MethodOrName], scores: Float64[Tensor, "K B I"]
    ) -> tuple[Float64[Tensor, "K B"], dict[int, str]]:
        """max over draws of ‖φ(x + δ) − φ(x)‖ / ‖φ(x)‖ by method, and why some have no value."""
        context = self.items.context
        farthest = torch.zeros(scores.shape[:2], dtype=torch.float64)
        refused: dict[int, str] = {}
        for draw in range(self.perturbations):
            moved = self._moved(draw)
            for row, one in enumerate(methods):
                found, reason = score_with_method(build_method(one), moved, context.predicted)
                if reason is not None:
                    refused.setdefault(row, reason)
                joined = self.items.joined(found.cpu(), build_method(one).join)
                farthest[row] = torch.maximum(farthest[row], relative_change(joined, scores[row]))
        return farthest, refused

    def _moved(self, draw: int) -> BatchContext:
        """The batch with perturbed vectors; special tokens keep theirs."""
        context = self.items.context
        vectors, mask = context.embedded.detach(), context.batch.mask
        inside = mask[..., None].to(vectors)
        count = (inside.sum((1, 2)) * vectors.shape[-1]).clamp(min=1)
        typical = ((vectors * inside).square().sum((1, 2)) / count).sqrt()
        noise = self._noise(draw).to(vectors) * self.radius * typical[:, None, None]
        moved = PerturbedSubject(context.subject, context.batch, vectors + noise * inside)
        return BatchContext(
            moved, context.batch, context.seed, context.max_batch_tokens, context.clock
        )

    def _noise(self, draw: int) -> Float[Tensor, "B T E"]:
        """Numbers in ± 1 for each element of each word's vector, in text order."""
        context, width = self.items.context, self.items.context.embedded.shape[-1]
        mask, instances = context.batch.mask, context.batch.instances
        lengths = [width * count for count in mask.sum(-1).tolist()]
        purpose = f"{SENSITIVITY}, draw {draw}"
        keys = uniform_keys(context.seed, purpose, instances, draws=1, lengths=lengths)
        drawn = torch.from_numpy(2 * keys - 1).reshape(len(mask), -1, width)
        home = positions_first(mask)[:, : drawn.shape[1], None].expand_as(drawn)
        return drawn.new_zeros(*mask.shape, width).scatter(1, home, drawn)


def relative_change(
    moved: Float64[Tensor, "B I"], before: Float64[Tensor, "B I"]
) -> Float64[Tensor, "B"]:
    """‖moved − before‖ / ‖before‖; NaN where the scores were all 0, or are missing.

    >>> relative_change(torch.tensor([[3.0, 0.0]]).double(), torch.tensor([[3.0, 4.0]]).double())
    tensor([0.8000], dtype=torch.float64)
    """
    size = before.square().sum(-1).sqrt()
    return (moved - before).square().sum(-1).sqrt() / size.masked_fill(size == 0, torch.nan)
