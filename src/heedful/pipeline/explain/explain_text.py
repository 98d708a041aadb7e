"""Explain one text by several methods."""

from collections.abc import Iterator
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
    """Explain the prediction for a text, or the probability of another class, word by word.

    `question` may also be the other text of a pair. A method that does not apply to this subject is
    listed with the reason; if it is the only one, that is an error.
    """
    built = request.build()
    if not is_encodable(text) or not is_encodable(question or ""):
        raise DataError("The text is not UTF-8: it contains half a character. Fix its encoding.")
    encoded = subject.encode(Example(0, text, 0, pair=question))
    if not encoded.explained_tokens:
        raise DataError("The text contains no word to explain; give at least one.")
    context = BatchContext(subject, subject.batch([encoded]), request.seed, logits_only=built.lean)
    target = target_classes(subject, context, request.target)
    units = ScoredUnits.of(encoded, request.granularity)
    explained, refused = {}, dict(built.refused)
    for name, part in built.parts.items():
        try:
            scores = score_tokens(part, context, target)[0]
        except NotApplicable as reason:
            refused[name] = str(reason)
        else:
            explained[name] = to_method_scores(name, built, units.scores(part, scores))
    if built.single and refused:
        raise NotApplicable(" ".join(refused.values()))
    predicted, chosen = int(context.predicted), int(target)
    return TextExplanation(
        text,
        subject.labels[chosen],
        request.granularity,
        units.tokens,
        explained,
        subject.labels[predicted],
        float(context.logits.detach().softmax(-1)[0, chosen]),
        refused,
        encoded.truncated,
        question,
    )


def target_classes(subject: Subject, context: BatchContext, name: str | None) -> Int[Tensor, "B"]:
    """The class to explain for each text: the named one, or the predicted one."""
    if name is None:
        return context.predicted
    return torch.full_like(context.predicted, class_index(subject, name))


def class_index(subject: Subject, name: str) -> int:
    """The index of a class; an error lists at most 20 known classes."""
    if name not in subject.labels:
        some = ", ".join(subject.labels[:20]) + (", …" if len(subject.labels) > 20 else "")
        raise ConfigError(f"No class is named {name!r}. Classes: {some}.")
    return subject.labels.index(name)


def score_tokens(
    part: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> list[Float[Tensor, "t"]]:
    """The scores of the explained tokens of each text, in order."""
    with torch.no_grad():
        explanation = part(context, target)
    rows = zip(explanation.scores.double().cpu(), explanation.mask.cpu(), strict=True)
    return [scores[mask] for scores, mask in rows]


def to_method_scores(name: str, built: BuiltMethods, scores: tuple[float, ...]) -> MethodScores:
    """The scores of one text with the attributes and settings of the method."""
    part: Any = built.parts[name]
    of = getattr(part, "of", None)
    return MethodScores(part.kind, part.signed, scores, of, built.settings.get(name, {}))


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """The units of a text that get scores: its words, or the tokens that the subject reads.

    Truncated words are left out: they have no score, which is not a score of 0.
    """

    tokens: tuple[str, ...]
    word: Int[Tensor, "t"] | None  # the index of each piece's word; None for tokens

    @classmethod
    def of(cls, encoded: Encoded, granularity: str) -> "ScoredUnits":
        """The words, or the pieces as the subject spells them."""
        if granularity == "token":
            return cls(tuple(_explained_pieces(encoded)), None)
        of_piece = [word for word in encoded.word if word >= 0]
        kept = sorted(set(of_piece)) if encoded.truncated else range(len(encoded.words))
        place = {word: number for number, word in enumerate(kept)}
        index = torch.tensor([place[word] for word in of_piece])
        return cls(tuple(encoded.words[word] for word in kept), index)

    def scores(self, part: Method, scores: Float[Tensor, "t"]) -> tuple[float, ...]:
        """One score per unit; the pieces of a word are joined as the method declares."""
        if self.word is not None:
            scores = join_pieces(scores, self.word, len(self.tokens), part.join)
        return tuple(scores.tolist())


def _explained_pieces(encoded: Encoded) -> Iterator[str]:
    for place, word in enumerate(encoded.word):
        if word >= 0:
            yield encoded.words[word] if encoded.pieces is None else encoded.pieces[place]
