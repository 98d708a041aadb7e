"""CPU and wall seconds by name, with nested work counted once, and progress callbacks."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Adds up seconds by name; while an inner block runs, the outer one is paused."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _since: tuple[float, float] = (0.0, 0.0)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Charge the block to `name`."""
        self._charge()
        self._names.append(name)
        try:
            yield
        finally:
            self._charge()
            self._names.pop()

    def seconds(self) -> dict[str, dict[str, float]]:
        """CPU and wall seconds of every name."""
        return {name: {"cpu": self.cpu[name], "wall": self.wall[name]} for name in self.cpu}

    def _charge(self) -> None:
        now = time.process_time(), time.perf_counter()
        if self._names:
            name = self._names[-1]
            self.cpu[name] = self.cpu.get(name, 0.0) + now[0] - self._since[0]
            self.wall[name] = self.wall.get(name, 0.0) + now[1] - self._since[1]
        self._since = now


def add_seconds(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """The sum of two tables of seconds."""
    zero = {"cpu": 0.0, "wall": 0.0}
    return {
        name: {kind: first.get(name, zero)[kind] + second.get(name, zero)[kind] for kind in zero}
        for name in dict.fromkeys((*first, *second))
    }


Progress = Callable[[int, int, str], None]
"""Called with the work done, the total work, and a short message."""


def no_progress(done: int, total: int, words: str) -> None:
    """Report nothing."""
