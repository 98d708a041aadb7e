"""What trained kinds are taught, as arithmetic: outputs, what states say, where attention goes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def answer_loss(
    log_odds: Float[Tensor, "*B"], side: Float[Tensor, "*B"], *, sure: float
) -> Float[Tensor, ""]:
    """Cross-entropy with a class that is `sure` where a side is taken, and ½ where none is."""
    wanted = 0.5 + side * (sure - 0.5)
    return binary_cross_entropy_with_logits(log_odds, wanted.to(log_odds))


def normalise_amounts(amounts: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Weights in proportion to the amounts of each text, which are 0 outside its words.

    >>> in_proportion(torch.tensor([[1.0, 3.0, 0.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """
    return amounts / amounts.sum(-1, keepdim=True)


def attention_cross_entropy(
    weights: Float[Tensor, "B T"], wanted: Float[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """−Σ wanted · log weights, the mean over the texts: least where the two are alike."""
    logs = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return -(wanted * logs).sum(-1).mean()


def attention_mass_loss(
    weights: Float[Tensor, "B T"], places: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """−log of the weight on the places, the mean over the texts that have any."""
    some = places.any(-1)
    mass = (weights * places).sum(-1)[some]
    return -mass.clamp(min=torch.finfo(weights.dtype).tiny).log().mean()


def state_variance(said: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """How far the states of a text say different things: their variance, the mean over words."""
    number = mask.sum(-1, keepdim=True)
    mean = (said * mask).sum(-1, keepdim=True) / number
    return (said - mean)[mask].square().mean()
