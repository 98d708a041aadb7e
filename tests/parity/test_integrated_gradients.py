"""Integrated gradients where the output moves fast, or jumps."""

import pytest
import torch

from heedful.core.errors import NotApplicable
from heedful.core.values import Forward
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from support import reference_removal


class Bent(reference_removal.Linear):
    """Log-odds that are another function of the sum than the sum itself."""

    def __init__(self, bend):
        super().__init__()
        self.bend = bend

    def forward(self, batch, embedded=None):
        found = super().forward(batch, embedded)
        return Forward(self.bend(found.logits), found.attention, found.states)


def explained(bend, **settings):
    subject = Bent(bend)
    batch = reference_removal.linear([6, 3, 9])[0].batch
    context = BatchContext(subject, batch)
    target = torch.ones(len(batch), dtype=torch.long)
    part = methods.build("integrated_gradients", of="log_odds", **settings)
    return context, part(context, target).scores


@pytest.mark.parametrize("steep", [30.0, 3e3, 1e5])
def test_a_rise_however_steep_is_accounted_for(steep):
    def rise(logits):
        return torch.stack([logits[:, 0] * 0, 4 * torch.tanh(steep * (logits[:, 1] - 0.37))], -1)

    context, scores = explained(rise, tolerance=1e-5)
    line = reference_removal.Linear().forward(context.batch).logits[:, 1]
    blank = torch.zeros_like(context.embedded.detach()).where(
        context.batch.mask[..., None], context.embedded.detach()
    )
    start = reference_removal.Linear().forward(context.batch, blank).logits[:, 1]
    change = 4 * torch.tanh(steep * (line - 0.37)) - 4 * torch.tanh(steep * (start - 0.37))
    torch.testing.assert_close(scores.sum(-1), change, atol=1e-4, rtol=0)
    # all tokens move along one straight line: each has its share of the change
    each = (context.embedded.detach() - blank) @ reference_removal.Linear().weight
    share = each / each.sum(-1, keepdim=True)
    torch.testing.assert_close(scores, share * change[:, None], atol=1e-4, rtol=1e-4)


def test_an_output_that_jumps_is_refused():
    def jump(logits):
        return torch.where(logits > 0.37, logits + 5, logits)

    with pytest.raises(NotApplicable, match="needs a continuous output"):
        explained(jump)
