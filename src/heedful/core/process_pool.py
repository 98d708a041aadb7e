"""A pool of worker processes that take their tasks as JSON, one per line.

A worker is started as `python -m heedful.core.process_pool MODULE ARGUMENTS` and replies in JSON
over a pipe, so that it needs no guard in a user's script and nothing is pickled. It runs the
function that `open_worker(*ARGUMENTS)` of the module returns. It exits when its input ends, so that
it does not outlive its parent.
"""

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any, TextIO, TypeVar

from heedful.core.errors import HeedfulError, RunError
from heedful.core.timing import Progress

POLL_SECONDS = 0.3  # between two progress reports
Task = TypeVar("Task")  # hashable
ReportProgress = Callable[[str], None]
RunTask = Callable[[Task, ReportProgress], str | None]
"""Runs a task, reports its progress, and returns why it cannot be done, or None once it is."""
TaskFunction = Callable[[dict[str, Any], ReportProgress], str | None]  # in a worker


def available_cores() -> int:
    """How many processes can run at once on this machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerDied(RunError):
    """A worker process ended before it had replied."""


@dataclass(eq=False)
class Worker:
    """A process that runs one task at a time; with `log`, all it prints goes to that file."""

    module: str
    arguments: Sequence[str]
    log: Path | None = None
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        log = None if self.log is None else self.log.open("wb")
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [sys.executable, "-m", "heedful.core.process_pool", self.module, *self.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env={**os.environ, **threads},
                start_new_session=True,  # the parent handles an interrupt
            )
        finally:
            if log is not None:
                log.close()

    def __call__(self, task: Mapping[str, Any], report_progress: ReportProgress) -> str | None:
        """Run a task and wait for the reply: why it cannot be done, or None."""
        assert self.process.stdin is not None  # noqa: S101 - a pipe, see above
        assert self.process.stdout is not None  # noqa: S101
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise self._died() from error
        for line in self.process.stdout:
            reply = _parse_reply(line)
            if "progress" in reply:
                report_progress(reply["progress"])
            elif "error" in reply:
                raise RunError(reply["error"])
            else:
                refusal: str | None = reply["refused"]
                return refusal
        raise self._died()

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            with suppress(OSError):  # unwritten data has no reader any more
                pipe.close()

    def _died(self) -> WorkerDied:
        code = self.process.wait()
        killed = f"was killed by signal {-code} (out of memory?)"
        how = killed if code < 0 else f"exited with {code}"
        return WorkerDied(
            f"A worker process {how}. Run the same command to resume; fewer workers need less "
            "memory."
        )


def _parse_reply(line: str) -> dict[str, Any]:
    try:
        reply = json.loads(line)
    except ValueError:
        reply = None
    if not isinstance(reply, dict) or not reply.keys() & {"progress", "error", "refused"}:
        raise RunError(
            f"A worker process wrote {line.strip()[:200]!r} where its reply was expected. "
            "A library there writes into the pipe of the process; --workers 1 runs without one."
        )
    return reply


def serve(replies: TextIO, run_task: TaskFunction) -> None:
    """Run the tasks on standard input until it ends."""
    lines: Queue[str] = Queue()
    threading.Thread(target=_read_tasks, args=(lines,), daemon=True).start()

    def reply(**content: str | None) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    while True:
        task = json.loads(lines.get())
        try:
            refusal = run_task(task, lambda message: reply(progress=message))
        except HeedfulError as error:
            reply(error=str(error))
        else:
            reply(refused=refusal)


def _take_output() -> TextIO:
    """A duplicate of standard output for replies alone.

    Descriptor 1 then leads to standard error, so that whatever else is printed, from C too, goes
    there.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return replies


def _read_tasks(lines: "Queue[str]") -> None:
    """Queue the lines of standard input; exit when it ends, whatever is running."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def run_tasks(
    tasks: Sequence[Task],
    runners: Sequence[RunTask[Task]],
    progress: Progress,
    *,
    needs: Callable[[Task], Sequence[Task]] = lambda _: (),
    title: str,
) -> dict[Task, str]:
    """Run all tasks, one thread per runner; return why some cannot be done.

    A task runs after those it needs, and cannot be done if one of them cannot. Needs outside
    `tasks` count as done. An exception in a runner is raised at once; the caller ends the others.
    """
    waiting, idle, refused = list(tasks), list(runners), dict[Task, str]()
    running: dict[Future[str | None], tuple[Task, RunTask[Task]]] = {}
    messages: dict[Task, str] = {}

    def report(task: Task, message: str) -> None:
        messages[task] = f"{task}, {message}"

    pool = ThreadPoolExecutor(max(1, len(runners)))
    try:
        while waiting or running:
            unfinished = {*waiting, *(task for task, _ in running.values())}
            for task in [one for one in waiting if unfinished.isdisjoint(needs(one))]:
                if why := _refused_need(task, needs, refused):
                    refused[task] = why
                elif idle:
                    messages[task], runner = str(task), idle.pop()
                    future = pool.submit(runner, task, partial(report, task))
                    running[future] = task, runner
                else:
                    continue
                waiting.remove(task)
            done = len(tasks) - len(waiting) - len(running)
            progress(done, len(tasks), f"{title}: {'; '.join(list(messages.values()))}")
            for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                task, runner = running.pop(future)
                idle.append(runner)
                del messages[task]
                if (why := future.result()) is not None:
                    refused[task] = why
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    progress(len(tasks), len(tasks), title)
    return refused


def _refused_need(
    task: Task, needs: Callable[[Task], Sequence[Task]], refused: Mapping[Task, str]
) -> str | None:
    return next((refused[one] for one in needs(task) if one in refused), None)


def run_tasks_here(
    tasks: Sequence[Task],
    run_task: RunTask[Task],
    progress: Progress,
    *,
    needs: Callable[[Task], Sequence[Task]] = lambda _: (),
    title: str,
) -> dict[Task, str]:
    """Run all tasks in the order given, in this thread, where an interrupt ends the task itself."""
    refused: dict[Task, str] = {}

    def report(done: int, task: Task, message: str) -> None:
        progress(done, len(tasks), f"{title}: {task}, {message}")

    for done, task in enumerate(tasks):
        why = _refused_need(task, needs, refused) or run_task(task, partial(report, done, task))
        if why is not None:
            refused[task] = why
    progress(len(tasks), len(tasks), title)
    return refused


if __name__ == "__main__":
    output = _take_output()  # before the import below: a library may print when it is imported
    serve(output, importlib.import_module(sys.argv[1]).open_worker(*sys.argv[2:]))
