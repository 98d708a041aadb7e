"""The gates of DiffMask, predicted from a model's hidden states (De Cao et al., 2020).

For each layer a small network reads a token's input embedding and its state in that layer, and
predicts whether the token can be masked. A token is open at a layer if the gates of all layers up
to that one are open, so that deeper layers mask more.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from heedful.core.errors import ConfigError
from heedful.numerics.tensor.hard_concrete import log_open_probability

LOGIT_SCALE, INITIAL_LOGIT = 10.0, 5.0  # logits are initial ± scale: nearly all gates start open
MIN_PROBE_WIDTH = 16


class GateNetwork(nn.Module):
    """A network for every layer, and the vector that replaces a masked token.

    `widths` are those of the states by layer, starting with the input embeddings.
    """

    def __init__(self, widths: Sequence[int], blank: Float[Tensor, "E"]) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.blank = nn.Parameter(blank.detach().clone())
        self.probes = nn.ModuleList(_probe(self.widths[0] + width) for width in self.widths)

    def forward(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """Gate logits for as many layers as there are states."""
        first, probes = states[0], list(self.probes)[: len(states)]
        both = zip(probes, states, strict=True)
        outputs = [probe(torch.cat([first, state], dim=-1)) for probe, state in both]
        return INITIAL_LOGIT + LOGIT_SCALE * torch.stack(outputs).squeeze(-1).tanh()

    def open_probability(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """The probability that each token is open at each layer.

        Gates are drawn independently, so that their product is above 0 with the product of their
        probabilities.
        """
        return log_open_probability(self(states)).cumsum(0).exp()

    def layer_index(self, number: int) -> int:
        """The index of a layer; negative numbers count from the end."""
        count = len(self.widths)
        if not -count <= number < count:
            raise ConfigError(
                f"layer must be between {-count} and {count - 1}, not {number}: 0 is the input of "
                "the model."
            )
        return number % count


def _probe(width: int) -> nn.Module:
    """Two weight-normalised linear maps with tanh between them."""
    inner = max(MIN_PROBE_WIDTH, width // 8)
    return nn.Sequential(
        weight_norm(nn.Linear(width, inner)), nn.Tanh(), weight_norm(nn.Linear(inner, 1))
    )
