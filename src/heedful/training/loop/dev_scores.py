"""Scores on dev texts: what the best epoch is selected by."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.data.batching import DEFAULT_BATCH_TOKENS, batches
from heedful.models.protocols import Subject
from heedful.numerics.stats.classification_scores import accuracy, roc_auc


def predict_probabilities(
    subject: Subject, encoded: Sequence[Encoded], *, max_batch_tokens: int = DEFAULT_BATCH_TOKENS
) -> Float[Tensor, "n C"]:
    """The class probabilities of each text, in the order given."""
    result = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches(encoded, max_batch_tokens=max_batch_tokens):
            forward = subject.forward(subject.batch([encoded[row] for row in rows]))
            result[rows] = forward.probabilities.double()
    return result


def dev_score(subject: Subject, encoded: Sequence[Encoded]) -> float:
    """The score that the best epoch is selected by."""
    require_dev(encoded, len(subject.labels))
    return selection_score(predict_probabilities(subject, encoded), encoded)[0]


def selection_score(
    probabilities: Float[Tensor, "n C"], encoded: Sequence[Encoded]
) -> tuple[float, float]:
    """The selection score and the accuracy.

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
