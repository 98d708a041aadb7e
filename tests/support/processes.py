"""Other processes, and whether they still live."""

import os
import time
from pathlib import Path


def gone(process, seconds=60.0):
    """Whether a process ends within some time: it may still be loading when it is orphaned."""
    until = time.monotonic() + seconds
    while alive(process):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def alive(process):
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().split()[2]
    except (ProcessLookupError, FileNotFoundError):
        return False
