"""How much memory a process took at its peak, said by itself.

What the system tells a parent (ru_maxrss) is no less than the parent's own size at the fork.
"""

import os
import re
import subprocess
import sys
from pathlib import Path


def own_peak():
    """MiB, of this process since it began."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024


def measured_peak(module, *words):
    """What a module prints as its own peak, run alone on one thread."""
    command = [sys.executable, "-m", module, *words]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1])
