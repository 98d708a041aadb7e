"""The public room `heedful.planted`."""

import doctest

from heedful import planted


def test_examples_in_the_docstring():
    found = doctest.testmod(planted)
    assert found.failed == 0
    assert found.attempted > 8


def test_both_benchmarks_are_there():
    names = set(planted.__all__)
    assert all(hasattr(planted, name) for name in names)
    assert {"cases", "trained_cases", "InfluenceCase", "KnownText", "influence_cases"} <= names
    assert {"influence_kinds", "score_methods", "score_text"} <= names
