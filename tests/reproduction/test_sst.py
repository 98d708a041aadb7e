"""The SST study of the docs, one seed: ordinal claims of the paper, on data that is not shipped."""

from pathlib import Path

import pytest
from benchmarks.sst_2019 import study

DATA = Path(__file__).parents[3] / "shared/data/sst_jw2019"
pytestmark = [
    pytest.mark.study,
    pytest.mark.shared,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not DATA.exists(), reason="needs SST as the authors cleaned it"),
]


def test_additive_agrees_better_than_dot_and_references_better_than_both():
    additive, dot = (study((f"{name}, GloVe-50", 0, str(DATA))) for name in ("additive", "dot"))
    for row in (additive, dot):
        assert row["texts"] == 1726
        assert 0.78 < row["accuracy"] < 0.85
        assert row["tau_gradient_leave_one_out"] > row["tau_leave_one_out"] + 0.1
    assert additive["tau_leave_one_out"] > dot["tau_leave_one_out"] + 0.05
    assert additive["median_tvd"] > dot["median_tvd"]
