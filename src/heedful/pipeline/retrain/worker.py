"""A process that retrains variants: `python -m heedful.pipeline.retrain.worker ROOM`.

It reads one variant a line from its input.
"""

import json
import os
import sys
import threading
from pathlib import Path
from queue import Queue

from heedful.core.errors import HeedfulError, RunError
from heedful.pipeline.retrain.worker_input import open_room
from heedful.training.variants.serialisation import from_dict
from heedful.training.variants.variant_store import School

ANSWERS = sys.stdout


def main(room: Path) -> None:
    """Teach until the input ends."""
    sys.stdout = sys.stderr  # what libraries print is no answer
    lines: Queue[str] = Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    school: School | None = None
    while True:
        lesson = from_dict(json.loads(lines.get()))
        try:
            school = school or open_room(room)
            school.teach(lesson, lambda done, total, words: _say(told=words))  # noqa: ARG005
        except RunError as error:
            _say(error=type(error).__name__, why=str(error))
        except HeedfulError as reason:  # this one cannot be made; what does not need it goes on
            _say(refused=str(reason))
        else:
            _say(refused=None)


def _listen(lines: "Queue[str]") -> None:
    """Pass lines on; when there are no more, nobody is waiting for an answer."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _say(**what: str | None) -> None:
    ANSWERS.write(json.dumps(what) + "\n")
    ANSWERS.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
