"""Run cells in parallel, each in its own process, so that a failure does not affect others."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import sleep

from heedful.core.timing import Progress
from heedful.studies.run.grid import StudyCell

POLL_SECONDS = 0.2  # seconds between two polls of the workers
LOG_TAIL = 2000  # bytes of a failed worker's log that are read


def run_cells(
    cells: Sequence[StudyCell], out: Path, *, workers: int, progress: Progress
) -> dict[str, str]:
    """Run the cells that are not done; return the reason of each failure by cell name."""
    waiting = deque(one for one in cells if not one.done(out))
    done, total = len(cells) - len(waiting), len(cells)
    running: dict[Path, tuple[StudyCell, subprocess.Popen[bytes], Path]] = {}
    failed: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                cell = waiting.popleft()
                running[cell.place(out)] = cell, *_start(cell, out)
            progress(done, total, ", ".join(one.name for one, _, _ in running.values()))
            sleep(POLL_SECONDS)
            for place, (cell, process, log) in list(running.items()):
                if process.poll() is not None:
                    _wait(process)
                    del running[place]
                    done += 1
                    if process.returncode:
                        failed[cell.name] = _failure_reason(process.returncode, log)
    finally:  # also when interrupted: stop all workers
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            _wait(process)
    progress(done, total, "done")
    return failed


def _start(cell: StudyCell, out: Path) -> tuple["subprocess.Popen[bytes]", Path]:
    place = cell.place(out)
    place.mkdir(parents=True, exist_ok=True)
    log = place / "log.txt"
    with log.open("wb") as told:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "heedful.studies.run.run_cell", str(out)],
            stdin=subprocess.PIPE,
            stdout=told,
            stderr=told,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.write(json.dumps(asdict(cell)).encode() + b"\n")
    process.stdin.flush()  # stays open: a worker exits when its input closes
    return process, log


def _wait(process: "subprocess.Popen[bytes]") -> None:
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _failure_reason(code: int, log: Path) -> str:
    """The last line that a failed process printed, or its exit code."""
    said = log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace").strip().splitlines()
    if code < 0:
        return f"killed by signal {-code}; is there enough memory?"
    return said[-1].removeprefix("heedful: ") if said else f"ended with code {code}"
