"""Seconds by name: what runs inside another name is counted once, on the inner one."""

import pytest

from heedful.core import timing as room
from heedful.core.timing import Clock, add_seconds


class FakeTime:
    """A wall clock that goes only when told, and a CPU that works half of the time."""

    now = 0.0

    def process_time(self):
        return 100.0 + self.now / 2

    def perf_counter(self):
        return 7000.0 + self.now

    def pass_(self, seconds):
        self.now += seconds


@pytest.fixture
def time(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(room, "time", fake)
    return fake


def test_a_block_is_charged_to_its_name(time):
    clock = Clock()
    time.pass_(50)
    with clock("work"):
        time.pass_(3)
    time.pass_(50)
    assert clock.seconds() == {"work": {"cpu": 1.5, "wall": 3.0}}


def test_nested_work_is_counted_once(time):
    clock = Clock()
    with clock("outer"):
        time.pass_(1)
        with clock("inner"):
            time.pass_(10)
            with clock("innermost"):
                time.pass_(100)
            time.pass_(20)
        time.pass_(2)
    assert clock.wall == {"outer": 3.0, "inner": 30.0, "innermost": 100.0}
    assert clock.cpu == {"outer": 1.5, "inner": 15.0, "innermost": 50.0}


def test_the_same_name_again_and_inside_itself_adds_up(time):
    clock = Clock()
    for _ in range(2):
        with clock("work"):
            time.pass_(1)
            with clock("work"):
                time.pass_(5)
        time.pass_(1000)
    assert clock.wall == {"work": 12.0}


def test_an_error_is_charged_and_the_clock_goes_on(time):
    clock = Clock()

    def fail():
        with clock("inner"):
            time.pass_(4)
            raise KeyError

    with clock("outer"):
        with pytest.raises(KeyError):
            fail()
        time.pass_(1)
    assert clock.wall == {"outer": 1.0, "inner": 4.0}


def test_clocks_share_nothing(time):
    one, other = Clock(), Clock()
    with one("work"):
        time.pass_(1)
    assert other.seconds() == {}


def test_sums_of_seconds_keep_every_name():
    one = {"a": {"cpu": 1.0, "wall": 2.0}, "b": {"cpu": 3.0, "wall": 4.0}}
    other = {"b": {"cpu": 10.0, "wall": 20.0}, "c": {"cpu": 5.0, "wall": 6.0}}
    total = add_seconds(one, other)
    assert total == {
        "a": {"cpu": 1.0, "wall": 2.0},
        "b": {"cpu": 13.0, "wall": 24.0},
        "c": {"cpu": 5.0, "wall": 6.0},
    }
    assert list(total) == ["a", "b", "c"]
    assert add_seconds({}, {}) == {}
    assert one["b"] == {"cpu": 3.0, "wall": 4.0}  # the summands are left alone
