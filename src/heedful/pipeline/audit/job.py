"""One job: every check on some texts, batch by batch. No files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checks.base import Check
from heedful.core.batch import Encoded
from heedful.core.rationales import align_annotations
from heedful.core.records import MeasureKey, Measurement, MissingMeasure
from heedful.core.timing import Clock, add_seconds
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import ReferenceTexts, Subject
from heedful.pipeline.audit.attention_map_rows import (
    AttentionMapRow,
    attention_map_rows,
    choose_map_instances,
)
from heedful.pipeline.audit.halve_on_oom import retry_in_halves
from heedful.pipeline.audit.word_score_rows import WordScoreRow, word_score_rows


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
    """The results of a job: columns of values, each text's classes, and a summary."""

    columns: tuple[MeasureColumn, ...]
    predicted: Mapping[int, int]
    label: Mapping[int, int]
    summary: JobSummary
    texts: tuple[WordScoreRow, ...] = ()
    maps: tuple[AttentionMapRow, ...] = ()


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
    clock, found = Clock(), _BatchFindings()
    encoded = [subject.encode(example) for example in examples]
    kept = [one for one in encoded if one.explained_tokens >= min_words]
    shown = choose_map_instances(kept)
    both = zip(examples, encoded, strict=True)
    people = {one.index: align_annotations(row, one.words) for row, one in both}

    def examine(rows: list[int]) -> _BatchFindings:
        together = [kept[row] for row in rows]
        batch = subject.batch(together)
        context = BatchContext(
            subject,
            batch,
            seed,
            max_batch_tokens,
            clock,
            rationales=people,
            reference=reference,
            texts=tuple(together),
        )
        return _run_checks(context, together, parts, shown)

    chosen = batches_for(subject, kept, max_batch_tokens=max_batch_tokens)
    for more in retry_in_halves(chosen, examine, halved=found.halve):
        found.add(more)
        report_done(len(found.predicted))
    return found.result(kept, clock, too_short=len(encoded) - len(kept))


@dataclass
class _BatchFindings:
    """The results of some batches."""

    columns: list[MeasureColumn] = field(default_factory=list)
    texts: list[WordScoreRow] = field(default_factory=list)
    maps: list[AttentionMapRow] = field(default_factory=list)
    predicted: dict[int, int] = field(default_factory=dict)
    missing: Missing = field(default_factory=dict)
    parity: float = 0.0
    dtype: str = ""
    halved: int = 0

    def halve(self) -> None:
        self.halved += 1

    def add(self, more: "_BatchFindings") -> None:
        self.columns += more.columns
        self.texts += more.texts
        self.maps += more.maps
        self.predicted |= more.predicted
        self.missing = merge_missing(self.missing, more.missing)
        self.parity, self.dtype = max(self.parity, more.parity), more.dtype

    def result(self, kept: Sequence[Encoded], clock: Clock, *, too_short: int) -> JobResult:
        summary = JobSummary(
            self.missing,
            clock.seconds(),
            self.parity,
            self.dtype,
            truncated=sum(one.truncated for one in kept),
            too_short=too_short,
            halved=self.halved,
            words=sum(one.explained_tokens for one in kept),
            threads=torch.get_num_threads() if kept else 0,
        )
        return JobResult(
            tuple(_merge_columns(self.columns)),
            self.predicted,
            {one.index: one.label for one in kept},
            summary,
            tuple(sorted(self.texts, key=lambda row: row.instance)),
            tuple(sorted(self.maps, key=lambda row: (row.instance, row.layer, row.head))),
        )


def _run_checks(
    context: BatchContext,
    together: Sequence[Encoded],
    parts: Mapping[str, Check],
    shown: frozenset[int],
) -> _BatchFindings:
    """Every check on one batch, whole or not at all."""
    clock, instances = context.clock, context.batch.instances
    found = _BatchFindings(
        predicted=dict(zip(instances, context.predicted.tolist(), strict=True)),
        parity=context.parity,
        dtype=str(context.forward.logits.dtype).removeprefix("torch."),
    )
    for name, check in parts.items():
        with clock(name), torch.no_grad():
            findings = check(context)
        found.columns += to_measure_columns(name, instances, findings.measurements)
        found.missing = {**found.missing, name: findings.missing}
    with clock("texts"), torch.no_grad():
        found.texts += word_score_rows(context, together, parts)
        found.maps += attention_map_rows(context, together, shown)
    return found


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
