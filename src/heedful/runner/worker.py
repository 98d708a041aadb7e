"""A process that teaches: `python -m heedful.runner.worker ROOM`, a lesson a line on its input."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from queue import Queue

from heedful.core.errors import HeedfulError, NotApplicable
from heedful.runner.rooms import open_room
from heedful.training.lessons import from_dict


def main(room: Path) -> None:
    """Teach until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    lines: Queue[str] = Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    school = open_room(room)
    while True:
        lesson = from_dict(json.loads(lines.get()))
        try:
            school.teach(lesson, lambda done, total, words: _say(told=words))  # noqa: ARG005
        except NotApplicable as reason:
            _say(refused=str(reason))
        except HeedfulError as error:
            _say(error=type(error).__name__, why=str(error))
        else:
            _say(refused=None)


def _listen(lines: "Queue[str]") -> None:
    """Pass lines on; when there are no more, nobody is waiting for an answer."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _say(**what: str | None) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
