"""One job: some instances before the subject, every check put to them. No files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checks import Check
from heedful.core.batch import Encoded
from heedful.core.rationales import people_of
from heedful.core.records import Measurement
from heedful.core.timing import Clock, add_seconds
from heedful.core.values import Example
from heedful.models.batch_context import Sitting
from heedful.models.protocols import Subject, Whole
from heedful.pipeline.audit.attention_map_rows import MapRow, map_rows, shown_instances
from heedful.pipeline.audit.halve_on_oom import in_halves
from heedful.pipeline.audit.word_score_rows import TextRow, text_rows
from heedful.training.loop.batching import batches_for


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One measure of one check on some instances."""

    check: str
    measure: str
    setting: str | None
    instances: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Beside:
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

    def __add__(self, other: "Beside") -> "Beside":
        both = (*self.missing, *other.missing)
        return Beside(
            {name: _first(self.missing.get(name), other.missing.get(name)) for name in both},
            add_seconds(self.seconds, other.seconds),
            max(self.parity, other.parity),
            self.dtype or other.dtype,
            self.truncated + other.truncated,
            self.too_short + other.too_short,
            self.halved + other.halved,
            {**self.taught, **other.taught},
            self.words + other.words,
        )


def _first(one: Mapping[str, str] | None, other: Mapping[str, str] | None) -> dict[str, str]:
    """Why something is missing, the first reason: in any batching shortest texts come first."""
    known, more = one or {}, other or {}
    return {**known, **{key: why for key, why in more.items() if key not in known}}


@dataclass(frozen=True)
class JobResult:
    """What a job found: tidy blocks, each instance's classes, and what is told beside them."""

    blocks: tuple[Block, ...]
    predicted: Mapping[int, int]
    label: Mapping[int, int]
    beside: Beside
    texts: tuple[TextRow, ...] = ()
    maps: tuple[MapRow, ...] = ()


def run_job(
    subject: Subject,
    examples: Sequence[Example],
    parts: Mapping[str, Check],
    *,
    seed: int,
    max_batch_tokens: int,
    min_words: int = 1,
    crowd: Whole | None = None,
    tell: Callable[[int], None] = lambda _: None,
) -> JobResult:
    """Put every check to the examples, batch by batch, on one shared forward pass each.

    `crowd` are whole texts of the data; `tell` hears how many instances are done.
    """
    clock, found = Clock(), _Found()
    encoded = [subject.encode(example) for example in examples]
    kept = [one for one in encoded if one.explained >= min_words]
    shown = shown_instances(kept)
    both = zip(examples, encoded, strict=True)
    people = {one.index: people_of(row, one.words) for row, one in both}

    def examine(rows: list[int]) -> _Found:
        together = [kept[row] for row in rows]
        batch = subject.batch(together)
        sitting = Sitting(
            subject,
            batch,
            seed,
            max_batch_tokens,
            clock,
            people=people,
            crowd=crowd,
            texts=tuple(together),
        )
        return _examine(sitting, together, parts, shown)

    chosen = batches_for(subject, kept, max_batch_tokens=max_batch_tokens)
    for more in in_halves(chosen, examine, halved=found.halve):
        found.add(more)
        tell(len(found.predicted))
    return found.result(kept, clock, too_short=len(encoded) - len(kept))


@dataclass
class _Found:
    """What was found on some batches."""

    blocks: list[Block] = field(default_factory=list)
    texts: list[TextRow] = field(default_factory=list)
    maps: list[MapRow] = field(default_factory=list)
    predicted: dict[int, int] = field(default_factory=dict)
    missing: dict[str, dict[str, str]] = field(default_factory=dict)
    parity: float = 0.0
    dtype: str = ""
    halved: int = 0

    def halve(self) -> None:
        self.halved += 1

    def add(self, more: "_Found") -> None:
        self.blocks += more.blocks
        self.texts += more.texts
        self.maps += more.maps
        self.predicted |= more.predicted
        for name, reasons in more.missing.items():
            self.missing[name] = _first(self.missing.get(name), reasons)
        self.parity, self.dtype = max(self.parity, more.parity), more.dtype

    def result(self, kept: Sequence[Encoded], clock: Clock, *, too_short: int) -> JobResult:
        beside = Beside(
            self.missing,
            clock.seconds(),
            self.parity,
            self.dtype,
            truncated=sum(one.truncated for one in kept),
            too_short=too_short,
            halved=self.halved,
            words=sum(one.explained for one in kept),
        )
        return JobResult(
            tuple(_merged(self.blocks)),
            self.predicted,
            {one.index: one.label for one in kept},
            beside,
            tuple(sorted(self.texts, key=lambda row: row.instance)),
            tuple(sorted(self.maps, key=lambda row: (row.instance, row.layer, row.head))),
        )


def _examine(
    sitting: Sitting,
    together: Sequence[Encoded],
    parts: Mapping[str, Check],
    shown: frozenset[int],
) -> _Found:
    """Every check on one batch, whole or not at all."""
    clock, instances = sitting.clock, sitting.batch.instances
    found = _Found(
        predicted=dict(zip(instances, sitting.predicted.tolist(), strict=True)),
        parity=sitting.parity,
        dtype=str(sitting.forward.logits.dtype).removeprefix("torch."),
    )
    for name, check in parts.items():
        with clock(name), torch.no_grad():
            findings = check(sitting)
        found.blocks += blocks_of(name, instances, findings.measurements)
        found.missing[name] = dict(findings.missing)
    with clock("texts"), torch.no_grad():
        found.texts += text_rows(sitting, together, parts)
        found.maps += map_rows(sitting, together, shown)
    return found


def blocks_of(
    check: str, instances: Sequence[int], measurements: Sequence[Measurement]
) -> Iterator[Block]:
    """Measurements of a check on some instances."""
    numbers = np.array(instances, dtype=np.int64)
    for one in measurements:
        yield Block(check, one.measure, one.setting, numbers, one.values)


def _merged(blocks: Sequence[Block]) -> Iterator[Block]:
    """One block per measure, ordered by instance: how texts were batched leaves no trace."""
    groups: dict[tuple[str, str, str | None], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block.check, block.measure, block.setting), []).append(block)
    for (check, measure, setting), parts in groups.items():
        instances = np.concatenate([one.instances for one in parts])
        values = np.concatenate([one.values for one in parts])
        order = np.argsort(instances, kind="stable")
        yield Block(check, measure, setting, instances[order], values[order])
