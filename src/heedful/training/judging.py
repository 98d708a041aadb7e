"""The dev texts after an epoch: what is said of them, and what that is worth."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.data.batching import batches
from heedful.training.objectives import Objective, Seen


def looked_over(
    objective: Objective,
    texts: Sequence[Encoded],
    see: Callable[[list[Encoded]], Seen],
    *,
    max_batch_tokens: int,
) -> tuple[Float[Tensor, "n C"], float | None]:
    """The outputs that count, and the mean worth of the texts where the objective has one."""
    parts, worth = dict[int, Tensor](), list[float]()
    with torch.no_grad():
        for rows in batches(texts, max_batch_tokens=max_batch_tokens):
            seen = see([texts[row] for row in rows])
            parts |= dict(zip(rows, objective.logits(seen, rows), strict=True))
            if (each := objective.worth(seen, rows)) is not None:
                worth += each.double().tolist()
    logits = torch.stack([parts[row] for row in range(len(texts))])
    return logits, (sum(worth) / len(worth) if worth else None)
