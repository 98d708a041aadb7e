"""The planted benchmark: models whose truth about attention is known by construction.

Each case is a small model, its texts, and the truth about three claims. *used*: the output depends
on the attention. *ranks*: attention orders words as deleting them does. *exclusive*: no distant
attention gives the same output. True and False are scored; None is reported, not scored. Any
method that answers such questions can be scored on it:

>>> from heedful import planted
>>> def depends_on_attention(case):  # a toy: does the output change under equal weights?
...     rows = enumerate(case.texts(8))
...     encoded = [case.subject.encode(planted.row_to_example(row, i)) for i, row in rows]
...     batch = case.subject.batch(encoded)
...     forward = case.subject.forward(batch)
...     equal = batch.mask.double() / batch.mask.sum(-1, keepdim=True)
...     output = case.subject.decoder(batch, forward)(equal).softmax(-1)
...     return bool((output - forward.probabilities).abs().max() > 0.05)
>>> right = [
...     depends_on_attention(case) == case.truth["used"]
...     for case in planted.cases(seed=0, count=4, kinds=["hidden", "leaky"])
... ]
>>> sum(right), len(right)
(4, 4)

For libraries that need a Transformers model, `case.subject.model` is one in the kinds whose name
begins with "compiled". `trained_cases` draws networks that are trained instead of built by hand;
the subjects of `ASKED_KINDS` read a question with each text. Subjects, texts and truths of a
version do not change: a change of any raises `PLANTED_VERSION` or `TRAINED_VERSION`.
"""

from heedful.planted import closed_form as closed_form
from heedful.planted.case import (
    ASKED_KINDS,
    DIFFICULTIES,
    KINDS,
    LENGTHS,
    PLANTED_VERSION,
    Case,
    Truth,
    cases,
    kinds,
)
from heedful.planted.texts import row_to_example
from heedful.planted.trained.case import TrainedCase, trained_cases
from heedful.planted.trained.kinds import TRAINED_KINDS
from heedful.planted.trained.train import TRAINED_LENGTHS, TRAINED_VERSION

__all__ = [
    "ASKED_KINDS",
    "DIFFICULTIES",
    "KINDS",
    "LENGTHS",
    "PLANTED_VERSION",
    "TRAINED_KINDS",
    "TRAINED_LENGTHS",
    "TRAINED_VERSION",
    "Case",
    "TrainedCase",
    "Truth",
    "cases",
    "kinds",
    "row_to_example",
    "trained_cases",
    "truths",
]


def truths() -> dict[str, Truth]:
    """The truth of every kind, hand-built and trained.

    >>> dict(truths()["leaky"])
    {'used': False, 'ranks': False, 'exclusive': False}
    """
    built = {name: kinds.build(name).truth for name in kinds}
    return built | {name: kind.truth for name, kind in TRAINED_KINDS.items()}
