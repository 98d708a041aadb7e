"""A process that does what a model folder asks for, with bounds on its time and its memory.

Templates and tokenizers of strangers are programs: they can loop, grow or end the process they run
in, and nothing inside that process can stop them. `ask` has it done by a process of its own, which
is started once and started again after it was ended.

The parent module runs no task of its own; the process runs as `python -m` this module.
"""

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from heedful.core.errors import ModelError

MOST_MEMORY = 2**30  # bytes of data beyond what the process has at its start
PATIENCE = 60.0  # seconds of waiting beyond the processor's, where the machine is busy
SAID = 400


class Failed(ModelError):
    """What was asked for failed; `kind` is the type of its error, "" where a bound was met."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class BoundedProcess:
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109 - what it stands for
        one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        calm = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0"}
        self.lock = threading.Lock()
        self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # where libraries written in Rust report their panics
            text=True,
            encoding="ascii",
            env={**os.environ, **one, **calm, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, task: str, seconds: float, given: dict[str, Any]) -> Any:
        """Have `module:function` called; raise `Failed` where it fails or meets a bound."""
        request = json.dumps({"task": task, "seconds": seconds, "given": given})
        assert self.process.stdin is not None  # noqa: S101 - a pipe, see above
        assert self.process.stdout is not None  # noqa: S101
        clock = threading.Timer(seconds + PATIENCE, self.process.kill)
        clock.start()
        try:
            with suppress(BrokenPipeError):
                self.process.stdin.write(f"{request}\n")
                self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BaseException:  # interrupted: an answer to come would be taken for another
            self.close()
            raise
        finally:
            clock.cancel()
        if not line:
            raise Failed(self._how_it_ended(seconds))
        reply = json.loads(line)
        if "kind" in reply:
            raise Failed(reply["said"], reply["kind"])
        return reply["value"]

    def _how_it_ended(self, seconds: float) -> str:
        self.close()
        code = self.process.returncode
        in_time = code not in (-getattr(signal, "SIGPROF", 0), -getattr(signal, "SIGKILL", 0))
        ended = f"it ended the process that it was tried in (code {code})"
        return ended if in_time else f"it takes more than {seconds:g} seconds"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


_processes: dict[int, BoundedProcess] = {}  # by the process that asks: forked ones do not share
_starting = threading.Lock()


def ask(task: str, *, seconds: float, **given: Any) -> Any:
    """Call `module:function` with what is given, as JSON, in the bounded process.

    It may take `seconds` of the processor and `MOST_MEMORY` of memory, and is ended where it takes
    more, whatever it is doing. Windows has no such bounds: there a request is ended by the
    clock, after a minute more. macOS does not bound memory.
    """
    with _starting:
        own = _processes.get(os.getpid())
        if own is None or own.process.poll() is not None:
            own = _processes[os.getpid()] = BoundedProcess()
    with own.lock:
        return own.ask(task, seconds, given)


@atexit.register
def _close() -> None:
    if own := _processes.get(os.getpid()):
        own.close()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for; any error becomes a part of the answer."""
    try:
        module, _, function = request["task"].partition(":")
        call = getattr(importlib.import_module(module), function)
        _limit_time(request["seconds"])
        return {"value": call(**request["given"])}
    except MemoryError:
        return {"kind": "", "said": f"it takes more than {MOST_MEMORY // 2**20:,} MiB of memory"}
    except BaseException as error:  # noqa: BLE001 - panics are no Exception
        said = " ".join(str(error).split())[:SAID].rstrip(".")
        return {"kind": type(error).__name__, "said": said}
    finally:
        _limit_time(0)


def _limit_time(seconds: float) -> None:
    """End this process after so many seconds of the processor; never, where they are 0."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends a process within any call


def _limit_memory() -> None:
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = MOST_MEMORY + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve() -> None:
    """Answer the requests on the standard input, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles an interrupt
    _limit_memory()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)  # noqa: T201 - its only output


if __name__ == "__main__":
    serve()
