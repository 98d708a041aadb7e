"""The public room `heedful.planted`."""

import doctest

from heedful import planted


def test_examples_in_the_docstring():
    found = doctest.testmod(planted)
    assert found.failed == 0
    assert found.attempted > 8


def test_names_are_sorted_and_there():
    assert planted.__all__ == sorted(planted.__all__)
    assert all(hasattr(planted, name) for name in planted.__all__)
    assert {"InfluenceCase", "KnownText", "influence_cases", "influence_kinds"} <= set(
        planted.__all__
    )
    assert {"score_methods", "score_text"} <= set(planted.__all__)
