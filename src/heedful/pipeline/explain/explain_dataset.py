"""Explain every text of a data set, batch by batch; writes no files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from jaxtyping import Int
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.methods.base import Method
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.pipeline.audit.job import retry_in_halves
from heedful.pipeline.explain.explain_text import (
    ScoredUnits,
    class_index,
    score_tokens,
    target_classes,
    to_method_scores,
)
from heedful.pipeline.explain.request import BuiltMethods, ExplainRequest
from heedful.results.explanation import MethodScores

ScoresOrReason = Tensor | str  # scores of a text, or why there are none
TEXTS_PER_CHUNK = 1024  # texts that are sorted by length into batches


@dataclass(frozen=True, slots=True)
class MethodScoreRow:
    """One method's scores of one text; classes are names, label is None if the data has none."""

    instance: int
    predicted: str
    label: str | None
    target: str
    method: str
    tokens: tuple[str, ...]
    scores: MethodScores


@dataclass(frozen=True)
class ExplainCounts:
    """Counts of texts and rows; those of several batches can be added.

    `refused` maps a method to the number of texts it did not apply to, and the first reason.
    """

    texts: int = 0
    rows: int = 0
    no_words: int = 0
    truncated: int = 0
    halved: int = 0
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def __add__(self, other: "ExplainCounts") -> "ExplainCounts":
        refused = dict(self.refused)
        for name, (count, reason) in other.refused.items():
            before, first = refused.get(name, (0, reason))
            refused[name] = (before + count, first)
        return ExplainCounts(
            self.texts + other.texts,
            self.rows + other.rows,
            self.no_words + other.no_words,
            self.truncated + other.truncated,
            self.halved + other.halved,
            refused,
        )


def explain_batches(
    subject: Subject, examples: Iterable[Example], request: ExplainRequest, *, max_batch_tokens: int
) -> Iterator[tuple[list[MethodScoreRow], ExplainCounts]]:
    """Yield rows of scores and counts, one batch of texts of similar length at a time.

    Values do not depend on the other texts of a batch. At most TEXTS_PER_CHUNK texts are in memory.
    """
    if request.target is not None:
        class_index(subject, request.target)
    explainer = _DatasetExplainer(subject, request, request.build(), max_batch_tokens)
    rest = iter(examples)
    while chunk := [subject.encode(one) for one in islice(rest, TEXTS_PER_CHUNK)]:
        kept = [one for one in chunk if one.explained_tokens]
        yield [], ExplainCounts(no_words=len(chunk) - len(kept))
        yield from explainer.batches(kept)


@dataclass(frozen=True, eq=False)
class _DatasetExplainer:
    subject: Subject
    request: ExplainRequest
    built: BuiltMethods
    max_batch_tokens: int
    general: set[ScoresOrReason] = field(default_factory=set)  # reasons not due to single texts

    def batches(
        self, kept: Sequence[Encoded]
    ) -> Iterator[tuple[list[MethodScoreRow], ExplainCounts]]:
        halved = list[list[int]]()

        def explain(rows: list[int]) -> tuple[list[MethodScoreRow], ExplainCounts]:
            return self._explain_batch([kept[row] for row in rows])

        chosen = batches_for(self.subject, kept, max_batch_tokens=self.max_batch_tokens)
        yield from retry_in_halves(chosen, explain, halved=halved.append)
        yield [], ExplainCounts(halved=len(halved))

    def _explain_batch(
        self, texts: Sequence[Encoded]
    ) -> tuple[list[MethodScoreRow], ExplainCounts]:
        """Apply every method to one batch; text by text where it refuses the batch."""
        context = self._open_context(texts)
        target = target_classes(self.subject, context, self.request.target)
        parts = self.built.parts
        scores = {name: _scores_or_reasons(part, context, target) for name, part in parts.items()}
        retried = [name for name, own in scores.items() if isinstance(own[0], str)]
        retried = [name for name in retried if scores[name][0] not in self.general]
        if retried and len(texts) > 1:
            # one long text may be the reason: results must not depend on the rest of the batch
            for number, text in enumerate(texts):
                alone = self._open_context([text])
                for name in retried:
                    (scores[name][number],) = _scores_or_reasons(
                        parts[name], alone, target[number, None]
                    )
            reasons = (set(scores[name]) for name in retried)
            self.general.update(*(one for one in reasons if len(one) == 1))
        rows = list(self._rows(texts, context.predicted.tolist(), target.tolist(), scores))
        return rows, self._counts(texts, len(rows), scores)

    def _open_context(self, texts: Sequence[Encoded]) -> BatchContext:
        batch, tokens = self.subject.batch(texts), self.max_batch_tokens
        return BatchContext(
            self.subject, batch, self.request.seed, tokens, logits_only=self.built.lean
        )

    def _rows(
        self,
        texts: Sequence[Encoded],
        predicted: Sequence[int],
        target: Sequence[int],
        scores: Mapping[str, Sequence[ScoresOrReason]],
    ) -> Iterator[MethodScoreRow]:
        labels = self.subject.labels
        for number, text in enumerate(texts):
            units = ScoredUnits.of(text, self.request.granularity)
            label = None if text.label < 0 else labels[text.label]
            classes = labels[predicted[number]], label, labels[target[number]]
            for name, part in self.built.parts.items():
                own = scores[name][number]
                if not isinstance(own, str):
                    row_scores = to_method_scores(name, self.built, units.scores(part, own))
                    yield MethodScoreRow(text.index, *classes, name, units.tokens, row_scores)

    def _counts(
        self, texts: Sequence[Encoded], rows: int, scores: Mapping[str, Sequence[ScoresOrReason]]
    ) -> ExplainCounts:
        refused = {name: (len(texts), reason) for name, reason in self.built.refused.items()}
        for name, own in scores.items():
            if reasons := [one for one in own if isinstance(one, str)]:
                refused[name] = (len(reasons), reasons[0])
        truncated = sum(text.truncated for text in texts)
        return ExplainCounts(len(texts), rows, truncated=truncated, refused=refused)


def _scores_or_reasons(
    part: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> list[ScoresOrReason]:
    """The scores of each text, or the reason that there are none."""
    try:
        return [*score_tokens(part, context, target)]
    except NotApplicable as reason:
        # only the message: the exception would keep its stack frames, and their tensors, alive
        return [str(reason)] * len(target)
