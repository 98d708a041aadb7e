"""Adversarial attention by the published gradient search (Jain & Wallace, 2019, section 4.2.2)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, autograd

from heedful.checks.draws import place_in_text
from heedful.checks.interventions.base import interventions, replace_texts
from heedful.core.rng import normal_keys
from heedful.core.settings import PositiveFloat, PositiveFraction, Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, masked_softmax, tvd

TINY = 1e-10  # inside logarithms, as published


@interventions.register("adversarial")
@check_on_init
@dataclass(frozen=True)
class AdversarialSearch:
    """The farthest attention that Adam finds without moving the output by more than `epsilon`.

    Minimises Σ_k [−JSD(α_k, α) + penalty · max(0, TVD_k − hinge)] − mean_{k,k′} JSD(α_k, α_k′) over
    `candidates` free logits that start at log 1/T + spread · N(0, 1). Of the last step's candidates
    those with TVD ≤ epsilon count, and the model's own attention always does. Settings are those of
    the released code; the hinge acts on TVD for any number of classes.
    """

    epsilon: PositiveFraction = 0.05
    candidates: Repeats = 5
    steps: Repeats = 500
    rate: PositiveFloat = 0.01
    penalty: float = 500.0
    hinge: float = 0.01
    spread: float = 3.0

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]:
        logits = self._start(context)
        adam = torch.optim.Adam([logits], lr=self.rate, amsgrad=True)
        for _ in range(self.steps):
            weights = masked_softmax(logits.detach(), context.attendable_words)
            pull = self._slope(context, weights)
            # through the softmax: ∂/∂logit = α (g − Σ α g)
            logits.grad = weights * (pull - (weights * pull).sum(-1, keepdim=True))
            adam.step()
        weights = masked_softmax(logits.detach(), context.attendable_words)
        return self._best(context, context.place_on_words(weights))[None]

    def _start(self, context: BatchContext) -> Float[Tensor, "K B *R T"]:
        batch, rows = context.batch, context.rows
        lengths, several = batch.lengths.tolist(), rows.shape[1:-1]
        draws = self.candidates * math.prod(several)
        noise = normal_keys(
            context.seed, "adversarial", batch.content, draws=draws, lengths=lengths
        )
        even = torch.tensor([-math.log(max(1, length)) for length in lengths]).to(rows)
        drawn = self.spread * torch.from_numpy(noise).to(rows)
        start = place_in_text(drawn, batch.mask) + even[:, None, None]
        start = start.reshape(len(batch), self.candidates, *several, rows.shape[-1])
        return start.transpose(0, 1).contiguous().requires_grad_()

    def _slope(
        self, context: BatchContext, weights: Float[Tensor, "K B *R T"]
    ) -> Float[Tensor, "K B *R T"]:
        """Gradient of the loss at the weights of each row."""
        if context.forward.rows is None:
            away = self._distance_slope(context, weights)
        else:  # rows are read as their mean, weighted by each row's mass on words
            share = context.word_mass / context.word_mass.sum(1, keepdim=True).clamp(min=TINY)
            away = share * self._distance_slope(context, (share * weights).sum(-2))[:, :, None]
        return away + self.penalty * self._output_slope(context, weights)

    def _distance_slope(
        self, context: BatchContext, weights: Float[Tensor, "K B T"]
    ) -> Float[Tensor, "K B T"]:
        """Gradient of the distances in the loss; ∂JSD(α, q)/∂α = ½ log 2α/(α+q)."""
        logs = torch.log(weights + TINY)
        slope = 0.5 * (torch.log(0.5 * (weights + context.forward.attention) + TINY) - logs)
        for one in range(self.candidates):
            for other in range(one + 1, self.candidates):
                middle = torch.log(0.5 * (weights[one] + weights[other]) + TINY)
                # each unordered pair occurs twice in the mean over k² ordered ones
                slope[one] += (middle - logs[one]) / self.candidates**2
                slope[other] += (middle - logs[other]) / self.candidates**2
        return slope

    def _output_slope(
        self, context: BatchContext, weights: Float[Tensor, "K B *R T"]
    ) -> Float[Tensor, "K B *R T"]:
        with torch.enable_grad():
            leaf = weights.requires_grad_()
            output = context.decode(context.place_on_words(leaf)).softmax(-1)
            excess = (tvd(output, context.forward.probabilities) - self.hinge).relu()
            (slope,) = autograd.grad(excess.sum(), leaf)
        weights.requires_grad_(False)
        return slope

    def _best(
        self, context: BatchContext, rows: Float[Tensor, "K B *R T"]
    ) -> Float[Tensor, "B *R T"]:
        own = context.rows
        change = tvd(context.decode(rows).softmax(-1), context.forward.probabilities)
        away = jsd(context.read_attention(rows), context.forward.attention)
        top, which = away.masked_fill(change > self.epsilon, -1.0).max(0)
        chosen = rows[which, torch.arange(len(own))]
        return replace_texts((top >= 0) & context.batch.mask.any(-1), chosen, own)
