"""Accuracy, F1 and ROC-AUC of predictions; NaN where a score is undefined."""

import numpy as np
from jaxtyping import Float, Int
from scipy import stats


def accuracy(predicted: Int[np.ndarray, "n"], gold: Int[np.ndarray, "n"]) -> float:
    """The share of correct predictions, in [0, 1]; NaN without instances.

    >>> accuracy(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]))
    0.75
    """
    return float(np.mean(predicted == gold)) if len(gold) else float("nan")


def f1(predicted: Int[np.ndarray, "n"], gold: Int[np.ndarray, "n"], *, positive: int = 1) -> float:
    """Harmonic mean of precision and recall of one class, 2·TP / (2·TP + FP + FN), in [0, 1].

    NaN where the class is neither predicted nor gold.

    >>> f1(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]))
    0.8
    """
    called, true = predicted == positive, gold == positive
    either = int(called.sum() + true.sum())
    return 2 * int((called & true).sum()) / either if either else float("nan")


def roc_auc(
    scores: Float[np.ndarray, "n"], gold: Int[np.ndarray, "n"], *, positive: int = 1
) -> float:
    """The probability that a positive instance outscores a negative one, ties half; in [0, 1].

    (Σ ranks of positives − n₁(n₁+1)/2) / (n₁ n₀), the Mann–Whitney statistic (Hanley & McNeil,
    1982). NaN where one class is missing.

    >>> roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    0.75
    """
    true = gold == positive
    ones, zeros = int(true.sum()), int((~true).sum())
    if not ones or not zeros:
        return float("nan")
    outscored = stats.rankdata(scores)[true].sum() - ones * (ones + 1) / 2
    return float(outscored / (ones * zeros))
