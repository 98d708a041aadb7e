"""What works for a subject: attention path, parity, methods, checks, and what they cost."""

from collections.abc import Callable
from typing import Any

import torch

from heedful.auditing.job import run_job
from heedful.checks import checks
from heedful.core.errors import HeedfulError
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.base import Subject
from heedful.models.sitting import Sitting

PROBE = "a film that is so fine , and in places so very dull , that nobody could say why it works"
PROBES = 16


def inspect(subject: Subject) -> dict[str, Any]:
    """Try everything on a probe text, and say what happened."""
    probe = subject.batch([subject.encode(Example(0, PROBE, 0))])
    sitting = Sitting(subject, probe)
    limit = getattr(subject, "max_words", None)
    return {
        "family": subject.family,
        "attention_path": "own",
        "parity": sitting.parity,
        "layers": 1,
        "heads": 1,
        "max_length": limit,
        "dtype": str(sitting.forward.logits.dtype).removeprefix("torch."),
        "labels": list(subject.labels),
        "methods": {name: _tried(_method(name, sitting)) for name in methods},
        "checks": {name: _tried(_check(name, sitting)) for name in checks},
        "cpu_seconds_per_1000_texts": _cost(subject),
    }


def _method(name: str, sitting: Sitting) -> Callable[[], object]:
    return lambda: methods.build(name)(sitting, sitting.predicted)


def _check(name: str, sitting: Sitting) -> Callable[[], object]:
    return lambda: checks.build(name)(sitting)


def _tried(work: Callable[[], object]) -> str:
    try:
        with torch.no_grad():
            work()
    except HeedfulError as reason:
        return str(reason)
    return "ok"


def _cost(subject: Subject) -> dict[str, float]:
    """Measured on texts of the probe's length; longer texts cost more."""
    texts = [Example(index, PROBE, 0) for index in range(PROBES)]
    parts = {name: checks.build(name) for name in checks}
    seconds = run_job(subject, texts, parts, seed=0, max_batch_tokens=20_000).beside.seconds
    return {name: round(one["cpu"] * 1000 / PROBES, 2) for name, one in seconds.items()}
