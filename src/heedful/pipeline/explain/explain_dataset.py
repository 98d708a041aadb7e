"""Explain every text of a data set, batch by batch. No files."""

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
from heedful.pipeline.audit.halve_on_oom import retry_in_halves
from heedful.pipeline.explain.explain_text import (
    ScoredUnits,
    class_index,
    score_tokens,
    target_classes,
    to_method_scores,
)
from heedful.pipeline.explain.request import BuiltMethods, ExplainRequest
from heedful.results.explanation import MethodScores

ScoresOrReason = Tensor | str  # or why there are none
TEXTS_PER_CHUNK = 1024  # texts among which those of like length find each other


@dataclass(frozen=True, slots=True)
class MethodScoreRow:
    """One method's scores of one text; classes by name, no label where the data has none."""

    instance: int
    predicted: str
    label: str | None
    target: str
    method: str
    tokens: tuple[str, ...]
    scores: MethodScores


@dataclass(frozen=True)
class ExplainCounts:
    """What became of the texts; counts of batches add up.

    `refused` says of a method how many texts it could not serve, and why the first of them.
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
    """Rows of scores and what there is to count, for one batch of texts of like length at a time.

    Values do not depend on what else is in a batch. Only some of the texts are held at once.
    """
    if request.target is not None:
        class_index(subject, request.target)
    work, rest = (
        _DatasetExplainer(subject, request, request.built(), max_batch_tokens),
        iter(examples),
    )
    while some := [subject.encode(one) for one in islice(rest, TEXTS_PER_CHUNK)]:
        kept = [one for one in some if one.explained]
        yield [], ExplainCounts(no_words=len(some) - len(kept))
        yield from work.batches(kept)


@dataclass(frozen=True, eq=False)
class _DatasetExplainer:
    subject: Subject
    request: ExplainRequest
    built: BuiltMethods
    max_batch_tokens: int
    general: set[ScoresOrReason] = field(
        default_factory=set
    )  # reasons that are of no text in particular

    def batches(
        self, kept: Sequence[Encoded]
    ) -> Iterator[tuple[list[MethodScoreRow], ExplainCounts]]:
        halved = list[None]()

        def explained(rows: list[int]) -> tuple[list[MethodScoreRow], ExplainCounts]:
            return self._explained([kept[row] for row in rows])

        chosen = batches_for(self.subject, kept, max_batch_tokens=self.max_batch_tokens)
        yield from retry_in_halves(chosen, explained, halved=lambda: halved.append(None))
        yield [], ExplainCounts(halved=len(halved))

    def _explained(self, together: Sequence[Encoded]) -> tuple[list[MethodScoreRow], ExplainCounts]:
        """Every method on one batch, whole or not at all."""
        context = self._open_context(together)
        target = target_classes(self.subject, context, self.request.target)
        parts = self.built.parts
        found = {name: _scores_or_reasons(part, context, target) for name, part in parts.items()}
        again = [name for name, one in found.items() if isinstance(one[0], str)]
        again = [name for name in again if found[name][0] not in self.general]
        if again and len(together) > 1:
            # one long text may be the reason: what befalls a text must not depend on its company
            for number, one in enumerate(together):
                alone = self._open_context([one])
                for name in again:
                    (found[name][number],) = _scores_or_reasons(
                        parts[name], alone, target[number, None]
                    )
            self.general.update(*(set(found[name]) for name in again if len(set(found[name])) == 1))
        rows = list(self._rows(together, context.predicted.tolist(), target.tolist(), found))
        return rows, self._counts(together, len(rows), found)

    def _open_context(self, together: Sequence[Encoded]) -> BatchContext:
        batch, tokens = self.subject.batch(together), self.max_batch_tokens
        return BatchContext(self.subject, batch, self.request.seed, tokens, lean=self.built.lean)

    def _rows(
        self,
        together: Sequence[Encoded],
        predicted: Sequence[int],
        target: Sequence[int],
        found: Mapping[str, Sequence[ScoresOrReason]],
    ) -> Iterator[MethodScoreRow]:
        labels = self.subject.labels
        for number, one in enumerate(together):
            shown = ScoredUnits.of(one, self.request.granularity)
            label = None if one.label < 0 else labels[one.label]
            classes = labels[predicted[number]], label, labels[target[number]]
            for name, part in self.built.parts.items():
                scores = found[name][number]
                if not isinstance(scores, str):
                    row_scores = to_method_scores(name, self.built, shown.scores(part, scores))
                    yield MethodScoreRow(one.index, *classes, name, shown.tokens, row_scores)

    def _counts(
        self, together: Sequence[Encoded], rows: int, found: Mapping[str, Sequence[ScoresOrReason]]
    ) -> ExplainCounts:
        refused = {name: (len(together), why) for name, why in self.built.refused.items()}
        for name, scores in found.items():
            if why := [one for one in scores if isinstance(one, str)]:
                refused[name] = (len(why), why[0])
        cut = sum(one.truncated for one in together)
        return ExplainCounts(len(together), rows, truncated=cut, refused=refused)


def _scores_or_reasons(
    part: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> list[ScoresOrReason]:
    """The scores of each text, or for each the reason that there are none."""
    try:
        return [*score_tokens(part, context, target)]
    except NotApplicable as reason:
        # its words alone: an error holds on to the frames it came through, and all they hold
        return [str(reason)] * len(target)
