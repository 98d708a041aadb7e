"""A run folder: claimed by one plan, rows as the contract says, damage named."""

from dataclasses import asdict, replace
from math import isnan, nan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.core.errors import HeedfulError, RunError
from heedful.core.records import MeasureKey, MissingMeasure
from heedful.pipeline.audit.job import JobResult, JobSummary, MeasureColumn
from heedful.pipeline.audit.run_store import Job, RunStore, make_jobs
from heedful.pipeline.plan.plan import Plan
from heedful.results import schema1
from heedful.results.run_folder import RunFolder

PLAN = Plan("model", "data", checks=("permutation",), instances_per_job=4)
ORIGIN = {"model": "m", "data": "d"}
LABELS = ("bad", "good")
ONE, TWO = make_jobs(PLAN, 6, origin=ORIGIN)


def column(instances, values, measure="median_tvd", **keys):
    values = np.array(values, dtype=np.float64)
    key = MeasureKey("permutation", measure, **keys)
    return MeasureColumn(key, np.array(instances, dtype=np.int64), values)


def result(*columns, summary=None):
    instances = sorted({i for one in columns for i in one.instances.tolist()})
    predicted = {i: i % 2 for i in instances}
    label = {i: (i + 1) % 2 for i in instances}
    return JobResult(tuple(columns), predicted, label, summary or JobSummary())


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "run")


def rows_of(store):
    return RunFolder(store.folder).measurements().whole()


def test_jobs_cover_the_data_once_and_sort_by_name():
    plan = replace(PLAN, instances_per_job=512)
    jobs = make_jobs(plan, 1100, origin=ORIGIN)
    assert [(one.first, one.last) for one in jobs] == [(0, 512), (512, 1024), (1024, 1100)]
    assert [one.name for one in jobs] == sorted(one.name for one in jobs)
    assert make_jobs(plan, 0, origin=ORIGIN) == []


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"min_words": 2},
        {"checks": ("mechanism",), "settings": {}},
        {"settings": {"permutation": {"draws": 7}}},
    ],
)
def test_a_key_names_everything_the_results_depend_on(change):
    assert make_jobs(replace(PLAN, **change), 6, origin=ORIGIN)[0].key != ONE.key


@pytest.mark.parametrize("origin", [{"model": "m2", "data": "d"}, {"model": "m", "data": "d2"}])
def test_another_model_or_data_has_another_key(origin):
    assert make_jobs(PLAN, 6, origin=origin)[0].key != ONE.key


@pytest.mark.parametrize("change", [{"max_batch_tokens": 5}, {"resamples": 300}, {"limit": 5}])
def test_a_key_does_not_name_what_cannot_matter(change):
    assert make_jobs(replace(PLAN, **change), 6, origin=ORIGIN)[0] == ONE
    assert make_jobs(PLAN, 9, origin=ORIGIN)[0] == ONE  # longer data: what is done stays done


def test_begin_claims_the_folder_and_keeps_the_plan(store):
    store.begin(PLAN)
    assert Plan.from_toml((store.folder / "plan.toml").read_text()) == PLAN
    store.begin(replace(PLAN, max_batch_tokens=5))  # the results do not depend on it
    assert "max_batch_tokens = 5" in (store.folder / "plan.toml").read_text()


def test_begin_refuses_another_plan_and_says_where_it_differs(store):
    store.begin(PLAN)
    other = replace(PLAN, seed=3, level=0.9, settings={"permutation": {"draws": 5}})
    with pytest.raises(RunError) as caught:
        store.begin(other)
    assert str(caught.value) == (
        f"{store.folder} holds a run with another plan (different: seed, level, settings). "
        "Choose another --out, or remove the folder."
    )
    assert "seed = 0" in (store.folder / "plan.toml").read_text()


def test_begin_refuses_a_file(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError) as caught:
        RunStore(tmp_path / "run").begin(PLAN)
    assert str(caught.value) == f"{tmp_path / 'run'} is a file; --out must name a folder."


def test_begin_below_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"^Cannot write .*plan\.toml: "):
        RunStore(tmp_path / "file" / "run").begin(PLAN)


def test_begin_refuses_measurements_without_a_plan(store):
    (store.folder / "measurements").mkdir(parents=True)
    with pytest.raises(RunError) as caught:
        store.begin(PLAN)
    assert str(caught.value) == (
        f"{store.folder} holds measurements but no plan.toml; choose another --out."
    )


def test_begin_takes_an_empty_folder_and_one_with_other_files(store):
    store.folder.mkdir()
    (store.folder / "notes.txt").write_text("mine")
    store.begin(PLAN)
    assert (store.folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "seed = 1",
    ],
)
def test_begin_refuses_a_damaged_plan(store, text):
    store.folder.mkdir()
    (store.folder / "plan.toml").write_text(text)
    with pytest.raises(HeedfulError, match="plan"):
        store.begin(PLAN)


def test_a_job_is_done_when_it_was_put(store):
    assert not store.done(ONE)
    store.put(ONE, result(column([0], [0.5])), LABELS)
    assert store.done(ONE)
    assert not store.done(TWO)
    assert not store.done(Job(ONE.first, ONE.last, "other"))


CONTRACT = {
    "instance": pa.int64(),
    "predicted": pa.string(),
    "label": pa.string(),
    "check": pa.string(),
    "measure": pa.string(),
    "method": pa.string(),
    "layer": pa.int64(),
    "head": pa.int64(),
    "seed": pa.int64(),
    "setting": pa.string(),
    "value": pa.float64(),
}


def test_rows_are_those_of_the_contract(store):
    keys = {"method": "lime", "layer": 3, "head": 0, "seed": 2, "setting": "λ=1"}
    store.put(ONE, result(column([0, 1], [0.5, 0.25]), column([0], [3.0], **keys)), LABELS)
    (path,) = (store.folder / "measurements").iterdir()
    assert path.name == f"{ONE.name}.parquet"
    for table in (pq.read_table(path), rows_of(store)):
        assert dict(zip(table.schema.names, table.schema.types, strict=True)) == CONTRACT
        assert table.schema.names == list(CONTRACT)
        assert [tuple(row.values()) for row in table.to_pylist()] == [
            (0, "bad", "good", "permutation", "median_tvd", *[None] * 5, 0.5),
            (1, "good", "bad", "permutation", "median_tvd", *[None] * 5, 0.25),
            (0, "bad", "good", "permutation", "median_tvd", *keys.values(), 3.0),
        ]


def test_a_value_that_does_not_exist_is_null(store):
    store.put(ONE, result(column([0, 1], [nan, 0.25])), LABELS)
    values = rows_of(store)["value"]
    assert values.to_pylist() == [None, 0.25]
    assert values.null_count == 1


def test_a_job_without_rows_is_done_too(store):
    store.put(ONE, result(), LABELS)
    assert store.done(ONE)
    assert len(rows_of(store)) == 0
    assert rows_of(store).schema.names == list(CONTRACT)


def test_jobs_are_read_in_order_and_the_whole_comes_last(store):
    store.put(TWO, result(column([4, 5], [0.4, 0.5])), LABELS)
    store.put(ONE, result(column([0, 1], [0.0, 0.1])), LABELS)
    measured = store.columns([TWO, ONE])
    assert measured.instances.tolist() == [0, 1, 4, 5]
    assert measured.column("permutation", "median_tvd").tolist() == [0.0, 0.1, 0.4, 0.5]
    assert measured.label.tolist() == ["good", "bad"] * 2
    whole = {MeasureKey("permutation", "rank"): np.array([1.0, 2.0, nan, 4.0])}
    store.put_dataset_measures(whole, measured)
    table = rows_of(store)
    assert table.schema.names == list(CONTRACT)
    assert table["instance"].to_pylist() == [0, 1, 4, 5] * 2
    assert table["value"].to_pylist()[4:] == [1.0, 2.0, None, 4.0]
    assert table["measure"].to_pylist()[4:] == ["rank"] * 4
    assert table["label"].to_pylist()[4:] == ["good", "bad"] * 2
    assert set(store.columns([ONE, TWO]).values) == {MeasureKey("permutation", "median_tvd")}
    store.put_dataset_measures({}, measured)
    assert rows_of(store).num_rows == 4


X, Y = MissingMeasure("x", "no"), MissingMeasure("y", "nor", "lime")


def test_the_summaries_of_jobs_add_up(store):
    one = JobSummary({"a": (X,)}, {"a": {"cpu": 1.0, "wall": 2.0}}, 1e-9, "float64", 3, 1)
    two = JobSummary({"a": (Y,)}, {"a": {"cpu": 0.5, "wall": 1.0}}, 1e-7, "float64", 4, 2)
    store.put(ONE, result(summary=one), LABELS)
    store.put(TWO, result(summary=two), LABELS)
    assert store.summary([ONE]) == one
    assert store.summary([ONE, TWO]) == one + two
    assert asdict(store.summary([ONE, TWO]))["seconds"] == {"a": {"cpu": 1.5, "wall": 3.0}}
    assert store.summary([]) == JobSummary()


def test_a_folder_without_measurements_is_no_run(store):
    with pytest.raises(RunError) as caught:
        rows_of(store)
    assert str(caught.value) == f"{store.folder} holds no measurements; is it a run folder?"


@pytest.mark.parametrize("ask", [lambda s: s.columns([ONE]), lambda s: s.summary([ONE])])
def test_a_damaged_file_is_named(store, ask):
    store.put(ONE, result(column([0], [0.5])), LABELS)
    path = store.folder / "measurements" / f"{ONE.name}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match=ONE.name):
        ask(store)


def test_columns_are_ordered_by_instance_and_keys_stand_apart(store):
    columns = (column([3, 1], [0.3, nan]), column([1, 3], [1.0, 3.0], "leverage"))
    store.put(ONE, result(*columns, column([1], [9.0], setting="λ=1")), LABELS)
    found = store.columns([ONE])
    assert found.predicted.tolist() == ["good", "good"]
    keys = {("median_tvd", None), ("leverage", None), ("median_tvd", "λ=1")}
    assert {(key.measure, key.setting) for key in found.values} == keys
    median = found.column("permutation", "median_tvd")
    assert isnan(median[0])
    assert median[1] == 0.3
    assert found.column("permutation", "leverage").tolist() == [1.0, 3.0]
    some = found.column("permutation", "median_tvd", setting="λ=1")
    assert some[0] == 9.0
    assert isnan(some[1])  # under a setting a measure may have been taken on some texts only


@pytest.mark.parametrize("instances", [[0], [0, 0], [0, 1, 1]])
@pytest.mark.parametrize("method", [None, "lime"])
def test_a_measure_that_lacks_instances_or_has_them_twice_is_damage(store, instances, method):
    broken = column(instances, [0.5] * len(instances), "leverage", method=method)
    store.put(ONE, result(column([0, 1], [0.5, 0.5]), broken), LABELS)
    name = "leverage[lime]" if method else "leverage"
    with pytest.raises(RunError) as caught:
        store.columns([ONE])
    assert str(caught.value).startswith(f"permutation.{name} was ")
    assert "the run folder is damaged" in str(caught.value)


def test_begin_refuses_a_run_of_schema_1_which_can_still_be_read(store):
    rows = {"instance": 0, "predicted": "a", "label": "a", "check": "faithfulness"}
    rows |= {"measure": "flip_lime", "setting": "masking", "value": 0.5}
    (store.folder / "measurements").mkdir(parents=True)
    table = pa.Table.from_pylist([rows], schema1.SCHEMA_1)
    pq.write_table(table, store.folder / "measurements" / "000000000-a.parquet")
    (store.folder / "plan.toml").write_text(PLAN.to_toml())
    with pytest.raises(RunError, match=r"schema 1\), which can be read"):
        store.begin(PLAN)
    (row,) = rows_of(store).to_pylist()
    assert list(row) == list(CONTRACT)
    assert (row["measure"], row["method"], row["setting"]) == ("flip", "lime", "masking")
