"""One job: some instances before the subject, every check put to them. No files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.auditing.texts import TextRow, text_rows
from heedful.checks import Check
from heedful.core.clock import Clock, add_seconds
from heedful.core.records import Measurement
from heedful.core.values import Example
from heedful.data.batching import batches
from heedful.models.base import Subject
from heedful.models.sitting import Sitting


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

    def __add__(self, other: "Beside") -> "Beside":
        both = (*self.missing, *other.missing)
        return Beside(
            {name: {**self.missing.get(name, {}), **other.missing.get(name, {})} for name in both},
            add_seconds(self.seconds, other.seconds),
            max(self.parity, other.parity),
            self.dtype or other.dtype,
            self.truncated + other.truncated,
            self.too_short + other.too_short,
        )


@dataclass(frozen=True)
class JobResult:
    """What a job found: tidy blocks, each instance's classes, and what is told beside them."""

    blocks: tuple[Block, ...]
    predicted: Mapping[int, int]
    label: Mapping[int, int]
    beside: Beside
    texts: tuple[TextRow, ...] = ()


def run_job(
    subject: Subject,
    examples: Sequence[Example],
    parts: Mapping[str, Check],
    *,
    seed: int,
    max_batch_tokens: int,
    min_words: int = 1,
    tell: Callable[[int], None] = lambda _: None,
) -> JobResult:
    """Put every check to the examples, batch by batch, on one shared forward pass each.

    `tell` hears how many instances are done.
    """
    clock = Clock()
    encoded = [subject.encode(example) for example in examples]
    kept = [one for one in encoded if one.explained >= min_words]
    blocks: list[Block] = []
    missing: dict[str, dict[str, str]] = {}
    predicted: dict[int, int] = {}
    parity, dtype = 0.0, ""
    texts: list[TextRow] = []
    for rows in batches(kept, max_batch_tokens=max_batch_tokens):
        together = [kept[row] for row in rows]
        batch = subject.batch(together)
        sitting = Sitting(subject, batch, seed, max_batch_tokens, clock)
        parity = max(parity, sitting.parity)
        dtype = str(sitting.forward.logits.dtype).removeprefix("torch.")
        predicted |= dict(zip(batch.instances, sitting.predicted.tolist(), strict=True))
        for name, check in parts.items():
            with clock(name), torch.no_grad():
                findings = check(sitting)
            blocks += _blocks(name, batch.instances, findings.measurements)
            missing.setdefault(name, {}).update(findings.missing)
        with clock("texts"), torch.no_grad():
            texts += text_rows(sitting, together, parts)
        tell(len(predicted))
    beside = Beside(
        missing,
        clock.seconds(),
        parity,
        dtype,
        truncated=sum(one.truncated for one in kept),
        too_short=len(encoded) - len(kept),
    )
    labels = {one.index: one.label for one in kept}
    texts.sort(key=lambda row: row.instance)
    return JobResult(tuple(_merged(blocks)), predicted, labels, beside, tuple(texts))


def _blocks(
    check: str, instances: Sequence[int], measurements: Sequence[Measurement]
) -> Iterator[Block]:
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
