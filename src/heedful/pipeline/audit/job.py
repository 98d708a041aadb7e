"""One job: some instances before the subject, every check put to them. No files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checks import Check
from heedful.core.batch import Encoded
from heedful.core.rationales import align_annotations
from heedful.core.records import Measurement
from heedful.core.timing import Clock, add_seconds
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import ReferenceTexts, Subject
from heedful.pipeline.audit.attention_map_rows import (
    AttentionMapRow,
    attention_map_rows,
    choose_map_instances,
)
from heedful.pipeline.audit.halve_on_oom import retry_in_halves
from heedful.pipeline.audit.word_score_rows import WordScoreRow, word_score_rows
from heedful.training.loop.batching import batches_for


@dataclass(frozen=True, slots=True, eq=False)
class MeasureColumn:
    """One measure of one check on some instances."""

    check: str
    measure: str
    setting: str | None
    instances: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class JobSummary:
    """What a job has to tell beside its rows; jobs' tellings add up."""

    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parity: float = 0.0
    dtype: str = ""
    truncated: int = 0
    too_short: int = 0
    halved: int = 0  # batches cut in two because memory ran out
    taught: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # models made anew
    words: int = 0  # that attention is explained over, in all texts
    threads: int = 0  # that torch computed on, the most of any job

    def __add__(self, other: "JobSummary") -> "JobSummary":
        both = (*self.missing, *other.missing)
        return JobSummary(
            {
                name: _merge_reasons(self.missing.get(name), other.missing.get(name))
                for name in both
            },
            add_seconds(self.seconds, other.seconds),
            max(self.parity, other.parity),
            self.dtype or other.dtype,
            self.truncated + other.truncated,
            self.too_short + other.too_short,
            self.halved + other.halved,
            {**self.taught, **other.taught},
            self.words + other.words,
            max(self.threads, other.threads),
        )


def _merge_reasons(
    one: Mapping[str, str] | None, other: Mapping[str, str] | None
) -> dict[str, str]:
    """Why something is missing, the first reason: in any batching shortest texts come first."""
    known, more = one or {}, other or {}
    return {**known, **{key: why for key, why in more.items() if key not in known}}


@dataclass(frozen=True)
class JobResult:
    """What a job found: tidy blocks, each instance's classes, and what is told beside them."""

    blocks: tuple[MeasureColumn, ...]
    predicted: Mapping[int, int]
    label: Mapping[int, int]
    beside: JobSummary
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
    """Put every check to the examples, batch by batch, on one shared forward pass each.

    `crowd` are whole texts of the data; `tell` hears how many instances are done.
    """
    clock, found = Clock(), _BatchFindings()
    encoded = [subject.encode(example) for example in examples]
    kept = [one for one in encoded if one.explained >= min_words]
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
            people=people,
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
    """What was found on some batches."""

    blocks: list[MeasureColumn] = field(default_factory=list)
    texts: list[WordScoreRow] = field(default_factory=list)
    maps: list[AttentionMapRow] = field(default_factory=list)
    predicted: dict[int, int] = field(default_factory=dict)
    missing: dict[str, dict[str, str]] = field(default_factory=dict)
    parity: float = 0.0
    dtype: str = ""
    halved: int = 0

    def halve(self) -> None:
        self.halved += 1

    def add(self, more: "_BatchFindings") -> None:
        self.blocks += more.blocks
        self.texts += more.texts
        self.maps += more.maps
        self.predicted |= more.predicted
        for name, reasons in more.missing.items():
            self.missing[name] = _merge_reasons(self.missing.get(name), reasons)
        self.parity, self.dtype = max(self.parity, more.parity), more.dtype

    def result(self, kept: Sequence[Encoded], clock: Clock, *, too_short: int) -> JobResult:
        beside = JobSummary(
            self.missing,
            clock.seconds(),
            self.parity,
            self.dtype,
            truncated=sum(one.truncated for one in kept),
            too_short=too_short,
            halved=self.halved,
            words=sum(one.explained for one in kept),
            threads=torch.get_num_threads() if kept else 0,
        )
        return JobResult(
            tuple(_merge_columns(self.blocks)),
            self.predicted,
            {one.index: one.label for one in kept},
            beside,
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
        found.blocks += to_measure_columns(name, instances, findings.measurements)
        found.missing[name] = dict(findings.missing)
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
        yield MeasureColumn(check, one.measure, one.setting, numbers, one.values)


def _merge_columns(blocks: Sequence[MeasureColumn]) -> Iterator[MeasureColumn]:
    """One block per measure, ordered by instance: how texts were batched leaves no trace."""
    groups: dict[tuple[str, str, str | None], list[MeasureColumn]] = {}
    for block in blocks:
        groups.setdefault((block.check, block.measure, block.setting), []).append(block)
    for (check, measure, setting), parts in groups.items():
        instances = np.concatenate([one.instances for one in parts])
        values = np.concatenate([one.values for one in parts])
        order = np.argsort(instances, kind="stable")
        yield MeasureColumn(check, measure, setting, instances[order], values[order])
