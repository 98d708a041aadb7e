"""Run the cells of a study side by side, each in a process of its own."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from heedful.core.process_pool import ReportProgress, Worker, WorkerDied, run_tasks
from heedful.core.timing import Progress
from heedful.studies.run.grid import StudyCell

LOG_TAIL = 2000  # characters at the end of a log that are searched for the last line


@dataclass(frozen=True)
class _CellTask:
    """A cell to run, identified by its folder."""

    folder: Path
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class _CellRunner:
    """Runs cells one after the other, each in a new process: a crash harms no other cell."""

    cells: dict[Path, StudyCell]
    out: Path
    worker: Worker | None = None

    def __call__(self, task: _CellTask, report_progress: ReportProgress) -> str | None:
        self.worker = start_worker(task.folder, self.out)
        try:
            return self.worker(asdict(self.cells[task.folder]), report_progress)
        except WorkerDied as error:
            return _last_line(task.folder) if (self.worker.process.returncode > 0) else str(error)
        finally:
            self.end()

    def end(self) -> None:
        """Kill the running process, if any."""
        if self.worker is not None:
            self.worker.end()


def run_cells(
    cells: Sequence[StudyCell], out: Path, *, workers: int, progress: Progress
) -> dict[str, str]:
    """Run the cells that are not done; return why some failed, by name."""
    todo = {cell.place(out): cell for cell in cells if not cell.done(out)}
    done = len(cells) - len(todo)
    tasks = [_CellTask(folder, cell.name) for folder, cell in todo.items()]
    runners = [_CellRunner(todo, out) for _ in range(min(workers, len(tasks)))]

    def report(finished: int, total: int, message: str) -> None:  # noqa: ARG001
        progress(done + finished, len(cells), message)

    try:
        failed = run_tasks(tasks, runners, report, title="cells")
    finally:
        for runner in runners:
            runner.end()
    return {task.name: why for task, why in failed.items()}


def start_worker(folder: Path, out: Path) -> Worker:
    """A process that runs one cell and writes its log to the folder of the cell."""
    folder.mkdir(parents=True, exist_ok=True)
    return Worker("heedful.studies.run.run_cell", [str(out)], log=folder / "log.txt")


def _last_line(folder: Path) -> str:
    """The last line of the log of a failed cell."""
    log = (folder / "log.txt").read_bytes()[-LOG_TAIL:].decode("utf-8", "replace").strip()
    return log.splitlines()[-1] if log else "its process ended without a message"
