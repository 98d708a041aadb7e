"""DecompX (Modarressi et al., 2023): what each token gave to the logit, through all layers."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.methods.patent_notice import warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.decompx import LinearisedPass, decompose_with_separate_bias
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LINEAR_TARGET_VALUES, LinearTargetValue, logit_direction


@methods.register("decompx")
@dataclass(frozen=True)
class DecompX:
    """The part of the logits that came from a token's state at the first layer.

    Attention weights, scales of norms and slopes f(x)/x of activations are held at what they are,
    so that each layer is affine, and a token's part goes through it on its own. With
    biases="shared" each layer's biases at a position are shared out among the tokens in proportion
    to |⟨bias, part⟩|, and scores of all tokens add up to what is explained; "apart" leaves them out
    of the scores, which with them add up to it. Both sums are seen at run time. What is explained
    is the target's logit, or the log-odds with every rival weighted by its chance.
    """

    biases: Literal["shared", "apart"] = "shared"
    of: LinearTargetValue = "log_odds"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("biases", self.biases, ("shared", "apart"))
        require_one_of("of", self.of, LINEAR_TARGET_VALUES)

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
                warn_patent()  # what relevance propagation hands to the first layer's states
                weights = partial(self._weights, target=target)
                scores, _ = decompose_with_separate_bias(
                    exact, context.batch, context.embedded, weights
                )
            else:
                scores = self._each(exact, context, target)
        return explanation_from_scores("decompx", context, scores)

    def _weights(self, logits: Tensor, target: Tensor) -> Tensor:
        return logit_direction(logits, target.to(logits.device), self.of)

    def _each(
        self, subject: TransformerSubject, context: BatchContext, target: Tensor
    ) -> Float[Tensor, "B T"]:
        """Text after text, each without its padding."""
        batch, rows = context.batch, []
        for row, present in enumerate(batch.present):
            single = batch.keep_tokens(torch.tensor([row]), present[None])
            taken = LinearisedPass.record(subject, single, context.embedded[row, present][None])
            (weights,) = self._weights(taken.logits, target[row : row + 1])
            found = taken.decompose(weights, size=max(1, context.budget // single.ids.numel()))
            placed = found.new_zeros(len(present)).masked_scatter(present.to(found.device), found)
            rows.append(placed)
        return torch.stack(rows)
