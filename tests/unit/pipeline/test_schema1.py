"""Run folders of schema 1 read as schema 2: names taken apart, answers renamed, rows estimated."""

import json
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.core.errors import RunError
from heedful.core.records import Degree, Estimate, MeasureKey, MissingMeasure
from heedful.methods import methods
from heedful.results import schema1
from heedful.results.run_folder import RunFolder, read_measurements
from heedful.results.schema1 import read_verdict, upgrade_key

TAU = {"value": 0.3, "low": 0.2, "high": 0.4, "n": 9}
OWN = Estimate(0.3, 0.2, 0.4, 9)
VERDICT = {
    "schema": 1,
    "answer": "unfaithful",
    "why": "Nearer to chance.",
    "degree": TAU,
    "instead": {"method": "lime", "recovered_share": 0.5, "low": 0.4, "high": 0.6, "n": 9},
    "claims": {
        "used": {"answer": "for", "why": "", "checks": ["permutation"], "further": None},
        "ranks": {"answer": "against", "why": "", "checks": ["agreement"], "further": None},
        "robust": {"answer": "not examined", "why": "", "checks": []},
    },
    "checks": {
        "agreement": {
            "answer": "against",
            "why": "So.",
            "estimates": {"tau_leave_one_out": TAU, "tau_lime_leave_one_out": TAU},
            "by_class": {"pos": {"tau_leave_one_out": TAU, "tau_lime_leave_one_out": TAU}},
            "undefined": {"tau_leave_one_out": 1, "tau_lime_leave_one_out": 2},
            "missing": {"tau_shapley_leave_one_out": "Too long."},
            "power": {"ranks": {"told": "power not measured"}},
        }
    },
    "multiverse": [{"choice": "ε = 0.1", "used": "for", "ranks": "not examined"}],
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("permutation", "median_tvd", None), ("permutation", "median_tvd")),
        (
            ("agreement", "tau_leave_one_out", "layer 3, head 5"),
            ("agreement", "tau_leave_one_out", None, 3, 5),
        ),
        (("agreement", "word_mass", "layer 0"), ("agreement", "word_mass", None, 0)),
        (
            ("agreement", "tau_gradient_leave_one_out", None),
            ("agreement", "tau_gradient_leave_one_out"),
        ),
        (
            ("agreement", "tau_gradient_norm_leave_one_out", None),
            ("agreement", "tau_leave_one_out", "gradient"),
        ),
        (
            ("agreement", "tau_pair", "lime ~ flow"),
            ("agreement", "tau_pair", "lime", None, None, None, "flow"),
        ),
        (
            ("faithfulness", "flip_lime", "masking"),
            ("faithfulness", "flip", "lime", None, None, None, "masking"),
        ),
        (
            ("faithfulness", "p_beyond_random_attention", None),
            ("faithfulness", "p_beyond_random", "attention"),
        ),
        (
            ("faithfulness", "infidelity_scaled_lime", None),
            ("faithfulness", "infidelity_scaled", "lime"),
        ),
        (
            ("roar", "score_lime", "0.5, seed 2"),
            ("roar", "score", "lime", None, None, 2, "0.5"),
        ),
        (("roar", "score_whole", None), ("roar", "score_whole")),
        (
            ("necessity", "score_trained", "seed 3"),
            ("necessity", "score_trained", None, None, None, 3),
        ),
        (
            ("adversary", "jsd", "λ 0.1"),
            ("adversary", "jsd", None, None, None, None, "λ 0.1"),
        ),
    ],
)
def test_names_are_taken_apart(old, new):
    assert upgrade_key(*old) == MeasureKey(*new)


@pytest.mark.parametrize("check", schema1.BY_METHOD)
def test_every_method_s_name_is_found_behind_every_measure(check):
    for measure in schema1.BY_METHOD[check]:
        for method in methods:
            assert upgrade_key(check, f"{measure}_{method}", None)[1:3] == (measure, method)


def test_a_verdict_has_the_names_of_now():
    found = read_verdict(json.dumps(VERDICT))
    assert found.degree == Degree("agreement", OWN)
    assert (found.instead.method, found.instead.order) == ("lime", Estimate(0.5, 0.4, 0.6, 9))
    answers = {name: one.answer for name, one in found.claims.items()}
    assert answers == {"used": "supported", "ranks": "refuted", "robust": "not tested"}
    check = found.checks["agreement"]
    assert check.answer == "refutes"
    assert check.estimates == {"tau_leave_one_out": OWN}
    assert check.undefined == {"tau_leave_one_out": 1}
    assert check.of("tau_leave_one_out", method="lime") == OWN
    assert check.by[0].undefined == 2
    assert check.by_class("tau_leave_one_out") == {"pos": OWN}
    assert check.of("tau_leave_one_out", method="lime", predicted="pos") == OWN
    assert check.missing == (MissingMeasure("tau_leave_one_out", "Too long.", "shapley"),)
    assert check.power == {"ranks": {"description": "power not measured"}}
    assert found.multiverse == ({"choice": "ε = 0.1", "used": "supported", "ranks": "not tested"},)
    assert type(found).from_json(found.to_json()) == found


def test_the_earliest_had_a_share_without_an_interval():
    older = VERDICT | {"instead": {"method": "lime", "recovered_share": 0.5}}
    order = read_verdict(json.dumps(older)).instead.order
    assert (order.value, order.n) == (0.5, 0)
    assert isnan(order.low)


@pytest.mark.parametrize("schema", [0, 3, "1", None])
def test_another_schema_is_refused(schema):
    with pytest.raises(RunError, match=f"has schema {schema!r}; this version reads 1 and 2"):
        read_verdict(json.dumps(VERDICT | {"schema": schema}))


@pytest.mark.parametrize("lost", ["claims", "checks", "degree", "instead", "answer"])
def test_what_is_incomplete_is_refused(lost):
    raw = {name: one for name, one in VERDICT.items() if name != lost}
    with pytest.raises(RunError, match=r"verdict\.json is incomplete or damaged"):
        read_verdict(json.dumps(raw))


def test_a_folder_is_read_with_estimates_of_all_its_rows(tmp_path):
    values = {None: [0.1, 0.3, 0.5], "layer 3": [0.2, 0.4, 0.6], "layer 3, head 1": [0.0, 0.3, 0.6]}
    rows = [
        {
            **{"instance": i, "predicted": "pos", "label": "pos", "check": "agreement"},
            **{"measure": "tau_leave_one_out", "setting": setting, "value": value},
        }
        for setting, column in values.items()
        for i, value in enumerate(column)
    ]
    path = tmp_path / "measurements" / "000000000-a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema1.SCHEMA_1), path)
    (tmp_path / "verdict.json").write_text(json.dumps(VERDICT))
    (tmp_path / "manifest.json").write_text('{"level": 0.9, "seed": 3}')
    folder = RunFolder(tmp_path)
    assert folder.schema == 1
    found = folder.verdict().checks["agreement"]
    assert found.of("tau_leave_one_out") == OWN  # the run's own
    assert found.of("tau_leave_one_out", method="lime") == OWN
    for keys, column in (({"layer": 3}, values["layer 3"]), ({"layer": 3, "head": 1}, [0, 0.6])):
        one = found.of("tau_leave_one_out", **keys)
        assert (one.value, one.n) == (pytest.approx(np.mean(column)), 3)
        assert one.low < one.value < one.high
    some = read_measurements(path, ["layer", "value"])
    assert some.column_names == ["layer", "value"]
    assert some["layer"].to_pylist() == [None] * 3 + [3] * 6
