"""Every text of a data set explained into one file, from the request to the Parquet."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import heedful
from heedful.core.errors import DataError, NotApplicable, RunError
from heedful.models.recurrent.model_folder import save_model
from heedful.pipeline.explain import explain_dataset
from support import subjects, tiny_models
from support.known_methods import forgetful

COLUMNS = ["instance", "predicted", "label", "target", "method", "kind", "signed", "of", "tokens",
           "scores"]  # fmt: skip
ROWS = [
    {"text": " ".join(subjects.WORDS[n % 9 : n % 9 + 1 + n % 7]), "label": f"class{n % 2}"}
    for n in range(20)
]


def test_data_become_one_parquet_file(run, tmp_path):
    model, data = tmp_path / "model", tmp_path / "data.jsonl"
    save_model(subjects.subject(), model)
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    out = tmp_path / "deep" / "scores.parquet"
    words = ("explain", model, "--data", data, "--out", out, "--limit", 12)
    code, told, err = run(*words, "--methods", "attention,leave_one_out,rollout")
    assert (code, err) == (0, "")
    assert told.startswith(f"12 texts explained, 24 rows: {out} (")
    assert "rollout refused 12 of 12 texts: rollout combines" in told
    table = pq.read_table(out)
    assert table.column_names == COLUMNS
    assert str(table.schema.field("instance").type) == "int64"
    assert str(table.schema.field("scores").type).startswith("list<")
    for row in table.to_pylist():
        given = ROWS[row["instance"]]
        shown = heedful.explain(str(model), given["text"], method=row["method"]).to_dict()
        assert (row["label"], row["tokens"]) == (given["label"], shown["tokens"])
        assert (row["predicted"], row["target"]) == (shown["predicted"], shown["target"])
        one = shown["methods"][row["method"]]
        assert row["scores"] == pytest.approx(one["scores"], abs=1e-9)
        assert {name: row[name] for name in ("kind", "signed", "of")} == {
            name: one[name] for name in ("kind", "signed", "of")
        }
    out.unlink()
    assert run(*words, "--methods", "attention", "--quiet") == (0, "", "")
    assert pq.read_table(out).num_rows == 12


EMPTY = [{"text": "."}, {"text": "… !"}]


def dropping():
    """A model to whom punctuation is no word."""
    one = subjects.subject()
    return replace(one, tokenizer=replace(one.tokenizer, punctuation="drop"), max_words=50)


def test_every_text_that_is_missing_is_told(tmp_path):
    rows = [*EMPTY, {"text": "w1 w2"}, {"text": "w1 " * 60}] * 50 + [{"text": None}]
    found = heedful.explain_all(dropping(), rows, out=tmp_path / "o.parquet", methods="attention")
    assert str(found).splitlines()[1:] == [
        "100 texts without any word left out",
        "50 texts cut at the model's limit",
        "1 bad row: 1 no text (line 201)",
    ]
    assert found.to_dataframe()["instance"].tolist() == [n for n in range(200) if n % 4 > 1]


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_values_do_not_depend_on_batches(tmp_path, kind):
    subject = subjects.subject()
    rows = ROWS[:7]
    if kind == "transformer":
        subject = heedful.load(tiny_models.build("bert").double(), tiny_models.tokenizer("bert"))
        words = tiny_models.tokenizer("bert").convert_ids_to_tokens(range(4, 24))
        rows = [{"text": " ".join(words[n : n + 2 + n % 5])} for n in range(6)]
    frames = []
    for budget in (1, 20_000):
        found = heedful.explain_all(
            subject, rows, out=tmp_path / f"{budget}.parquet", max_batch_tokens=budget
        )
        frames.append(found.to_dataframe().sort_values(["instance", "method"], ignore_index=True))
    one, other = frames
    texts = len(rows)
    assert len(one) == len(other) >= 6 * texts
    plain = ["instance", "predicted", "label", "target", "method", "kind", "signed", "of"]
    assert one[plain].equals(other[plain])
    for mine, theirs in zip(one["scores"], other["scores"], strict=True):
        assert list(mine) == pytest.approx(list(theirs), rel=1e-6, abs=1e-6)


def test_labels_are_kept_where_there_are_any_and_never_needed(tmp_path):
    out = tmp_path / "o.parquet"
    bare = [{"text": row["text"]} for row in ROWS]
    found = heedful.explain_all(subjects.subject(), bare, out=out, methods="attention")
    assert found.to_dataframe()["label"].isna().all()
    out = tmp_path / "other.parquet"
    found = heedful.explain_all(subjects.subject(), ROWS, out=out, methods="attention")
    assert found.to_dataframe()["label"].tolist() == [row["label"] for row in ROWS]
    strange, out = [{"text": "w1", "label": "so-so"}], tmp_path / "strange.parquet"
    with pytest.raises(DataError, match="unknown label"):
        heedful.explain_all(subjects.subject(), strange, out=out, methods="attention")


def test_rows_are_written_group_by_group(tmp_path, monkeypatch):
    monkeypatch.setattr(explain_dataset, "MIN_GROUP_ROWS", 5)
    out, told = tmp_path / "o.parquet", []
    heedful.explain_all(
        subjects.subject(),
        ROWS,
        out=out,
        methods=["attention", "uniform"],
        max_batch_tokens=40,
        progress=lambda *one: told.append(one),
    )
    file = pq.ParquetFile(out)
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert len(sizes) > 3
    assert min(sizes[:-1]) >= 5
    assert sum(sizes) == 40
    assert told[-1] == (20, 20, "explain")
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_a_file_says_where_it_comes_from(tmp_path):
    out = tmp_path / "o.parquet"
    mapped = {"gradient": {"norm": "l1"}}
    heedful.explain_all(subjects.subject(), ROWS, out=out, methods=mapped, of="logit", seed=3)
    kept = json.loads(pq.read_metadata(out).metadata[b"heedful"])
    assert kept["request"] == {
        "methods": mapped, "target": None, "granularity": "word", "of": "logit", "seed": 3
    }  # fmt: skip
    assert kept["counts"]["texts"] == 20
    assert kept["data"]["sha256"] == heedful.read(ROWS).sha256


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path):
    out = tmp_path / "o.parquet"
    heedful.explain_all(subjects.subject(), ROWS, out=out, methods="attention")
    before = out.read_bytes()

    def stop(done, total, words):
        if done > 3:
            raise KeyboardInterrupt

    anew = {"out": out, "overwrite": True}
    with pytest.raises(KeyboardInterrupt):
        heedful.explain_all(subjects.subject(), ROWS, methods="random", progress=stop, **anew)
    with pytest.raises(NotApplicable, match="rollout combines"):
        heedful.explain_all(subjects.subject(), ROWS, methods="rollout", **anew)
    with pytest.raises(DataError, match="No text contains a word"):
        heedful.explain_all(dropping(), EMPTY, methods="attention", **anew)
    assert out.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["o.parquet"]


def test_what_has_no_explanations_is_never_replaced(tmp_path):
    out = tmp_path / "o.parquet"
    out.write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(
            RunError, match=r"exists already\. Choose another --out, or remove it\.$"
        ):
            heedful.explain_all("no/such/model", ROWS, out=out, overwrite=overwrite)
    assert out.read_text() == "mine"


def test_a_file_that_exists_is_replaced_only_if_asked(tmp_path, run):
    out = tmp_path / "o.parquet"
    heedful.explain_all(subjects.subject(), ROWS[:1], out=out, methods="gradient")
    before = out.read_bytes()
    said = (
        f"{out} exists already. Choose another --out, or remove it; in Python overwrite=True "
        "replaces it."
    )
    with pytest.raises(RunError) as caught:  # before a model is looked for
        heedful.explain_all("no/such/model", ROWS, out=out)
    assert str(caught.value) == said
    assert run("explain", "no/such/model", "--data", "x.csv", "--out", out) == (
        2,
        "",
        f"heedful: {said}\n",
    )
    assert out.read_bytes() == before
    found = heedful.explain_all(
        subjects.subject(), ROWS, out=out, methods="attention", overwrite=True
    )
    assert len(found.to_dataframe()) == len(ROWS)
    assert [one.name for one in tmp_path.iterdir()] == ["o.parquet"]


def test_a_batch_too_large_for_memory_is_halved_and_told(tmp_path):
    found = heedful.explain_all(
        forgetful(subjects.subject(), 2), ROWS, out=tmp_path / "o.parquet", methods="attention"
    )
    assert found.counts.texts == 20
    assert f"batches halved because memory ran out: {found.counts.halved}" in str(found)
