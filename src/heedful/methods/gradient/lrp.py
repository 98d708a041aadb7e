"""Layer-wise relevance propagation: Arras et al., 2017; Ali et al., 2022; Achtibat et al., 2024."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.methods.patent_notice import warn_patent
from heedful.models.batch_context import BatchContext
from heedful.models.internals.lrp import LRP_RULES, LRPRule, Relevance, compute_relevance
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.recurrent.lrp import RecurrentPass, RelevanceLedger, word_relevance
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LINEAR_TARGET_VALUES, LinearTargetValue, logit_direction

DEFAULT_EPSILON = 1e-3  # the stabiliser of Arras et al.
NEAR = 1e-6  # how much of 1 the book of a recurrent model may lose


@methods.register("lrp")
@dataclass(frozen=True)
class LRP:
    """The logits handed down to the words, layer by layer, so that nothing is lost on the way.

    In a transformer norms, activations and products are linear where they are; attention is held
    constant (rule="cp") or takes its part of the relevance (rule="attn", AttnLRP). In a recurrent
    model it is a gate, which takes none; there `epsilon` keeps denominators away from 0, and
    `bias_factor` = 1 shares out what biases and ε take among all inputs alike. What is explained is
    the target's logit, or the log-odds with every rival weighted by its chance. That the words' and
    the biases' relevance make it up is seen at run time.
    """

    rule: LRPRule = "cp"
    of: LinearTargetValue = "log_odds"
    epsilon: float = DEFAULT_EPSILON
    bias_factor: float = 0.0
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("rule", self.rule, LRP_RULES)
        require_one_of("of", self.of, LINEAR_TARGET_VALUES)
        if not self.epsilon > 0:
            raise ConfigError(f"epsilon must be above 0, not {self.epsilon}.")
        if not 0 <= self.bias_factor <= 1:
            raise ConfigError(f"bias_factor must lie between 0 and 1, not {self.bias_factor}.")

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        scores = self.relevance(context, target).inputs.sum(-1)
        return explanation_from_scores("lrp", context, scores.to(context.logits.dtype))

    def relevance(self, context: BatchContext, target: Int[Tensor, "B"]) -> Relevance:
        """All of it: of the word vectors, and what went elsewhere."""
        warn_patent()
        subject = unwrap_perturbed(context.subject)
        if isinstance(subject, TransformerSubject):
            if self.epsilon != DEFAULT_EPSILON or self.bias_factor:
                raise NotApplicable(
                    "epsilon and bias_factor are of recurrent models; the relevance of a "
                    "transformer is input × gradient of a linear model, which has neither."
                )
            return compute_relevance(context, target, of=self.of, rule=self.rule)
        if isinstance(subject, RecurrentSubject):
            if self.rule != "cp":
                raise NotApplicable(
                    "rule='attn' is of transformers; the attention of a recurrent model is a gate, "
                    "which takes no relevance (rule='cp')."
                )
            return self._recurrent(subject, context, target)
        raise NotApplicable(
            "lrp knows the rules of transformers and of heedful's recurrent models; "
            f"{subject.family} is neither."
        )

    def _recurrent(
        self, subject: RecurrentSubject, context: BatchContext, target: Int[Tensor, "B"]
    ) -> Relevance:
        logits, allowed = context.forward.logits.double(), context.batch.allowed
        start = logit_direction(logits, target, self.of) * logits
        if allowed is not None:  # what a text does not allow is no word's doing
            start = start.masked_fill(~allowed, 0.0)
        book = RelevanceLedger(self.epsilon, self.bias_factor)
        with context.clock("relevance"), torch.no_grad():
            read = RecurrentPass(context.batch, context.embedded.double(), context.forward)
            inputs = word_relevance(subject.network, read, start=start, ledger=book)
        return Relevance(inputs, book.rest, start.sum(-1)).require_conserved(NEAR)
