"""Lessons on several processes: a worker each, one thread in it, told what to teach line by line.

Workers are started as `python -m heedful.pipeline.retrain.worker` and talk JSON over pipes, so that
they need no guard in a user's script and nothing is pickled. A worker ends when its
input does: no parent, no work. What it had finished is on disk, an epoch that was cut off is
run again.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.core.errors import ConfigError, DataError, ModelError, RunError
from heedful.core.timing import Progress
from heedful.training.variants.variants import Variant, variant_to_dict

ERRORS = {kind.__name__: kind for kind in (ConfigError, DataError, ModelError, RunError)}
TrainVariant = Callable[[Variant, Callable[[str], None]], str | None]
"""Makes a subject, tells how far it is, and gives the reason where it cannot be made."""


def available_cores() -> int:
    """How many processes can run at once here."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(eq=False)
class Worker:
    """A process that teaches one lesson at a time; `room` is the file that says where."""

    input_file: Path
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "heedful.pipeline.retrain.worker", str(self.input_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **one},
            start_new_session=True,  # an interrupt is the parent's to handle
        )

    def __call__(self, variant: Variant, report_progress: Callable[[str], None]) -> str | None:
        """Have the lesson taught."""
        assert self.process.stdin is not None  # noqa: S101 - asked for above
        assert self.process.stdout is not None  # noqa: S101
        try:
            self.process.stdin.write(json.dumps(variant_to_dict(variant)) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise self._gone() from error
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if "told" in said:
                report_progress(said["told"])
            elif "error" in said:
                raise ERRORS.get(said["error"], RunError)(said["why"])
            else:
                refused: str | None = said["refused"]
                return refused
        raise self._gone()

    def end(self) -> None:
        """Let it go, at once."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still to be written has no reader any more
                    continue

    def _gone(self) -> RunError:
        code = self.process.wait()
        how = f"by signal {-code} (out of memory?)" if code < 0 else f"with exit code {code}"
        return RunError(
            f"A training process ended {how}. The same command again goes on from its last epoch; "
            "fewer workers need less memory."
        )


@dataclass(eq=False)
class _WorkQueue:
    """What is to be done, what is being done, what is done; shared by threads under one lock."""

    waiting: list[Variant]
    finished: dict[Variant, str | None] = field(default_factory=dict)
    working: dict[int, str] = field(default_factory=dict)
    failure: BaseException | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self) -> Variant | None:
        """The first lesson whose needs are met, once there is one; None when all is given out."""
        with self.changed:
            while self.waiting and self.failure is None:
                for variant in self.waiting:
                    if all(one in self.finished for one in variant.needs):
                        self.waiting.remove(variant)
                        return variant
                self.changed.wait()
            return None

    def close(self, variant: Variant, refused: str | None) -> None:
        with self.changed:
            self.finished[variant] = refused
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self.changed:
            self.failure = self.failure or error
            self.changed.notify_all()


def train_in_workers(
    asked: Sequence[Variant],
    trainers: Sequence[TrainVariant],
    progress: Progress,
) -> dict[Variant, str]:
    """Have all lessons taught, each after those it needs; the reasons of those that cannot be."""
    board, total = _WorkQueue(list(asked)), len(asked)
    known = set(asked)
    board.finished = {one: None for variant in asked for one in variant.needs if one not in known}
    before = len(board.finished)
    threads = [
        threading.Thread(target=_run_worker, args=(board, teacher, number), daemon=True)
        for number, teacher in enumerate(trainers)
    ]
    for thread in threads:
        thread.start()
    while board.failure is None and (working := [one for one in threads if one.is_alive()]):
        progress(len(board.finished) - before, total, _progress_words(board))
        working[0].join(0.3)
    if board.failure is not None:  # the others are let go by whom they belong to
        raise board.failure
    progress(total, total, "retraining")
    return {variant: why for variant, why in board.finished.items() if why is not None}


def train_in_process(
    asked: Sequence[Variant], train_variant: TrainVariant, progress: Progress
) -> dict[Variant, str]:
    """The same in this thread: one that is interrupted must not go on teaching behind its back."""
    refused: dict[Variant, str] = {}
    for done, variant in enumerate(asked):

        def report_progress(words: str, done: int = done, variant: Variant = variant) -> None:
            progress(done, len(asked), f"retraining: {variant}, {words}")

        why = next((refused[one] for one in variant.needs if one in refused), None)
        if (why := why or train_variant(variant, report_progress)) is not None:
            refused[variant] = why
    progress(len(asked), len(asked), "retraining")
    return refused


def _progress_words(board: _WorkQueue) -> str:
    shown = "; ".join(dict(sorted(board.working.items())).values())
    return f"retraining: {shown}" if shown else "retraining"


def _run_worker(board: _WorkQueue, train_variant: TrainVariant, number: int) -> None:
    while (variant := board.take()) is not None:

        def report_progress(words: str, variant: Variant = variant) -> None:
            board.working[number] = f"{variant}, {words}"

        report_progress("begins")
        try:
            refused = next(
                (board.finished[one] for one in variant.needs if board.finished[one]), None
            )
            board.close(variant, refused or train_variant(variant, report_progress))
        except BaseException as error:  # noqa: BLE001 - raised again where all wait for it
            board.fail(error)
            return
    board.working.pop(number, None)
