"""A process that retrains variants: `python -m heedful.pipeline.retrain.worker ROOM`.

It reads one variant a line from its input.
"""

import json
import os
import sys
import threading
from pathlib import Path
from queue import Queue

import torch

from heedful.core.errors import HeedfulError, RunError
from heedful.pipeline.retrain.worker_input import read_worker_input
from heedful.training.variants.serialisation import variant_from_dict
from heedful.training.variants.variant_store import VariantStore

REPLIES = sys.stdout


def main(input_file: Path) -> None:
    """Teach until the input ends, on one thread: there is a process for each core."""
    torch.set_num_threads(1)
    sys.stdout = sys.stderr  # what libraries print is no answer
    lines: Queue[str] = Queue()
    threading.Thread(target=_read_requests, args=(lines,), daemon=True).start()
    variant_store: VariantStore | None = None
    while True:
        variant = variant_from_dict(json.loads(lines.get()))
        try:
            variant_store = variant_store or read_worker_input(input_file)
            variant_store.train_variant(variant, lambda done, total, words: _reply(told=words))  # noqa: ARG005
        except RunError as error:
            _reply(error=type(error).__name__, why=str(error))
        except HeedfulError as reason:  # this one cannot be made; what does not need it goes on
            _reply(refused=str(reason))
        else:
            _reply(refused=None)


def _read_requests(lines: "Queue[str]") -> None:
    """Pass lines on; when there are no more, nobody is waiting for an answer."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _reply(**what: str | None) -> None:
    REPLIES.write(json.dumps(what) + "\n")
    REPLIES.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
