"""What checks ask of methods: asked once, whoever asks."""

from dataclasses import dataclass

import torch

from heedful.checks.requested_methods import score_with_method
from heedful.core.values import Explanation
from heedful.models.batch_context import BatchContext
from support import subjects

ASKED = []


@dataclass(frozen=True)
class Counted:
    """Gives its factor to every word, and keeps count."""

    factor: float = 1.0
    join = "sum"
    kind = "saliency"
    signed = True

    def __call__(self, context, target):
        ASKED.append(target.tolist())
        return Explanation("counted", self.factor * context.batch.mask.double(), context.batch.mask)


def test_checks_that_ask_for_the_same_scores_share_them():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [3, 5]))
    first, second = torch.tensor([0, 1]), torch.tensor([1, 1])
    one, again = (score_with_method(Counted(), context, first)[0] for _ in range(2))
    assert torch.equal(one, again)
    assert ASKED == [[0, 1]]
    score_with_method(Counted(), context, second)
    other, _ = score_with_method(Counted(2.0), context, first)
    assert ASKED == [[0, 1], [1, 1], [0, 1]]  # another class, and other settings
    assert torch.equal(other, 2 * one)
