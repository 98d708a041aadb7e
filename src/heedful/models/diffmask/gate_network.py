"""Gates on the words of a text, foreseen from a model's hidden states (De Cao et al., 2020).

For each layer a small net looks at what enters the model and at that layer's state of a token, and
says how likely the token can be hidden. A token stays open at a layer if all nets up to that one
keep it open: the deeper the layer, the more the model has found out to be unimportant.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from heedful.core.errors import ConfigError
from heedful.numerics.tensor.hard_concrete import log_open_probability

LOGIT_SCALE, INITIAL_LOGIT = (
    10.0,
    5.0,
)  # logits lie in START ± SCALE: at first nearly every gate is open
MIN_PROBE_WIDTH = 16


class GateNetwork(nn.Module):
    """A net for every layer, and the vector that stands for a hidden token.

    `widths` are those of the states, layer by layer; the first are what enters the model.
    """

    def __init__(self, widths: Sequence[int], blank: Float[Tensor, "E"]) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.blank = nn.Parameter(blank.detach().clone())
        self.probes = nn.ModuleList(_probe(self.widths[0] + width) for width in self.widths)

    def forward(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """The logits of the gates, for as many layers as there are states."""
        first, probes = states[0], list(self.probes)[: len(states)]
        seen = zip(probes, states, strict=True)
        found = [probe(torch.cat([first, one], dim=-1)) for probe, one in seen]
        return INITIAL_LOGIT + LOGIT_SCALE * torch.stack(found).squeeze(-1).tanh()

    def open(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """The probability that each token is still open at each layer.

        Gates are drawn apart, so that their product is above 0 with the product of their chances.
        """
        return log_open_probability(self(states)).cumsum(0).exp()

    def layer(self, number: int) -> int:
        """A layer by its number, from the end where that is below 0."""
        count = len(self.widths)
        if not -count <= number < count:
            raise ConfigError(
                f"layer must be between {-count} and {count - 1}, not {number}: 0 is what enters "
                "the model."
            )
        return number % count


def _probe(width: int) -> nn.Module:
    """Two linear maps whose lengths are learnt apart from their directions."""
    inner = max(MIN_PROBE_WIDTH, width // 8)
    return nn.Sequential(
        weight_norm(nn.Linear(width, inner)), nn.Tanh(), weight_norm(nn.Linear(inner, 1))
    )
