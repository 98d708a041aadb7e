"""Probabilities and attention of a subject on many texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.data.batching import batches_for
from heedful.models.protocols import Subject


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities in the order of the texts, and for each text its attention, one per token.

    `rows`, kept on request, are the weights behind the attention, those of every head and on
    special tokens included.
    """

    probabilities: Float[Tensor, "n C"]
    attention: tuple[Float[Tensor, "_"], ...]
    rows: tuple[Float[Tensor, "_ _"], ...] = ()

    def padded(self) -> Float[Tensor, "n T"]:
        """The attention as one table, zero beyond the end of a text."""
        return torch.nn.utils.rnn.pad_sequence(list(self.attention), batch_first=True)


def predict_all(
    subject: Subject, encoded: Sequence[Encoded], *, keep_rows: bool = False
) -> Predictions:
    """Run all texts once, without gradients."""
    outputs = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    weights: list[Tensor] = [torch.zeros(0)] * len(encoded)
    kept: list[Tensor] = [torch.zeros(0, 0)] * len(encoded)
    with torch.no_grad():
        for rows in batches_for(subject, encoded):
            batch = subject.batch([encoded[row] for row in rows])
            forward = subject.forward(batch)
            outputs[rows] = forward.probabilities.double()
            heads = forward.attention[:, None] if forward.rows is None else forward.rows
            for place, row in enumerate(rows):
                present = batch.present[place]
                weights[row] = forward.attention[place][present].double()
                if keep_rows:
                    kept[row] = heads[place][:, present].double()
    return Predictions(outputs, tuple(weights), tuple(kept) if keep_rows else ())
