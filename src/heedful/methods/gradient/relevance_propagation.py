"""Relevance of words by rules for each layer: LRP and DecompX."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.settings import Fraction, PositiveFloat
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods, warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.decompx import LinearisedPass, decompose_with_separate_bias
from heedful.models.internals.lrp import LRPRule, Relevance, compute_relevance
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.recurrent.lrp import RelevanceLedger, word_relevance
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LinearTargetValue, logit_direction

DEFAULT_EPSILON = 1e-3  # the stabiliser of Arras et al.
NEAR = 1e-6  # relative loss of relevance that a recurrent model may have


@methods.register("lrp", kind="saliency", signed=True, patented=True)
@dataclass(frozen=True)
class LRP:
    """The logits propagated back to the words, layer by layer, so that their sum is conserved.

    Layer-wise relevance propagation (Arras et al., 2017; Ali et al., 2022; Achtibat et al., 2024).
    In a transformer norms, activations and products are linearised; attention is held constant
    (rule="cp") or gets its part of the relevance (rule="attn", AttnLRP). In a recurrent model it is
    a gate, which gets none; there `epsilon` keeps denominators away from 0, and `bias_factor` = 1
    distributes what biases and ε absorb equally over all inputs. The explained value is the
    target's logit, or its log-odds, in which every other class is weighted by its probability.
    That the relevance of words and biases sums to it is verified at run time.
    """

    rule: LRPRule = "cp"
    of: LinearTargetValue = "log_odds"
    epsilon: PositiveFloat = DEFAULT_EPSILON
    bias_factor: Fraction = 0.0

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        scores = self.relevance(context, target).inputs.sum(-1)
        return explanation_from_scores("lrp", context, scores.to(context.logits.dtype))

    def relevance(self, context: BatchContext, target: Int[Tensor, "B"]) -> Relevance:
        """The relevance of the word embeddings, and the rest."""
        warn_patent()
        subject = unwrap_perturbed(context.subject)
        if isinstance(subject, TransformerSubject):
            if self.epsilon != DEFAULT_EPSILON or self.bias_factor:
                raise NotApplicable(
                    "epsilon and bias_factor apply to recurrent models only; the relevance of a "
                    "transformer is input × gradient of a linearised model. Leave them out."
                )
            return compute_relevance(context, target, of=self.of, rule=self.rule)
        if isinstance(subject, RecurrentSubject):
            if self.rule != "cp":
                raise NotApplicable(
                    "rule='attn' applies to transformers only; the attention of a recurrent model "
                    "is a gate, which gets no relevance. Use rule='cp'."
                )
            return self._recurrent(subject, context, target)
        raise NotApplicable(
            "lrp has rules for transformers and for heedful's recurrent models; "
            f"{subject.family} is neither."
        )

    def _recurrent(
        self, subject: RecurrentSubject, context: BatchContext, target: Int[Tensor, "B"]
    ) -> Relevance:
        logits, allowed = context.forward.logits.double(), context.batch.allowed
        start = logit_direction(logits, target, self.of) * logits
        if allowed is not None:  # no word is responsible for classes that the text does not allow
            start = start.masked_fill(~allowed, 0.0)
        ledger = RelevanceLedger(self.epsilon, self.bias_factor)
        with context.clock("relevance"), torch.no_grad():
            inputs = word_relevance(subject.network, context, start=start, ledger=ledger)
        return Relevance(inputs, ledger.rest, start.sum(-1)).require_conserved(NEAR)


@methods.register("decompx", kind="saliency", signed=True)
@dataclass(frozen=True)
class DecompX:
    """The part of the logits that comes from a token's state at the first layer.

    DecompX (Modarressi et al., 2023): attention weights, scales of layer norms and slopes f(x)/x of
    activations are held fixed, so that each layer is affine and the part of a token passes through
    it separately. With biases="shared" the biases of a layer at a position are distributed over the
    tokens in proportion to |⟨bias, part⟩|, and the scores of all tokens sum to the explained value;
    "apart" keeps biases out of the scores, and only scores and biases together sum to it. Both sums
    are verified at run time. The explained value is the target's logit, or its log-odds, in which
    every other class is weighted by its probability.
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
                scores, _ = decompose_with_separate_bias(
                    exact, context.batch, context.embedded, partial(self._weights, target=target)
                )
            else:
                texts = range(len(target))
                scores = torch.stack([self._of_text(exact, context, target, one) for one in texts])
        return explanation_from_scores("decompx", context, scores)

    def _weights(self, logits: Tensor, target: Tensor) -> Tensor:
        return logit_direction(logits, target.to(logits.device), self.of)

    def _of_text(
        self, subject: TransformerSubject, context: BatchContext, target: Tensor, row: int
    ) -> Float[Tensor, "T"]:
        """The scores of one text, computed without its padding."""
        present = context.batch.present[row]
        single = context.batch.keep_tokens(torch.tensor([row]), present[None])
        taken = LinearisedPass.record(subject, single, context.embedded[row, present][None])
        (weights,) = self._weights(taken.logits, target[row : row + 1])
        found = taken.decompose(weights, size=max(1, context.budget // single.ids.numel()))
        return found.new_zeros(len(present)).masked_scatter(present.to(found.device), found)
