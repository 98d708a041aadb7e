"""What random orders lose by removal: the null that methods are held against, itself measured."""

from collections.abc import Sequence

import numpy as np
import torch

from heedful.checks import checks
from heedful.checks.faithfulness.removal import ItemView, RemovalMetrics, Removals
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.erasure_metrics import removal_ranks

AT_ONCE = 64


def random_losses(
    subject: object, examples: Sequence[Example], *, orders: int, way: str = "deletion"
) -> np.ndarray:
    """Comprehensiveness of random orders, each text's own: a row for each order."""
    check, found, draw = checks.build("faithfulness"), [], generator(0, "null orders")
    for start in range(0, len(examples), AT_ONCE):
        encoded = [subject.encode(one) for one in examples[start : start + AT_ONCE]]
        words = ItemView(BatchContext(subject, subject.batch(encoded)))
        keys = torch.from_numpy(draw.random((orders, *words.real.shape)))
        chance = removal_ranks(keys, words.real.expand_as(keys))
        even = words.real[None].double()
        trial = RemovalMetrics(Removals(words, way), even, chance, check.bins, check.steps)
        whole = words.context.forward.probabilities.double().amax(-1)
        found.append((whole - trial.both()[0]).mean(1)[1:])
    return torch.cat(found, dim=1).numpy()
