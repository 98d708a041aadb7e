"""DecompX (Modarressi et al., 2023): the part of each token in the logits, through all layers."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods, warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.decompx import LinearisedPass, decompose_with_separate_bias
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LinearTargetValue, logit_direction


@methods.register("decompx", kind="saliency", signed=True)
@dataclass(frozen=True)
class DecompX:
    """The part of the logits that comes from a token's state at the first layer.

    Attention weights, scales of layer norms and slopes f(x)/x of activations are held fixed, so
    that each layer is affine and the part of a token passes through it separately. With
    biases="shared" the biases of a layer at a position are distributed over the tokens in
    proportion to |⟨bias, part⟩|, and the scores of all tokens sum to the explained value; "apart"
    keeps biases out of the scores, and only scores and biases together sum to it. Both sums are
    verified at run time. The explained value is the target's logit, or its log-odds, in which every
    other class is weighted by its probability.
    """

    biases: Literal["shared", "apart"] = "shared"
    of: LinearTargetValue = "log_odds"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        subject = unwrap_perturbed(context.subject)
        if not isinstance(subject, TransformerSubject):
            raise NotApplicable(
                "decompx follows the states through the layers; this model has one attention."
            )
        if subject.task == "next target token":
            raise NotApplicable(
                "decompx follows one stack of layers; this model has an encoder and a decoder."
            )
        exact: TransformerSubject = subject.full_precision()
        with context.clock("decompx"):
            if self.biases == "apart":
                warn_patent()  # computed by relevance propagation down to the first layer's states
                weights = partial(self._weights, target=target)
                scores, _ = decompose_with_separate_bias(
                    exact, context.batch, context.embedded, weights
                )
            else:
                scores = self._by_text(exact, context, target)
        return explanation_from_scores("decompx", context, scores)

    def _weights(self, logits: Tensor, target: Tensor) -> Tensor:
        return logit_direction(logits, target.to(logits.device), self.of)

    def _by_text(
        self, subject: TransformerSubject, context: BatchContext, target: Tensor
    ) -> Float[Tensor, "B T"]:
        """Scores text by text, each without its padding."""
        batch, rows = context.batch, []
        for row, present in enumerate(batch.present):
            single = batch.keep_tokens(torch.tensor([row]), present[None])
            taken = LinearisedPass.record(subject, single, context.embedded[row, present][None])
            (weights,) = self._weights(taken.logits, target[row : row + 1])
            found = taken.decompose(weights, size=max(1, context.budget // single.ids.numel()))
            placed = found.new_zeros(len(present)).masked_scatter(present.to(found.device), found)
            rows.append(placed)
        return torch.stack(rows)
