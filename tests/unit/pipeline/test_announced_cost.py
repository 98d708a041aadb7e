"""The cost of `influence` is announced before an audit works, and only where it will work."""

import numpy as np

import heedful
from support import subjects


def rows(count):
    draw = np.random.default_rng(0)
    return [
        {"text": " ".join(draw.choice(subjects.WORDS, 7)), "label": f"class{n % 2}"}
        for n in range(count)
    ]


def announced(**given):
    lines = []
    settings = {"influence": {"orders": 4, "costly_texts": 3, "methods": ["attention"]}}
    heedful.audit(
        subjects.subject(),
        rows(12),
        settings=settings,
        announce=lines.append,
        resamples=100,
        **given,
    )
    return lines


def test_the_cost_is_announced_once_and_not_for_a_run_that_is_done(tmp_path):
    (line,) = announced(checks=["influence"], out=tmp_path / "run")
    assert line.startswith("influence, in passes for a text of 20 words: 53 with 4 orders;")
    assert "about 3 of 12 texts" in line
    assert announced(checks=["influence"], out=tmp_path / "run") == []


def test_nothing_is_announced_where_the_check_is_not_run():
    subject, lines = subjects.subject(), []
    heedful.audit(subject, rows(3), checks=["mechanism"], announce=lines.append)
    assert lines == []
