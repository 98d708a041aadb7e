"""One job: every check on some texts, batch by batch. No files."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checks.base import Check
from heedful.core.errors import is_out_of_memory
from heedful.core.rationales import align_annotations
from heedful.core.records import MeasureKey, Measurement, MissingMeasure
from heedful.core.timing import Clock, add_seconds
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import ReferenceTexts, Subject
from heedful.pipeline.audit.text_rows import (
    Row,
    attention_map_rows,
    choose_map_instances,
    word_score_rows,
)

BatchResult = TypeVar("BatchResult")


@dataclass(frozen=True, slots=True, eq=False)
class MeasureColumn:
    """The values of one key on some texts."""

    key: MeasureKey
    instances: NDArray[np.int64]
    values: NDArray[np.float64]


Missing = Mapping[str, tuple[MissingMeasure, ...]]


@dataclass(frozen=True)
class JobSummary:
    """What a job records besides its rows; the summaries of several jobs add up."""

    missing: Missing = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parity: float = 0.0
    dtype: str = ""
    truncated: int = 0
    too_short: int = 0
    halved: int = 0  # batches cut in two because memory ran out
    retrained: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: int = 0  # that attention is explained over, in all texts
    threads: int = 0  # that torch computed on, the most of any job

    def __add__(self, other: "JobSummary") -> "JobSummary":
        return JobSummary(
            merge_missing(self.missing, other.missing),
            add_seconds(self.seconds, other.seconds),
            max(self.parity, other.parity),
            self.dtype or other.dtype,
            self.truncated + other.truncated,
            self.too_short + other.too_short,
            self.halved + other.halved,
            {**self.retrained, **other.retrained},
            self.words + other.words,
            max(self.threads, other.threads),
        )

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "JobSummary":
        """Read what `dataclasses.asdict` wrote."""
        missing = {
            check: tuple(MissingMeasure(**row) for row in rows)
            for check, rows in raw["missing"].items()
        }
        return cls(**{**raw, "missing": missing})


def merge_missing(one: Missing, other: Missing) -> dict[str, tuple[MissingMeasure, ...]]:
    """Each missing measure with its first reason: in any batching the shortest texts come first."""
    merged: dict[str, dict[tuple[str, str | None], MissingMeasure]] = {}
    for check, rows in (*one.items(), *other.items()):
        known = merged.setdefault(check, {})
        for row in rows:
            known.setdefault((row.measure, row.method), row)
    return {check: tuple(known.values()) for check, known in merged.items()}


@dataclass(frozen=True)
class JobResult:
    """The results of a job: columns of values, each text's classes, a summary, and rows of texts.

    Results of batches add up. `texts` and `maps` are rows of `TEXT_SCHEMA` and `MAP_SCHEMA`.
    """

    columns: tuple[MeasureColumn, ...] = ()
    predicted: Mapping[int, int] = field(default_factory=dict)
    label: Mapping[int, int] = field(default_factory=dict)
    summary: JobSummary = JobSummary()
    texts: tuple[Row, ...] = ()
    maps: tuple[Row, ...] = ()

    def __add__(self, other: "JobResult") -> "JobResult":
        return JobResult(
            self.columns + other.columns,
            {**self.predicted, **other.predicted},
            {**self.label, **other.label},
            self.summary + other.summary,
            self.texts + other.texts,
            self.maps + other.maps,
        )

    def by_instance(self) -> "JobResult":
        """One column per key, and everything ordered by instance, whatever the batches were."""
        return replace(
            self,
            columns=tuple(_merge_columns(self.columns)),
            texts=tuple(sorted(self.texts, key=itemgetter("instance"))),
            maps=tuple(sorted(self.maps, key=itemgetter("instance", "layer", "head"))),
        )


def run_job(
    subject: Subject,
    examples: Sequence[Example],
    parts: Mapping[str, Check],
    *,
    seed: int,
    max_batch_tokens: int,
    min_words: int = 1,
    reference: ReferenceTexts | None = None,
    report_done: Callable[[int], None] = lambda _: None,
) -> JobResult:
    """Run every check on the examples, batch by batch, on one shared forward pass each.

    Args:
        reference: Whole texts of the data, for checks that compare with them.
        report_done: Called with the number of texts that are done.
    """
    clock, encoded = Clock(), [subject.encode(example) for example in examples]
    kept = [one for one in encoded if one.explained_tokens >= min_words]
    shown = choose_map_instances(kept)
    both = zip(examples, encoded, strict=True)
    people = {one.index: align_annotations(row, one.words) for row, one in both}
    halved: list[list[int]] = []

    def examine(rows: list[int]) -> JobResult:
        texts = tuple(kept[row] for row in rows)
        context = BatchContext(
            subject,
            subject.batch(texts),
            seed,
            max_batch_tokens,
            clock,
            rationales=people,
            reference=reference,
            texts=texts,
        )
        return _examine(context, parts, shown)

    found = JobResult()
    chosen = batches_for(subject, kept, max_batch_tokens=max_batch_tokens)
    for more in retry_in_halves(chosen, examine, halved=halved.append):
        found += more
        report_done(len(found.predicted))
    counts = JobSummary(
        seconds=clock.seconds(),
        truncated=sum(one.truncated for one in kept),
        too_short=len(encoded) - len(kept),
        halved=len(halved),
        words=sum(one.explained_tokens for one in kept),
        threads=torch.get_num_threads() if kept else 0,
    )
    return (found + JobResult(summary=counts)).by_instance()


def retry_in_halves(
    batches: Iterable[list[int]],
    work: Callable[[list[int]], BatchResult],
    *,
    halved: Callable[[list[int]], None] = lambda _: None,
) -> Iterator[BatchResult]:
    """The result of each batch; one that needs too much memory is halved and reported."""
    left = deque(batches)
    while left:
        batch = left.popleft()
        try:
            result = work(batch)
        except (MemoryError, RuntimeError) as error:
            if len(batch) < 2 or not is_out_of_memory(error):
                raise
            halved(batch)
            left.extendleft((batch[len(batch) // 2 :], batch[: len(batch) // 2]))
        else:
            yield result


def _examine(context: BatchContext, parts: Mapping[str, Check], shown: frozenset[int]) -> JobResult:
    """Every check on one batch, whole or not at all."""
    clock, instances = context.clock, context.batch.instances
    columns: list[MeasureColumn] = []
    missing: dict[str, tuple[MissingMeasure, ...]] = {}
    for name, check in parts.items():
        with clock(name), torch.no_grad():
            findings = check(context)
        columns += to_measure_columns(name, instances, findings.measurements)
        missing[name] = findings.missing
    with clock("texts"), torch.no_grad():
        texts = tuple(word_score_rows(context, parts))
        maps = tuple(attention_map_rows(context, shown))
    dtype = str(context.forward.logits.dtype).removeprefix("torch.")
    return JobResult(
        tuple(columns),
        dict(zip(instances, context.predicted.tolist(), strict=True)),
        {one.index: one.label for one in context.texts},
        JobSummary(missing, parity=context.parity, dtype=dtype),
        texts,
        maps,
    )


def to_measure_columns(
    check: str, instances: Sequence[int], measurements: Sequence[Measurement]
) -> Iterator[MeasureColumn]:
    """Measurements of a check on some instances."""
    numbers = np.array(instances, dtype=np.int64)
    for one in measurements:
        yield MeasureColumn(one.key(check), numbers, one.values)


def _merge_columns(columns: Sequence[MeasureColumn]) -> Iterator[MeasureColumn]:
    """One column per key, ordered by instance, whatever the batches were."""
    groups: dict[MeasureKey, list[MeasureColumn]] = {}
    for column in columns:
        groups.setdefault(column.key, []).append(column)
    for key, parts in groups.items():
        instances = np.concatenate([one.instances for one in parts])
        values = np.concatenate([one.values for one in parts])
        order = np.argsort(instances, kind="stable")
        yield MeasureColumn(key, instances[order], values[order])
