"""Places on the influence of words, compared: equal to those of an audit, and refused in words."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import heedful
from heedful.checks.influence.estimates import estimate_influence
from heedful.checks.influence.names import NAME
from heedful.comparison.differences import ResamplingSettings
from heedful.comparison.places import STATISTICS, place_columns, place_differences
from heedful.core.records import MeasureKey
from heedful.results.tables import MeasurementColumns
from support.run_folders import taus, write_run

N = 60
KEYS = (
    ("order_sum", "attention", None),
    ("order_sum", "gradient", None),
    ("order_weight", None, None),
    *(("half_sum", None, part) for part in "12"),
    *(("half_weight", None, part) for part in "12"),
    *(("half_most", None, part) for part in "12"),
    *(("change_top", method, None) for method in ("attention", "gradient", "random")),
    ("change_top", None, "influence"),
    *(("gain_top", method, None) for method in ("attention", "gradient")),
    ("gain_most", None, None),
    ("gain_most", None, "cross-fitted"),
)


def values(seed=0, n=N, quality=0.6):
    """Columns as the check leaves them; `quality` is the share of stakes that attention wins."""
    random = np.random.default_rng(seed)
    found = {}
    for measure, method, setting in KEYS:
        middle = {"order_sum": quality, "half_sum": 0.7, "gain_top": quality}.get(measure, 1.0)
        if measure == "change_top":
            middle = {"random": 0.1}.get(method, quality if method else 1.0)
        column = random.normal(middle, 0.1, n)
        found[MeasureKey(NAME, measure, method, setting=setting)] = column
    found[MeasureKey(NAME, "exact")] = (random.random(n) < 0.2).astype(float)
    found[MeasureKey(NAME, "items")] = random.integers(5, 30, n).astype(float)
    found[MeasureKey(NAME, "confidence")] = random.random(n)
    return found


def columns(found):
    n = len(next(iter(found.values())))
    names = np.array(["pos"] * n, dtype=object)
    return MeasurementColumns(np.arange(n), names, names, found)


@pytest.mark.parametrize("method", ["attention", "gradient"])
def test_places_are_those_of_an_audit(method):
    made = columns(values())
    made.values[MeasureKey(NAME, "order_sum", "gradient")][:20] = np.nan
    resampling = SimpleNamespace(resamples=50, seed=0, level=0.95, clusters=None, copies=None)
    rows = estimate_influence(made, resampling, [], epsilon=0.05)
    own = place_columns(made, method)
    means = own[~np.isnan(own).any(1)].mean(0, keepdims=True)
    for name, statistic in STATISTICS.items():
        (want,) = (
            row.estimate
            for row in rows
            if (row.measure, row.method, row.setting, row.slice) == (name, method, None, None)
        )
        assert statistic(means)[0] == pytest.approx(want.value, abs=1e-12)


DRAW = ResamplingSettings(resamples=200, permutations=400)
WANTED = {name: MeasureKey(NAME, name) for name in STATISTICS}


def test_a_difference_is_certain_where_there_is_one_and_none_where_there_is_none():
    one, same, better = (
        place_columns(columns(values(seed, quality=quality)), "attention")
        for seed, quality in ((0, 0.5), (1, 0.5), (2, 0.8))
    )
    found = {key.measure: row for key, row, _ in place_differences(one, better, WANTED, DRAW)}
    assert all(row.difference.low > 0.1 and row.p < 0.05 for row in found.values())
    found = {key.measure: row for key, row, _ in place_differences(one, same, WANTED, DRAW)}
    assert all(row.difference.low < 0 < row.difference.high for row in found.values())


def test_texts_without_a_place_are_left_out_on_both_sides_and_counted():
    made = values()
    made[MeasureKey(NAME, "order_sum", "attention")][:10] = np.nan
    first, second = (place_columns(columns(one), "attention") for one in (values(), made))
    for _, row, _ in place_differences(first, second, WANTED, DRAW):
        assert (row.difference.n, row.undefined) == (N - 10, (0, 10))


def test_top_words_that_change_nothing_are_not_compared():
    made = values()
    made[MeasureKey(NAME, "change_top", None, setting="influence")][:] = 0.1
    sides = (place_columns(columns(one), "attention") for one in (values(), made))
    found = {key.measure: (row, why) for key, row, why in place_differences(*sides, WANTED, DRAW)}
    assert found["top_set"][0] is None
    assert "no more than random words" in found["top_set"][1]
    assert found["order"][0] is not None


def run(folder, found, of="order"):
    """A run folder with these columns and a degree of this kind."""
    made = write_run(folder, found)
    file = made / "verdict.json"
    raw = json.loads(file.read_text())
    raw["degree"] = {"of": of, "value": 0.5, "low": 0.4, "high": 0.6, "n": N}
    file.write_text(json.dumps(raw))
    return made


def test_runs_are_compared_by_the_places_of_attention(tmp_path):
    one, other = (
        run(tmp_path / str(seed), values(seed, quality=0.4 + seed / 5)) for seed in (0, 1)
    )
    (pair,) = heedful.compare(one, other).require("degree>0").record.pairs
    degree = pair.find(MeasureKey("", "degree"))
    assert degree.difference.low > 0
    assert pair.differences[0] == degree
    assert pair.find(MeasureKey(NAME, "top_set", "attention")).certain
    by_setting = {one.key.measure for one in pair.differences if one.key.setting is not None}
    assert not by_setting  # halves of the orders have no mean that says anything


def test_a_degree_of_agreement_is_not_compared_with_a_place(tmp_path):
    both = {**values(), **taus(N)}
    one, other = run(tmp_path / "old", both, "agreement"), run(tmp_path / "new", both)
    (pair,) = heedful.compare(one, other).record.pairs
    assert pair.find(MeasureKey("", "degree")) is None
    assert pair.only_one["degree"] == (
        "their degrees are of different kinds: old of agreement and new of order"
    )
    assert pair.find(MeasureKey("agreement", "tau_leave_one_out")) is not None


def test_methods_of_one_run_are_compared_by_their_places(tmp_path):
    one = run(tmp_path / "one", values())
    (pair,) = heedful.compare(one, methods=["attention", "gradient"]).record.pairs
    assert {row.key.measure for row in pair.differences} == set(STATISTICS)
