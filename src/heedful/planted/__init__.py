"""The planted benchmarks: models whose truth about attention is known by construction.

There are two. `influence_cases` (version 3) says of each word of each text whether it matters,
alone or together with others: any method that gives scores to words can be scored on it. The older
`cases` and `trained_cases` say which claims about attention hold.

**Which words matter.** Truth is by sets of words: a word matters if adding it to some set of the
other words changes the output. `KnownText.tiers` has the words that matter, those with the most
influence first. `score_methods` draws a model of each kind and says how often the top words of a
method are these; `heedful benchmark` prints it. `score_text` scores one text:

>>> import torch
>>> from heedful import planted
>>> known = planted.KnownText("w7 w301 w12", tiers=((0,), (2,)))  # w301 never matters
>>> found = planted.score_text(torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64), known)
>>> found.top_word, found.top_set, round(found.order, 3)
(1.0, 0.5, 0.667)

**Which claims hold.** Each case is a small model, its texts, and the truth about three claims.
*used*: the output depends on the attention. *ranks*: attention orders words as deleting them does.
*exclusive*: no distant attention gives the same output. True and False are scored; None is
reported, not scored. Any method that answers such questions can be scored on it:

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
version do not change: a change of any raises `PLANTED_VERSION`, `TRAINED_VERSION` or
`INFLUENCE_VERSION`.
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
from heedful.planted.influence.kind import (
    INFLUENCE_VERSION,
    InfluenceCase,
    InfluenceKind,
    InfluenceTruth,
    KnownText,
    Mixture,
    influence_cases,
    influence_kinds,
)
from heedful.planted.scoring.result import BenchmarkResult, MethodScore
from heedful.planted.scoring.score_methods import score_methods
from heedful.planted.scoring.text_score import TextScore, score_text
from heedful.planted.scoring.word_scorers import WordScorer
from heedful.planted.texts import row_to_example
from heedful.planted.trained.case import TrainedCase, trained_cases
from heedful.planted.trained.kinds import TRAINED_KINDS
from heedful.planted.trained.train import TRAINED_LENGTHS, TRAINED_VERSION

__all__ = [
    "ASKED_KINDS",
    "DIFFICULTIES",
    "INFLUENCE_VERSION",
    "KINDS",
    "LENGTHS",
    "PLANTED_VERSION",
    "TRAINED_KINDS",
    "TRAINED_LENGTHS",
    "TRAINED_VERSION",
    "BenchmarkResult",
    "Case",
    "InfluenceCase",
    "InfluenceKind",
    "InfluenceTruth",
    "KnownText",
    "MethodScore",
    "Mixture",
    "TextScore",
    "TrainedCase",
    "Truth",
    "WordScorer",
    "cases",
    "influence_cases",
    "influence_kinds",
    "kinds",
    "row_to_example",
    "score_methods",
    "score_text",
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
