"""Cases run in forked processes with limits: one that hangs, dies or eats memory is one failure."""

import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from heedful.core.errors import HeedfulError

GIB = 2**30
MOST_MEMORY = 2 * GIB  # beyond what the process had before the case
SLACK = GIB // 4  # virtual memory that is reserved and never used
LONGEST_LINE = 2000  # a clear line is one that can be read
NO_MEMORY = ("can't allocate", "cannot allocate", "out of memory", "ran out", "bad_alloc")
GOOD = ("ok", "refused")
BAD = ("traceback", "hang", "memory", "marker", "silent", "died", "generator")


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str = ""
    err: str = ""


def nothing_to_say(_: Answer) -> str:
    """Any answer is right."""
    return ""


def must_be_refused(_: Answer) -> str:
    """No answer is right."""
    return "accepted what must be refused"


@dataclass(frozen=True)
class Attempt:
    """One attack that is laid out on the disk: what it is, how it is run, which answer is right.

    `wrong` gives a complaint about the answer of a command that was done, or "". `codes` are exit
    codes that count as done; 2 is a refusal always.
    """

    what: str
    run: Callable[[], Answer]
    wrong: Callable[[Answer], str] = nothing_to_say
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Place:
    """Where a case may write: its folder, and the path that only executed code would make."""

    folder: Path
    marker: Path


Draw = Callable[[random.Random, Place], Attempt]


@dataclass(frozen=True)
class Outcome:
    """How one case ended."""

    generator: str
    number: int
    kind: str
    what: str = ""
    detail: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.kind in GOOD


@dataclass(frozen=True)
class Campaign:
    """Cases 0 … count − 1 of a generator; each is drawn from the seed, its name and its number.

    A process runs `chunk` cases; where a case changes what the next would see, one.
    """

    generator: str
    draw: Draw
    seed: int
    scratch: Path
    chunk: int = 1
    seconds: float = 60.0

    def random(self, number: int) -> random.Random:
        return random.Random(f"{self.seed}/{self.generator}/{number}")

    def place(self, number: int) -> Place:
        base = self.scratch / f"{self.generator}-{number}"
        return Place(base / "work", base / "marker")


def run_command(*words: object) -> Answer:
    """Call the command line's entry function; nothing that it writes is lost, panics included."""
    from heedful.cli.main import main

    with _captured("out", "err") as read:
        sys.argv = ["heedful", *map(str, words)]
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return Answer(code, *read())


def run_function(function: Callable[[], object]) -> Answer:
    """Call a Python function; an error raised on purpose is a refusal as the command prints it."""
    try:
        function()
    except HeedfulError as error:
        return Answer(2, "", f"heedful: {' '.join(str(error).split())}\n")
    return Answer(0)


@contextmanager
def _captured(*names: str) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Inside the block the file descriptors 1 and 2 write to files beside the working folder."""
    paths = [Path.cwd().parent / name for name in names]
    sys.stdout.flush()
    before = [os.dup(number) for number in (1, 2)]
    for number, path in zip((1, 2), paths, strict=True):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    try:
        yield lambda: tuple(path.read_text(errors="replace") for path in paths)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, kept in zip((1, 2), before, strict=True):
            os.dup2(kept, number)
            os.close(kept)


def judge(attempt: Attempt, answer: Answer) -> tuple[str, str]:
    """The kind of an outcome and its detail."""
    if "Traceback (most recent" in answer.err or "panicked at" in answer.err:
        return "traceback", answer.err.strip()[-600:]
    if answer.code == 2:
        return judge_refusal(answer)
    if answer.code not in attempt.codes:
        return "traceback", f"exit code {answer.code}: {answer.err.strip()[-600:]}"
    complaint = attempt.wrong(answer)
    return ("silent", complaint) if complaint else ("ok", "")


def judge_refusal(answer: Answer) -> tuple[str, str]:
    """Whether a refusal is one clear line."""
    line = answer.err
    if not line.startswith("heedful: ") or line.count("\n") != 1 or len(line) > LONGEST_LINE:
        return "traceback", f"not one clear line but {len(line)} signs: {line[:600]!r}"
    if any(sign in line.lower() for sign in NO_MEMORY):
        return "memory", line.strip()
    return "refused", line.strip()


def run_case(campaign: Campaign, number: int, tell: Callable[[dict[str, object]], None]) -> Outcome:
    """Draw one case, run it and judge it, in this process."""
    place, what, begun = campaign.place(number), "", time.monotonic()
    place.folder.mkdir(parents=True)
    os.chdir(place.folder)
    try:
        attempt = campaign.draw(campaign.random(number), place)
    except Exception:  # noqa: BLE001 - the fault is the generator's
        return Outcome(campaign.generator, number, "generator", "", traceback.format_exc()[-1500:])
    before = _peak_memory(reset=True)
    try:
        what = attempt.what
        tell({"begun": number, "what": what})
        kind, detail = judge(attempt, attempt.run())
    except MemoryError:
        kind, detail = "memory", "MemoryError"
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        kind, detail = "traceback", _last_frames(error)
    if (grown := _peak_memory() - before) > MOST_MEMORY:
        kind, detail = "memory", f"{grown / GIB:.1f} GiB more than before. {detail}"
    if place.marker.exists():
        kind, detail = "marker", f"code was executed. {detail}"
    return Outcome(campaign.generator, number, kind, what, detail, time.monotonic() - begun)


def _last_frames(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames[::-1])
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({where})"


def _status(key: str) -> int:
    """A size in /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


def _peak_memory(*, reset: bool = False) -> int:
    """The most memory that this process ever had, or since it was last reset."""
    if reset:
        with suppress(OSError):  # not every kernel can
            Path("/proc/self/clear_refs").write_text("5")
    return _status("VmHWM")


def limit_memory() -> None:
    """Let this process take no more than it may: whoever asks for more gets a MemoryError."""
    most = _status("VmData") + MOST_MEMORY + SLACK
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fork(work: Callable[[], None]) -> int:
    """Do work in a process of its own, in a group of its own; gives its number.

    What the parent imported is there already: thousands of cases pay for the imports once.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        with suppress(OSError):  # it may have done so itself, and be over
            os.setpgid(child, child)
        return child
    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - it goes no further: this process ends here
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def run_forked(work: Callable[[], object]) -> int:
    """Do work in a process of its own and wait for it; gives its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(fork(lambda: work() and None), 0)[1])


@dataclass
class _Child:
    """A process with its chunk of cases, and what it said so far."""

    process: int
    pipe: int
    left: list[int]
    said: bytes = b""
    since: float = field(default_factory=time.monotonic)
    what: str = ""


def run_campaign(
    campaign: Campaign, numbers: Sequence[int], *, workers: int = 1
) -> Iterator[Outcome]:
    """The outcome of every case, in the order in which they end."""
    waiting = deque(
        list(numbers[start : start + campaign.chunk])
        for start in range(0, len(numbers), campaign.chunk)
    )
    children: list[_Child] = []
    try:
        while waiting or children:
            while waiting and len(children) < workers:
                children.append(_start(campaign, waiting.popleft()))
            select.select([one.pipe for one in children], [], [], 0.2)
            for child in tuple(children):
                ended = _ending(campaign, child)
                yield from _hear(child)  # the last words of one that is over, too
                if ended is None:
                    continue
                children.remove(child)
                os.close(child.pipe)
                if child.left:
                    yield _failed(campaign, child, ended)
                    _clean(campaign.place(child.left[0]))
                    waiting.extendleft([child.left[1:]] if child.left[1:] else [])
    finally:
        for child in children:
            _kill(child.process)


def _start(campaign: Campaign, chunk: list[int]) -> _Child:
    read, write = os.pipe()

    def work() -> None:
        os.close(read)
        limit_memory()

        def tell(message: dict[str, object]) -> None:
            os.write(write, json.dumps(message).encode() + b"\n")

        for number in chunk:
            outcome = run_case(campaign, number, tell)
            os.chdir(campaign.scratch)
            _clean(campaign.place(number))
            tell({"outcome": asdict(outcome)})

    process = fork(work)
    os.close(write)
    os.set_blocking(read, False)
    return _Child(process, read, chunk)


def _hear(child: _Child) -> Iterator[Outcome]:
    """Read what a child said; the clock starts again with every case."""
    while select.select([child.pipe], [], [], 0)[0] and (more := os.read(child.pipe, 65536)):
        child.said += more
    *lines, child.said = child.said.split(b"\n")
    for line in lines:
        message = json.loads(line)
        if "outcome" in message:
            child.left.pop(0)
            child.since, child.what = time.monotonic(), ""
            yield Outcome(**message["outcome"])
        else:
            child.what = message["what"]


def _ending(campaign: Campaign, child: _Child) -> str | None:
    """Why a process is over; None while it runs."""
    process, status = os.waitpid(child.process, os.WNOHANG)
    if process:
        return f"the process ended with {os.waitstatus_to_exitcode(status)}"
    if time.monotonic() - child.since < campaign.seconds:
        return None
    _kill(child.process)
    return f"after {campaign.seconds:.0f} seconds"


def _failed(campaign: Campaign, child: _Child, why: str) -> Outcome:
    kind = "hang" if why.startswith("after") else "died"
    seconds = time.monotonic() - child.since
    return Outcome(campaign.generator, child.left[0], kind, child.what, why, seconds)


def _kill(process: int) -> None:
    """End a process that we forked, with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _clean(place: Place) -> None:
    """Remove all that a case left."""
    shutil.rmtree(place.folder.parent, ignore_errors=True)
