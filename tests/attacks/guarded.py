"""`python -m attacks.guarded WORDS…`: the command, in a process that gets no more than 2 GiB."""

import os
import subprocess
import sys
from pathlib import Path

from attacks.sandbox import LONGEST_LINE, Answer, limit_memory

TESTS = Path(__file__).parents[1]


def guarded(*words: object, seconds: float = 60.0) -> Answer:
    """Call the command with limits; one that takes longer ends with code −1."""
    call = [sys.executable, "-m", "attacks.guarded", *map(str, words)]
    paths = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    how = {"capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(call, timeout=seconds, env=own, **how)
    except subprocess.TimeoutExpired:
        return Answer(-1, "", f"nothing after {seconds:.0f} seconds")
    return Answer(done.returncode, done.stdout, done.stderr)


def refusal(answer: Answer) -> str:
    """The one clear line in which something was refused."""
    assert answer.code == 2, f"code {answer.code}: {(answer.out + answer.err)[-400:]}"
    assert answer.err.startswith("heedful: "), answer.err
    assert answer.err.count("\n") == 1, answer.err
    assert len(answer.err) < LONGEST_LINE
    return answer.err


if __name__ == "__main__":
    import torch  # noqa: F401 - what it takes to be imported is not what a case takes

    from heedful.cli.main import main

    limit_memory()
    main()
