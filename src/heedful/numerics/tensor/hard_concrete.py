"""Gates between 0 and 1 that are exactly 0 with some probability (Louizos et al., 2018).

The hard concrete distribution of De Cao et al. (2020): a sigmoid of noisy logits, stretched to
(−0.2, 1) and clipped at 0. It has mass at exactly 0 and none at exactly 1.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

TEMPERATURE = 0.2
LOW, HIGH = -0.2, 1.0
SHIFT = TEMPERATURE * math.log(-LOW / HIGH)


def hard_concrete(logits: Float[Tensor, "*K"], uniform: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """Gates sampled from uniform numbers in (0, 1), differentiable in the logits.

    >>> hard_concrete(torch.tensor([-5.0, 0.0, 5.0]), torch.full((3,), 0.5))
    tensor([0.0000, 0.4000, 1.0000])
    """
    soft = ((uniform.logit() + logits) / TEMPERATURE).sigmoid()
    return (LOW + (HIGH - LOW) * soft).clamp(min=0.0, max=1.0)


def log_open_probability(logits: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """log P(g > 0) = log σ(logit − τ log(−low/high)), in (−∞, 0).

    >>> log_open_probability(torch.tensor([0.0])).exp()
    tensor([0.5798])
    """
    return torch.nn.functional.logsigmoid(logits - SHIFT)


def blend_with_blank(
    vectors: Float[Tensor, "*K T E"], gates: Float[Tensor, "*K T"], blank: Float[Tensor, "E"]
) -> Float[Tensor, "*K T E"]:
    """g · x + (1 − g) · b: the vector where the gate is 1, the mask embedding where it is 0.

    >>> vectors, blank = torch.tensor([[4.0], [4.0]]), torch.tensor([0.0])
    >>> blend_with_blank(vectors, torch.tensor([1.0, 0.25]), blank)
    tensor([[4.],
            [1.]])
    """
    return gates[..., None] * vectors + (1 - gates[..., None]) * blank
