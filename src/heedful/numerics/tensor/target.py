"""What is explained of an output: the target class's probability, its log-odds, or its logit."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

TargetValue = Literal["probability", "log_odds", "logit"]
"""Logits are known up to a number that all classes share, and a model of two classes may give one
of them the constant 0. Probability and log-odds do not depend on it."""
TARGET_VALUES: tuple[TargetValue, ...] = get_args(TargetValue)
LinearTargetValue = Literal["log_odds", "logit"]
"""What can be told as a weighted sum of the logits; the probability cannot."""
LINEAR_TARGET_VALUES: tuple[LinearTargetValue, ...] = get_args(LinearTargetValue)


def target_value(
    logits: Float[Tensor, "*K C"], target: Int[Tensor, "*K"], of: TargetValue
) -> Float[Tensor, "*K"]:
    """The target's value; the log-odds are exact where the probability is 1 to every digit.

    >>> value_of(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), "log_odds")
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
    """The weights of the logits in what is explained: 1 for the target, and less for its rivals.

    For the log-odds each rival has minus its chance among the rivals: their slope with the logits.
    Two classes have one rival, so that the weighted sum is the log-odds themselves.

    >>> direction(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), "log_odds")
    tensor([[-1.,  1.]])
    """
    chosen = torch.zeros_like(logits).scatter(-1, target[..., None], 1.0)
    if of == "logit":
        return chosen
    rivals = logits.scatter(-1, target[..., None], -torch.inf).softmax(-1)
    return chosen - rivals


def log_odds_slope(
    logits: Float[Tensor, "*K C"], target: Int[Tensor, "*K"], of: TargetValue
) -> Float[Tensor, "*K"]:
    """How much the value moves with the log-odds: p(1 − p) for the probability, 1 for themselves.

    So a gradient of the log-odds is one of the probability, up to a factor of each text.
    """
    odds = target_value(logits, target, "log_odds")
    if of == "probability":
        return odds.sigmoid() * (-odds).sigmoid()
    return torch.ones_like(odds)
