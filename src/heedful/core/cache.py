"""A cache of bounded size that removes the least recently used value first."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRUCache(Generic[Key, Value]):
    """Keeps the `size` most recently used values.

    >>> cache = LRUCache[str, str](size=2)
    >>> [cache.get(name, lambda: f"new {name}") for name in ("a", "b", "a", "c")]
    ['new a', 'new b', 'new a', 'new c']
    >>> "a" in cache, "b" in cache
    (True, False)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is missing; old values are removed before that."""
        if key not in self._values:
            while len(self._values) >= self.size:
                self._values.popitem(last=False)
            self._values[key] = make()
        self._values.move_to_end(key)
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
