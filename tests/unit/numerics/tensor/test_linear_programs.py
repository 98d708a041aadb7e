"""Linear programs solved together give what each gives alone."""

import numpy as np
import pytest
from scipy.optimize import linprog

from heedful.numerics.tensor.linear_programs import (
    PROGRAMS_PER_SOLVE,
    LinearProgram,
    solve_in_balls,
)


def program(rng, words, classes, *, shift=0.0):
    """Chances that some weights reach exactly; a shift puts them out of reach of all weights."""
    slope = rng.random((words, classes)) * 0.3
    return LinearProgram(rng.random(words), slope, rng.dirichlet(np.ones(words)) @ slope - shift)


def alone(one, epsilon):
    """The same program, written once more for scipy."""
    words, classes = one.slope.shape
    answer = linprog(
        [*-one.goal, *np.zeros(classes)],
        A_ub=[
            *([*one.slope[:, c], *-np.eye(classes)[c]] for c in range(classes)),
            [*np.zeros(words), *np.ones(classes)],
        ],
        b_ub=[*one.room, epsilon],
        A_eq=[[*np.ones(words), *np.zeros(classes)]],
        b_eq=[1.0],
    )
    return answer.x[:words] if answer.success else None


def test_together_is_as_good_as_alone_also_beside_programs_without_an_answer():
    rng = np.random.default_rng(3)
    programs = [
        program(rng, int(rng.integers(2, 9)), int(rng.integers(2, 5)), shift=(at % 7 == 5) * 2.0)
        for at in range(2 * PROGRAMS_PER_SOLVE + 3)
    ]
    found = solve_in_balls(programs, epsilon=0.05)
    assert [one is None for one in found] == [at % 7 == 5 for at in range(len(programs))]
    for one, weights in zip(programs, found, strict=True):
        want = alone(one, 0.05)
        assert (want is None) == (weights is None)
        if weights is not None:
            assert weights.sum() == pytest.approx(1.0)
            assert weights @ one.goal == pytest.approx(want @ one.goal, abs=1e-7)
            assert np.maximum(weights @ one.slope - one.room, 0.0).sum() <= 0.05 + 1e-7


def test_no_programs_have_no_answers():
    assert solve_in_balls([], epsilon=0.05) == []
