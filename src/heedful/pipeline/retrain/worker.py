"""A process that retrains variants: `python -m heedful.pipeline.retrain.worker ROOM`.

It reads one variant a line from its input.
"""

import json
import os
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, TextIO

from heedful.core.errors import HeedfulError, RunError

if TYPE_CHECKING:
    from heedful.training.variants.variant_store import VariantStore


def main(input_file: Path) -> None:
    """Teach until the input ends."""
    answers = _take_output()
    # only now: a library may print when it is imported
    from heedful.pipeline.retrain.worker_input import read_worker_input
    from heedful.training.variants.serialisation import variant_from_dict

    lines: Queue[str] = Queue()
    threading.Thread(target=_read_requests, args=(lines,), daemon=True).start()
    variant_store: VariantStore | None = None
    while True:
        variant = variant_from_dict(json.loads(lines.get()))
        try:
            variant_store = variant_store or read_worker_input(input_file)
            variant_store.train_variant(
                variant, lambda done, total, words: _reply(answers, told=words)
            )
        except RunError as error:
            _reply(answers, error=type(error).__name__, why=str(error))
        except HeedfulError as reason:  # this one cannot be made; what does not need it goes on
            _reply(answers, refused=str(reason))
        else:
            _reply(answers, refused=None)


def _take_output() -> TextIO:
    """The standard output, for answers alone.

    Descriptor 1 is copied and then leads to standard error, so that whatever else is printed goes
    there, also by C libraries.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return answers


def _read_requests(lines: "Queue[str]") -> None:
    """Pass lines on; when there are no more, nobody is waiting for an answer."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _reply(answers: TextIO, **what: str | None) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
