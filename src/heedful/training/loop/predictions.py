"""What a subject says to many texts, and how it attends to them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.models.protocols import Subject
from heedful.training.loop.batching import batches_for


@dataclass(frozen=True, eq=False)
class Predictions:
    """Outputs in the order of the texts, and for each text its weights, one per token.

    `rows` are the weights behind them, special tokens' too, where asked for: every head's, say.
    """

    probabilities: Float[Tensor, "n C"]
    attention: tuple[Float[Tensor, "_"], ...]
    rows: tuple[Float[Tensor, "_ _"], ...] = ()

    def padded(self) -> Float[Tensor, "n T"]:
        """The weights as one table, zero beyond a text's end."""
        return torch.nn.utils.rnn.pad_sequence(list(self.attention), batch_first=True)


def predict_all(
    subject: Subject,
    encoded: Sequence[Encoded],
    *,
    keep_rows: bool = False,
) -> Predictions:
    """One pass over all texts, no gradient."""
    outputs = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    weights: list[Tensor] = [torch.zeros(0)] * len(encoded)
    behind: list[Tensor] = [torch.zeros(0, 0)] * len(encoded)
    with torch.no_grad():
        for rows in batches_for(subject, encoded):
            batch = subject.batch([encoded[row] for row in rows])
            forward = subject.forward(batch)
            outputs[rows] = forward.probabilities.double()
            heads = forward.attention[:, None] if forward.rows is None else forward.rows
            for place, row in enumerate(rows):
                here = batch.present[place]
                weights[row] = forward.attention[place][here].double()
                if keep_rows:
                    behind[row] = heads[place][:, here].double()
    return Predictions(outputs, tuple(weights), tuple(behind) if keep_rows else ())
