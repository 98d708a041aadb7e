"""The explained value of an output: probability, log-odds or logit of the target class."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

TargetValue = Literal["probability", "log_odds", "logit"]
"""Logits are defined up to a constant that all classes share, and a model of two classes may fix
one of them at 0. Probability and log-odds do not depend on it."""
LinearTargetValue = Literal["log_odds", "logit"]
"""The values that are weighted sums of the logits; the probability is not."""


def target_value(
    logits: Float[Tensor, "*K C"], target: Int[Tensor, "*K"], of: TargetValue
) -> Float[Tensor, "*K"]:
    """The value of the target; log-odds are exact even where the probability rounds to 1.

    >>> target_value(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), "log_odds")
    tensor([2.])
    """
    chosen = logits.gather(-1, target[..., None])
    if of == "logit":
        return chosen.squeeze(-1)
    if of == "probability":
        return logits.softmax(-1).gather(-1, target[..., None]).squeeze(-1)
    rivals = logits.scatter(-1, target[..., None], -torch.inf).logsumexp(-1)
    return chosen.squeeze(-1) - rivals


def logit_direction(
    logits: Float[Tensor, "*K C"], target: Int[Tensor, "*K"], of: LinearTargetValue
) -> Float[Tensor, "*K C"]:
    """The weights of the logits in the explained value: 1 for the target, less for other classes.

    For the log-odds each rival has minus its probability among the rivals: the gradient with
    respect to the logits. With two classes the weighted sum is the log-odds themselves.

    >>> logit_direction(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), "log_odds")
    tensor([[-1.,  1.]])
    """
    chosen = torch.zeros_like(logits).scatter(-1, target[..., None], 1.0)
    if of == "logit":
        return chosen
    rivals = logits.scatter(-1, target[..., None], -torch.inf).softmax(-1)
    return chosen - rivals


def log_odds_slope(logits: Float[Tensor, "*K C"], target: Int[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """The derivative p(1 − p) of the probability by the log-odds.

    So the gradient of the probability is that of the log-odds times one factor per text.
    """
    odds = target_value(logits, target, "log_odds")
    return odds.sigmoid() * (-odds).sigmoid()
