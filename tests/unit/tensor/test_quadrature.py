"""Nodes and weights for integrals from 0 to 1."""

import numpy as np
import pytest

from heedful.tensor.quadrature import even_rule, rule


@pytest.mark.parametrize("make", [rule, even_rule])
@pytest.mark.parametrize("level", [2, 4, 5, 8])
def test_nodes_run_from_0_to_1_and_weights_add_up(make, level):
    nodes, weights = make(level)
    assert len(nodes) == len(weights) == 2**level + 1
    assert (nodes[0], nodes[-1]) == (0.0, 1.0)
    assert (np.diff(nodes) > 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("make", [rule, even_rule])
def test_doubling_keeps_every_node(make):
    np.testing.assert_allclose(make(6)[0][::2], make(5)[0], atol=1e-15)


@pytest.mark.parametrize("power", range(9))
def test_polynomials_are_integrated(power):
    for make, limit in ((even_rule, 1e-14), (rule, 1e-6)):
        nodes, weights = make(5)
        assert (weights * nodes**power).sum() == pytest.approx(1 / (power + 1), abs=limit)


def test_a_rise_near_0_needs_fewer_nodes_than_gauss_legendre():
    def rises(a):  # fast at a tenth of the way, then slowly
        return 1 / (1 + ((a - 0.1) / 0.03) ** 2)

    exact = 0.03 * (np.arctan(0.9 / 0.03) + np.arctan(0.1 / 0.03))
    nodes, weights = rule(5)
    x, w = np.polynomial.legendre.leggauss(50)
    ours, theirs = (weights * rises(nodes)).sum(), (w / 2 * rises((x + 1) / 2)).sum()
    assert abs(ours - exact) < abs(theirs - exact)
