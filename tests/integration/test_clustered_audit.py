"""Copies and clusters from the rows of a file to the verdict, also without words and on a rerun."""

import json
import shutil
from math import isnan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heedful
from heedful.api.run import Run
from heedful.core.errors import DataError, RunError
from heedful.models.recurrent.model_folder import save_model
from support import subjects

COUNT, COPIES = 24, 3
SETTINGS = {"checks": ("mechanism",), "resamples": 200, "instances_per_job": 16}


def text(number):
    words = subjects.WORDS
    return " ".join(words[(number * step + step) % len(words)] for step in range(3, 9))


ROWS = [{"text": text(n), "label": n % 2, "document": f"paper {n // 2}"} for n in range(COUNT)]


def audited(rows, out=None, **more):
    return heedful.audit(subjects.subject(), rows, out=out, **SETTINGS, **more)


def estimates(run):
    return run.verdict.checks["mechanism"].estimates


def ends(run):
    return {
        name: (one.value, one.low, one.high)
        for name, one in estimates(run).items()
        if not isnan(one.low)
    }


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return audited(ROWS, tmp_path_factory.mktemp("runs") / "once")


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return audited(ROWS, tmp_path_factory.mktemp("runs") / "together", cluster="document")


def test_copies_are_counted_and_narrow_nothing(once):
    copied = audited(ROWS * COPIES)
    counts = copied.verdict.texts
    assert (counts.audited, counts.distinct, counts.clusters) == (COPIES * COUNT, COUNT, None)
    assert once.verdict.texts.distinct == once.verdict.texts.audited == COUNT
    assert ends(once)
    for name, wanted in ends(once).items():
        assert ends(copied)[name] == pytest.approx(wanted, abs=1e-6)


def test_texts_of_a_document_are_drawn_together(once, together):
    counts = together.verdict.texts
    assert (counts.distinct, counts.clusters, counts.note) == (COUNT, COUNT // 2, None)
    assert ends(together).keys() == ends(once).keys()
    assert ends(together) != ends(once)
    for name, one in estimates(once).items():
        assert estimates(together)[name].value == pytest.approx(one.value)
    raw = json.loads((together.folder / "verdict.json").read_text())
    assert raw["texts"]["clusters"] == COUNT // 2


def test_few_clusters_are_said_not_to_be_trusted():
    rows = [{**row, "document": n % 9} for n, row in enumerate(ROWS)]
    counts = audited(rows, cluster="document").verdict.texts
    assert counts.clusters == 9
    assert counts.note.startswith("The texts form only 9 clusters: the intervals cannot be trusted")


def test_the_order_of_the_rows_changes_no_bit_of_equal_values(once):
    """`mechanism` draws nothing: its values by text are those of any order."""
    turned = audited(list(reversed(ROWS)))
    assert {name: one.n for name, one in estimates(turned).items()} == {
        name: one.n for name, one in estimates(once).items()
    }
    for name, wanted in ends(once).items():
        assert ends(turned)[name] == pytest.approx(wanted, abs=1e-9)


def test_the_verdict_is_concluded_again_from_the_records_without_words(together, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(together.folder, copy)
    wanted = (copy / "verdict.json").read_bytes()
    shutil.rmtree(copy / "texts")
    (copy / "verdict.json").unlink()
    with pytest.warns(UserWarning, match="Missing or changed"):
        audited(ROWS, copy, cluster="document")
    found = json.loads((copy / "verdict.json").read_bytes())
    assert found["texts"] == json.loads(wanted)["texts"]
    assert (
        found["checks"]["mechanism"]["estimates"]
        == (json.loads(wanted)["checks"]["mechanism"]["estimates"])
    )


def test_ids_that_are_missing_are_made_again(once, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(once.folder, copy)
    shutil.rmtree(copy / "text_ids")
    assert Run(copy).verdict == once.verdict
    with pytest.warns(UserWarning, match="Missing or changed"):
        assert audited(ROWS, copy).verdict == once.verdict
    assert len(list((copy / "text_ids").glob("*.parquet"))) == 2


def test_no_word_and_no_name_of_a_document_is_among_the_ids(together):
    files = [*(together.folder / "text_ids").glob("*.parquet")]
    assert files
    for file in files:
        assert b"paper" not in file.read_bytes()
        assert text(0).encode() not in file.read_bytes()


def test_a_run_with_other_clusters_is_another_run(together):
    with pytest.raises(RunError, match="different: cluster"):
        audited(ROWS, together.folder)


def test_data_that_is_read_already_keeps_its_clusters():
    data = heedful.read(ROWS, labels=subjects.subject().labels, cluster="document")
    assert audited(data).verdict.texts.clusters == COUNT // 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda row: {"text": row["text"], "label": row["label"]}, "has no column 'document'"),
        (lambda row: {**row, "document": " "}, "line 1 has ' ' in column 'document'"),
        (lambda row: {**row, "document": None}, "line 1 has None in column 'document'"),
        (lambda row: {**row, "document": [1]}, "needs a name or a whole number"),
    ],
)
def test_every_row_needs_a_cluster(change, says):
    with pytest.raises(DataError, match="--cluster") as caught:
        audited([change(row) for row in ROWS], cluster="document")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_takes_the_column(run, tmp_path):
    save_model(subjects.subject(), tmp_path / "model")
    table = pa.Table.from_pylist([{**row, "document": n % 4} for n, row in enumerate(ROWS)])
    pq.write_table(table, tmp_path / "data.parquet")
    words = ["audit", tmp_path / "model", tmp_path / "data.parquet", "--quiet"]
    words += ["--out", tmp_path / "run", "--checks", "mechanism"]
    code, out, err = run(*words, "--cluster", "paper")
    assert (code, out) == (2, "")
    assert "has no column 'paper'" in err
    assert len(err.strip().splitlines()) == 1
    assert run(*words, "--cluster", "document")[0] == 0
    raw = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert raw["texts"]["clusters"] == 4
    assert "only 4 clusters" in raw["texts"]["note"]
    assert 'cluster = "document"' in (tmp_path / "run" / "plan.toml").read_text()
