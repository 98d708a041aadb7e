"""Adversarial attention by the published gradient search (Jain & Wallace, 2019, section 4.2.2)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, autograd

from heedful.core.errors import ConfigError
from heedful.core.rng import normal_keys
from heedful.interventions.base import interventions, require_epsilon
from heedful.models.sitting import Sitting
from heedful.tensor.divergence import jsd, tvd
from heedful.tensor.simplex import masked_softmax, positions_first

TINY = 1e-10  # inside logarithms, as published


@interventions.register("adversarial")
@dataclass(frozen=True)
class AdversarialSearch:
    """The farthest attention that Adam finds without moving the output by more than `epsilon`.

    Minimises Σ_k [−JSD(α_k, α) + penalty · max(0, TVD_k − hinge)] − mean_{k,k′} JSD(α_k, α_k′) over
    `candidates` free logits that start at log 1/T + spread · N(0, 1). Of the last step's candidates
    those with TVD ≤ epsilon count, and the model's own attention always does. Settings are those of
    the released code; the hinge acts on TVD for any number of classes.
    """

    epsilon: float = 0.05
    candidates: int = 5
    steps: int = 500
    rate: float = 0.01
    penalty: float = 500.0
    hinge: float = 0.01
    spread: float = 3.0

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if self.candidates < 1 or self.steps < 1 or self.rate <= 0:
            raise ConfigError(
                "candidates and steps must be at least 1 and rate above 0, not "
                f"{self.candidates}, {self.steps} and {self.rate}."
            )

    def __call__(self, sitting: Sitting) -> Float[Tensor, "K B T"]:
        logits = self._start(sitting)
        adam = torch.optim.Adam([logits], lr=self.rate, amsgrad=True)
        for _ in range(self.steps):
            weights = masked_softmax(logits.detach(), sitting.batch.mask)
            pull = self._slope(sitting, weights)
            # through the softmax: ∂/∂logit = α (g − Σ α g)
            logits.grad = weights * (pull - (weights * pull).sum(-1, keepdim=True))
            adam.step()
        return self._best(sitting, masked_softmax(logits.detach(), sitting.batch.mask))[None]

    def _start(self, sitting: Sitting) -> Float[Tensor, "K B T"]:
        batch, weights = sitting.batch, sitting.forward.attention
        lengths = batch.lengths.tolist()
        noise = normal_keys(
            sitting.seed, "adversarial", batch.instances, draws=self.candidates, lengths=lengths
        )
        drawn = self.spread * torch.from_numpy(noise).to(weights)
        even = torch.tensor([-math.log(max(1, length)) for length in lengths]).to(weights)
        home = positions_first(batch.mask)[:, None, : drawn.shape[-1]]
        start = weights.new_zeros(len(batch), self.candidates, weights.shape[1])
        start = start.scatter(-1, home.expand_as(drawn), drawn) + even[:, None, None]
        return start.transpose(0, 1).contiguous().requires_grad_()

    def _slope(self, sitting: Sitting, weights: Float[Tensor, "K B T"]) -> Float[Tensor, "K B T"]:
        """Gradient of the loss at the weights; ∂JSD(α, q)/∂α = ½ log 2α/(α+q) in closed form."""
        logs = torch.log(weights + TINY)
        slope = 0.5 * (torch.log(0.5 * (weights + sitting.forward.attention) + TINY) - logs)
        for one in range(self.candidates):
            for other in range(one + 1, self.candidates):
                middle = torch.log(0.5 * (weights[one] + weights[other]) + TINY)
                # each unordered pair stands twice in the mean over k² ordered ones
                slope[one] += (middle - logs[one]) / self.candidates**2
                slope[other] += (middle - logs[other]) / self.candidates**2
        return slope + self.penalty * self._output_slope(sitting, weights)

    def _output_slope(
        self, sitting: Sitting, weights: Float[Tensor, "K B T"]
    ) -> Float[Tensor, "K B T"]:
        with torch.enable_grad():
            leaf = weights.requires_grad_()
            output = sitting.decode(leaf).softmax(-1)
            excess = (tvd(output, sitting.forward.probabilities) - self.hinge).relu()
            (slope,) = autograd.grad(excess.sum(), leaf)
        weights.requires_grad_(False)
        return slope

    def _best(self, sitting: Sitting, weights: Float[Tensor, "K B T"]) -> Float[Tensor, "B T"]:
        own, mask = sitting.forward.attention, sitting.batch.mask
        change = tvd(sitting.decode(weights).softmax(-1), sitting.forward.probabilities)
        away = jsd(weights, own).masked_fill(change > self.epsilon, -1.0)
        top, which = away.max(0)
        chosen = weights.gather(0, which[None, :, None].expand(1, *own.shape)).squeeze(0)
        found = (top >= 0)[:, None] & mask.any(-1, keepdim=True)
        return torch.where(found, chosen, own)
