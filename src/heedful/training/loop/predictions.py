"""Probabilities and attention of a subject on many texts, and the scores of dev texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.data.batching import DEFAULT_BATCH_TOKENS, batches_for
from heedful.models.protocols import Subject
from heedful.numerics.stats.classification_scores import accuracy, roc_auc


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
    subject: Subject,
    encoded: Sequence[Encoded],
    *,
    keep_rows: bool = False,
    max_batch_tokens: int = DEFAULT_BATCH_TOKENS,
) -> Predictions:
    """Run all texts once, without gradients."""
    outputs = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    weights: list[Tensor] = [torch.zeros(0)] * len(encoded)
    kept: list[Tensor] = [torch.zeros(0, 0)] * len(encoded)
    with torch.no_grad():
        for rows in batches_for(subject, encoded, max_batch_tokens=max_batch_tokens):
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


def selection_score(
    probabilities: Float[Tensor, "n C"], encoded: Sequence[Encoded]
) -> tuple[float, float]:
    """The score that the best epoch is selected by, and the accuracy.

    The score is ROC-AUC for two classes without a query, accuracy otherwise.
    """
    outputs, gold = probabilities.numpy(), np.array([one.label for one in encoded])
    correct = accuracy(outputs.argmax(1), gold)
    if _uses_roc_auc(encoded, outputs.shape[1]):
        return roc_auc(outputs[:, 1], gold), correct
    return correct, correct


def _uses_roc_auc(encoded: Sequence[Encoded], classes: int) -> bool:
    """Answers to questions are scored by accuracy, as published."""
    return classes == 2 and all(one.query is None for one in encoded)


def require_dev(encoded: Sequence[Encoded], classes: int) -> None:
    """Raise DataError if the dev texts cannot select an epoch."""
    if not encoded:
        raise DataError("There are no dev texts to select the best epoch by.")
    if _uses_roc_auc(encoded, classes) and len({one.label for one in encoded}) < 2:
        raise DataError("The dev texts are all of one class; ROC-AUC needs both.")
