"""Explain texts by several methods: one alone, or a batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from heedful.pipeline.explain.request import ExplainRequest
from heedful.results.explanation import MethodScores, TextExplanation

ScoresOrReason = Tensor | str  # scores of a text, or why there are none


def explain_text(
    subject: Subject, text: str, request: ExplainRequest, *, question: str | None = None
) -> TextExplanation:
    """Explain the prediction for a text, or the probability of another class, word by word.

    `question` may also be the other text of a pair. A method that does not apply to this subject is
    listed with the reason; if it is the only one, that is an error.
    """
    explainer = TextExplainer(subject, request)
    if not is_encodable(text) or not is_encodable(question or ""):
        raise DataError("The text is not UTF-8: it contains half a character. Fix its encoding.")
    encoded = subject.encode(Example(0, text, 0, pair=question))
    if not encoded.explained_tokens:
        raise DataError("The text contains no word to explain; give at least one.")
    (found,) = explainer.explain([encoded])
    if explainer.built.single and found.refused:
        raise NotApplicable(" ".join(found.refused.values()))
    return replace(found, text=text, question=question)


class TextExplainer:
    """Explains texts, one batch at a time, by the methods of a request."""

    def __init__(
        self, subject: Subject, request: ExplainRequest, *, max_batch_tokens: int = 20_000
    ) -> None:
        self.subject, self.request, self.max_batch_tokens = subject, request, max_batch_tokens
        self.built = request.build()
        self._target = None if request.target is None else _class_index(subject, request.target)
        self._general: set[ScoresOrReason] = set()  # reasons that are not due to single texts

    def explain(self, texts: Sequence[Encoded]) -> list[TextExplanation]:
        """The explanation of each text; values do not depend on the other texts of the batch."""
        context = self._open_context(texts)
        target = context.predicted
        if self._target is not None:
            target = torch.full_like(target, self._target)
        scores = self._scores(context, texts, target)
        probabilities = context.logits.detach().softmax(-1).gather(-1, target[:, None])
        named = [[self.subject.labels[i] for i in one] for one in (context.predicted, target)]
        return [
            self._record(text, {name: own[row] for name, own in scores.items()}, *classes)
            for row, (text, *classes) in enumerate(
                zip(texts, *named, probabilities[:, 0].tolist(), strict=True)
            )
        ]

    def _open_context(self, texts: Sequence[Encoded]) -> BatchContext:
        batch, tokens = self.subject.batch(texts), self.max_batch_tokens
        return BatchContext(
            self.subject, batch, self.request.seed, tokens, logits_only=self.built.lean
        )

    def _scores(
        self, context: BatchContext, texts: Sequence[Encoded], target: Int[Tensor, "B"]
    ) -> dict[str, list[ScoresOrReason]]:
        """Every method's scores of every text; text by text where a method refuses the batch.

        One long text may be the reason, and results must not depend on the rest of the batch.
        """
        parts = self.built.parts
        scores = {name: _scores_or_reasons(part, context, target) for name, part in parts.items()}
        retried = [
            name
            for name, own in scores.items()
            if len(texts) > 1 and isinstance(own[0], str) and own[0] not in self._general
        ]
        for row, text in enumerate(texts if retried else ()):
            alone = self._open_context([text])
            for name in retried:
                (scores[name][row],) = _scores_or_reasons(parts[name], alone, target[row, None])
        for name in retried:
            if len(reasons := set(scores[name])) == 1:
                self._general |= reasons
        return scores

    def _record(
        self,
        text: Encoded,
        scores: Mapping[str, ScoresOrReason],
        predicted: str,
        target: str,
        probability: float,
    ) -> TextExplanation:
        built, units = self.built, ScoredUnits.of(text, self.request.granularity)
        explained, refused = {}, dict(built.refused)
        for name, own in scores.items():
            part: Any = built.parts[name]
            if isinstance(own, str):
                refused[name] = own
            else:
                facts = part.kind, part.signed, units.scores(part, own), getattr(part, "of", None)
                explained[name] = MethodScores(*facts, built.settings.get(name, {}))
        return TextExplanation(
            "",
            target,
            self.request.granularity,
            units.tokens,
            explained,
            predicted,
            probability,
            refused,
            text.truncated,
        )


def _class_index(subject: Subject, name: str) -> int:
    """The index of a class; an error lists at most 20 known classes."""
    if name not in subject.labels:
        some = ", ".join(subject.labels[:20]) + (", …" if len(subject.labels) > 20 else "")
        raise ConfigError(f"No class is named {name!r}. Classes: {some}.")
    return subject.labels.index(name)


def _scores_or_reasons(
    part: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> list[ScoresOrReason]:
    """The scores of the explained tokens of each text, or the reason that there are none."""
    try:
        with torch.no_grad():
            explanation = part(context, target)
    except NotApplicable as reason:
        # only the message: the exception would keep its stack frames, and their tensors, alive
        return [str(reason)] * len(target)
    rows = zip(explanation.scores.double().cpu(), explanation.mask.cpu(), strict=True)
    return [scores[mask] for scores, mask in rows]


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
