"""Settings are checked against the annotations of their dataclass; errors say what must hold."""

import doctest
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt, MinLen

from heedful.core import settings
from heedful.core.errors import ConfigError
from heedful.core.settings import (
    Fraction,
    PositiveFloat,
    PositiveInt,
    check_on_init,
    check_setting,
    check_settings,
    setting_types,
)

NAN = float("nan")


@dataclass(frozen=True)
class Part:
    samples: PositiveInt = 16
    share: Fraction = 0.5
    norm: Literal["l1", "l2"] = "l2"
    layer: int | None = None


def test_examples_hold():
    assert doctest.testmod(settings).failed == 0


@pytest.mark.parametrize(
    ("hint", "good"),
    [
        (int, 3),
        (float, 0.5),
        (bool, True),
        (str, "x"),
        (PositiveInt | None, None),
        (tuple[str, ...], ("a", "b")),
        (Mapping[str, Any], {"a": 1}),
        (Part, Part()),
    ],
)
def test_what_fits_its_type_comes_back(hint, good):
    assert check_setting("x", good, hint) == good


def test_a_whole_number_may_stand_for_a_fraction():
    assert isinstance(check_setting("x", 1, float), float)
    assert check_setting("x", (1, 2.5), tuple[float, ...]) == (1.0, 2.5)


@pytest.mark.parametrize(
    ("hint", "wrong", "words"),
    [
        (int, True, "a whole number"),
        (int, 1.0, "a whole number"),
        (float, "1", "a number"),
        (bool, 1, "true or false"),
        (str, 1, "a name"),
        (PositiveInt, 0, "a whole number of at least 1"),
        (PositiveFloat, NAN, "a number above 0"),
        (Fraction, 1.5, "a number between 0 and 1"),
        (Fraction, NAN, "a number between 0 and 1"),
        (Annotated[float, Gt(0), Lt(1)], 1, "a number above 0 and below 1"),
        (Annotated[int, Le(3)], 4, "a whole number of at most 3"),
        (Literal["a", "b", "c"], "d", "a, b or c"),
        (Literal["a"], ["a"], "a"),
        (int | None, "x", "a whole number"),
        (tuple[str, ...], ("a", 1), "a list of names"),
        (tuple[Annotated[float, Ge(0)], ...], (0.5, -1), "a list of numbers of at least 0"),
        (Mapping[str, int], 3, "a table"),
        (Part, 3, "Part"),
    ],
)
def test_an_error_says_what_must_hold_and_what_came(hint, wrong, words):
    with pytest.raises(ConfigError) as caught:
        check_setting("a.b", wrong, hint)
    assert str(caught.value) == f"a.b must be {words}, not {wrong!r}."


def test_settings_of_a_part_are_checked_by_name():
    assert list(setting_types(Part)) == ["samples", "share", "norm", "layer"]
    assert setting_types(print) == {}
    assert check_settings(Part, {"share": 1}) == {"share": 1.0}
    with pytest.raises(ConfigError, match=r"^part\.norm must be l1 or l2, not 'l3'\.$"):
        check_settings(Part, {"norm": "l3"}, prefix="part.")
    with pytest.raises(ConfigError, match=r"^There is no setting part\.size\. Settings: samples, "):
        check_settings(Part, {"size": 3}, prefix="part.")


def test_a_part_may_check_itself_whenever_it_is_made():
    @dataclass(frozen=True)
    class Own:
        samples: PositiveInt = 1

    assert check_on_init(check_on_init(Own, prefix="own."), prefix="twice.") is Own
    assert Own(3).samples == 3
    with pytest.raises(ConfigError, match=r"^own\.samples must be a whole number of at least 1"):
        Own(samples=0)
    assert check_on_init(int) is int


@pytest.mark.parametrize(
    "hint",
    [
        tuple[float, ...],
        Annotated[tuple[float, ...], MinLen(1)],
        tuple[float, ...] | None,
    ],
)
def test_a_list_becomes_a_tuple_wherever_the_annotation_takes_one(hint):
    assert check_setting("bins", [0.5, 1], hint) == (0.5, 1.0)
