"""A cache of bounded size: what was used last stays, and room is made before a value is."""

import pytest

from heedful.core.cache import LRUCache


def test_what_was_used_last_stays():
    cache, made = LRUCache(2), []

    def get(name):
        return cache.get(name, lambda: made.append(name) or name.upper())

    assert [get(name) for name in "abacab"] == list("ABACAB")
    assert made == ["a", "b", "c", "b"]
    assert len(cache) == 2
    assert "a" in cache
    assert "c" not in cache


def test_room_is_made_before_a_value_is_and_a_failure_leaves_none():
    cache = LRUCache(1)
    cache.get("a", lambda: 1)
    assert cache.get("b", lambda: len(cache)) == 0
    with pytest.raises(ZeroDivisionError):
        cache.get("c", lambda: 1 // 0)
    assert len(cache) == 0
