"""How well a subject predicts: the scores training selects by and reports quote."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.data.batching import batches
from heedful.models.protocols import Subject
from heedful.numerics.stats.classification_scores import accuracy, roc_auc
from heedful.training.variants.objectives import BatchOutput, Objective


def predict_probabilities(
    subject: Subject, encoded: Sequence[Encoded], *, max_batch_tokens: int = 20_000
) -> Float[Tensor, "n C"]:
    """The subject's outputs, one row per text in the order given."""
    result = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches(encoded, max_batch_tokens=max_batch_tokens):
            forward = subject.forward(subject.batch([encoded[row] for row in rows]))
            result[rows] = forward.probabilities.double()
    return result


def dev_score(subject: Subject, encoded: Sequence[Encoded]) -> float:
    """The score that the best epoch is chosen by."""
    require_dev(encoded, len(subject.labels))
    return selection_score(predict_probabilities(subject, encoded), encoded)[0]


def selection_score(
    outputs: Float[Tensor, "n C"], encoded: Sequence[Encoded]
) -> tuple[float, float]:
    """What to choose by, and the accuracy.

    That is ROC-AUC for two classes, accuracy for more and wherever there is a query.
    """
    found, gold = outputs.numpy(), np.array([one.label for one in encoded])
    right = accuracy(found.argmax(1), gold)
    return (roc_auc(found[:, 1], gold) if _uses_roc_auc(encoded, found.shape[1]) else right), right


def _uses_roc_auc(encoded: Sequence[Encoded], classes: int) -> bool:
    """Whether ROC-AUC chooses; answers to questions are counted, as published."""
    return classes == 2 and all(one.query is None for one in encoded)


def require_dev(encoded: Sequence[Encoded], classes: int) -> None:
    """Refuse dev texts that nothing can be chosen by."""
    if not encoded:
        raise DataError("There are no dev texts to choose the best epoch by.")
    if _uses_roc_auc(encoded, classes) and len({one.label for one in encoded}) < 2:
        raise DataError("The dev texts are all of one class; ROC-AUC needs both.")


def evaluate_objective(
    objective: Objective,
    texts: Sequence[Encoded],
    batch_output: Callable[[list[Encoded]], BatchOutput],
    *,
    max_batch_tokens: int,
) -> tuple[Float[Tensor, "n C"], float | None]:
    """The outputs that count, and the mean worth of the texts where the objective has one."""
    parts, text_scores = dict[int, Tensor](), list[float]()
    with torch.no_grad():
        for rows in batches(texts, max_batch_tokens=max_batch_tokens):
            seen = batch_output([texts[row] for row in rows])
            parts |= dict(zip(rows, objective.logits(seen, rows), strict=True))
            if (each := objective.text_scores(seen, rows)) is not None:
                text_scores += each.double().tolist()
    logits = torch.stack([parts[row] for row in range(len(texts))])
    return logits, (sum(text_scores) / len(text_scores) if text_scores else None)
