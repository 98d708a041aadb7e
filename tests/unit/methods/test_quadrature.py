"""Nodes and weights for integrals from 0 to 1."""

import numpy as np
import pytest

from heedful.methods.gradient.integrated_gradients import clenshaw_curtis, warped_clenshaw_curtis


@pytest.mark.parametrize("make", [warped_clenshaw_curtis, clenshaw_curtis])
@pytest.mark.parametrize("steps", [4, 12, 24, 256])
def test_nodes_run_from_0_to_1_and_weights_add_up(make, steps):
    nodes, weights = make(steps)
    assert len(nodes) == len(weights) == steps + 1
    assert (nodes[0], nodes[-1]) == (0.0, 1.0)
    assert (np.diff(nodes) > 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("make", [warped_clenshaw_curtis, clenshaw_curtis])
def test_doubling_keeps_every_node(make):
    np.testing.assert_allclose(make(48)[0][::2], make(24)[0], atol=1e-15)


@pytest.mark.parametrize("power", range(9))
def test_polynomials_are_integrated(power):
    for make, limit in ((clenshaw_curtis, 1e-14), (warped_clenshaw_curtis, 1e-10)):
        nodes, weights = make(48)
        assert (weights * nodes**power).sum() == pytest.approx(1 / (power + 1), abs=limit)


@pytest.mark.parametrize("fastest", [0.15, 0.2, 0.25])
def test_a_rise_not_far_from_0_needs_half_the_nodes_of_gauss_legendre(fastest):
    def rises(a):
        return 1 / (1 + ((a - fastest) / 0.05) ** 2)

    exact = 0.05 * (np.arctan((1 - fastest) / 0.05) + np.arctan(fastest / 0.05))
    nodes, weights = warped_clenshaw_curtis(24)
    x, w = np.polynomial.legendre.leggauss(50)
    ours, theirs = (weights * rises(nodes)).sum(), (w / 2 * rises((x + 1) / 2)).sum()
    assert abs(ours - exact) < abs(theirs - exact)
