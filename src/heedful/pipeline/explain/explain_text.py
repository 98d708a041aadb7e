"""Explain one text by several methods side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, DataError, NotApplicable
from heedful.core.values import Example
from heedful.data.labels import is_encodable
from heedful.methods.base import Method, join_pieces
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.pipeline.explain.request import BuiltMethods, ExplainRequest
from heedful.results.explanation import MethodScores, TextExplanation


def explain_text(
    subject: Subject, text: str, request: ExplainRequest, *, question: str | None = None
) -> TextExplanation:
    """Explain the prediction for a text, or the chance of another class, word by word.

    A question, or the other text of a pair, is read beside it. A method that cannot serve this
    subject is told with its reason; alone it is an error.
    """
    built = request.built()
    if not is_encodable(text) or not is_encodable(question or ""):
        raise DataError("The text is not UTF-8: it holds half a sign. Mend its encoding.")
    encoded = subject.encode(Example(0, text, 0, pair=question))
    if not encoded.explained_tokens:
        raise DataError("The text holds no word to explain; give at least one.")
    context = BatchContext(subject, subject.batch([encoded]), request.seed, logits_only=built.lean)
    target = target_classes(subject, context, request.target)
    shown = ScoredUnits.of(encoded, request.granularity)
    found, refused = {}, dict(built.refused)
    for name, part in built.parts.items():
        try:
            scores = score_tokens(part, context, target)[0]
        except NotApplicable as reason:
            refused[name] = str(reason)
        else:
            found[name] = to_method_scores(name, built, shown.scores(part, scores))
    if built.alone and refused:
        raise NotApplicable(" ".join(refused.values()))
    predicted, chosen = int(context.predicted), int(target)
    return TextExplanation(
        text,
        subject.labels[chosen],
        request.granularity,
        shown.tokens,
        found,
        subject.labels[predicted],
        float(context.logits.detach().softmax(-1)[0, chosen]),
        refused,
        encoded.truncated,
        question,
    )


def target_classes(subject: Subject, context: BatchContext, name: str | None) -> Int[Tensor, "B"]:
    """The class to explain of each text: the one named, or each text's predicted one."""
    if name is None:
        return context.predicted
    return torch.full_like(context.predicted, class_index(subject, name))


def class_index(subject: Subject, name: str) -> int:
    """The number of a class; a vocabulary of them is not listed whole."""
    if name not in subject.labels:
        some = ", ".join(subject.labels[:20]) + (", …" if len(subject.labels) > 20 else "")
        raise ConfigError(f"No class is named {name!r}. Classes: {some}.")
    return subject.labels.index(name)


def score_tokens(
    part: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> list[Float[Tensor, "t"]]:
    """For each text the scores of its explained tokens, in order."""
    with torch.no_grad():
        made = part(context, target)
    rows = zip(made.scores.double().cpu(), made.mask.cpu(), strict=True)
    return [scores[mask] for scores, mask in rows]


def to_method_scores(name: str, built: BuiltMethods, scores: tuple[float, ...]) -> MethodScores:
    """The scores of one text with what the method says of itself."""
    part: Any = built.parts[name]
    of = getattr(part, "of", None)
    return MethodScores(part.kind, part.signed, scores, of, built.settings.get(name, {}))


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """What of a text is shown with scores: its words, or the pieces the subject reads.

    Words that were cut off are not shown: they have no score, which is not a score of 0.
    """

    tokens: tuple[str, ...]
    word: Int[Tensor, "t"] | None  # the place of each piece's word; None shows pieces

    @classmethod
    def of(cls, encoded: Encoded, granularity: str) -> "ScoredUnits":
        """Words, or pieces as the subject spells them where it has any."""
        if granularity == "token":
            return cls(tuple(_explained_pieces(encoded)), None)
        read = dict.fromkeys(one for one in encoded.word if one >= 0)
        kept = sorted(read) if encoded.truncated else range(len(encoded.words))
        place: Mapping[int, int] = {word: number for number, word in enumerate(kept)}
        word = torch.tensor([place[one] for one in encoded.word if one >= 0])
        return cls(tuple(encoded.words[one] for one in kept), word)

    def scores(self, part: Method, scores: Float[Tensor, "t"]) -> tuple[float, ...]:
        """One score for each that is shown, joined over the pieces of words as the method says."""
        if self.word is not None:
            scores = join_pieces(scores, self.word, len(self.tokens), part.join)
        return tuple(scores.tolist())


def _explained_pieces(encoded: Encoded) -> Iterator[str]:
    for place, word in enumerate(encoded.word):
        if word >= 0:
            yield encoded.words[word] if encoded.pieces is None else encoded.pieces[place]
