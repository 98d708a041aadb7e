"""Mark the words of a text to hide: by a list, by annotations, or by an explanation."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.rationales import align_annotations
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.methods import methods
from heedful.methods.base import join_pieces
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.texts import HiddenWords, ScoreCache


def mark_hidden_words(
    hidden: HiddenWords,
    base: Subject,
    examples: Sequence[Example],
    encoded: Sequence[Encoded],
    scored: ScoreCache,
) -> list[Bool[Tensor, "_"]]:
    """The hidden tokens of each text, all pieces of a word together; `scored` caches scores."""
    if hidden.source == "list":
        _require_single(hidden, base)
        listed = {word.lower() for word in hidden.words}
        words = [[word.lower() in listed for word in one.words] for one in encoded]
    elif hidden.source == "rationale":
        words = [_rationale_marks(*pair) for pair in zip(examples, encoded, strict=True)]
    else:
        whose = (hidden.method, hidden.settings)
        if whose not in scored:
            scored[whose] = _base_model_scores(hidden, base, encoded)
        words = [_top_words(one, hidden.share) for one in scored[whose]]
    return [
        torch.tensor([place >= 0 and marks[place] for place in one.word])
        for one, marks in zip(encoded, words, strict=True)
    ]


def _require_single(hidden: HiddenWords, base: Subject) -> None:
    """Refuse a listed word that the model splits into several: it would never be found."""
    if not isinstance(base, RecurrentSubject):
        return
    for word in hidden.words:
        if len(parts := base.tokenizer(word)) != 1:
            raise NotApplicable(
                f"the model splits {word!r} into {len(parts)} words ({', '.join(parts)}): list "
                "words as the model splits them"
            )


def _rationale_marks(example: Example, one: Encoded) -> list[bool]:
    if example.rationale is None:
        raise NotApplicable(f"text {example.index} has no rationale")
    people = align_annotations(example, one.words)
    if people.marked is None:
        raise NotApplicable(f"text {example.index}: {people.why}")
    return [*people.marked]


def _base_model_scores(
    hidden: HiddenWords, base: Subject, encoded: Sequence[Encoded]
) -> list[Float[Tensor, "_"]]:
    """The method's score of each word of each text, for the class the base model predicts."""
    method = methods.build(hidden.method, **dict(hidden.settings))
    found = [torch.zeros(0)] * len(encoded)
    for rows in batches_for(base, encoded):
        context = BatchContext(base, base.batch([encoded[row] for row in rows]))
        scores, here = method(context, context.predicted).scores.detach(), context.batch.present
        for place, row in enumerate(rows):
            one = encoded[row]
            word, own = torch.tensor(one.word), scores[place][here[place]]
            count = len(one.seen_words)
            found[row] = join_pieces(own[word >= 0], word[word >= 0], count, method.join)
    return found


def _top_words(scores: Float[Tensor, "_"], share: float) -> list[bool]:
    """The words with the largest |score|, at least one and never all."""
    count = min(max(1, math.ceil(share * len(scores) - 1e-9)), len(scores) - 1)
    top = set(scores.abs().argsort(descending=True, stable=True)[: max(count, 0)].tolist())
    return [place in top for place in range(len(scores))]
