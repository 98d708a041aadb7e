"""From trees on disk to a verdict, under a paper's cleaning: what is kept, and what is told."""

import json
import tomllib

import pyarrow.parquet as pq
import pytest

import heedful
from heedful.core.errors import ConfigError
from heedful.models.recurrent.model_folder import save_model
from heedful.pipeline.retrain.training_data import read_training_data
from support.hostile_input import as_in_use

SST, NEWS = "jain-wallace-2019/sst", "jain-wallace-2019/20news"
KEPT = {i for i in range(40) if i % 10 and i != 39}


def tree(i):
    """Six words and a sign, in turns good and bad; every tenth too short, the last the longest."""
    word = "(4 good)" if i % 2 else "(0 bad)"
    few = 2 if i % 10 == 0 else 9 if i == 39 else 5
    return f"({4 * (i % 2)} {word} (2 (2 ,) {'(2 So2) ' * few}))"


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sst")
    neutral = "(2 (2 so) (2 what))"
    for split in ("train", "dev", "test"):
        lines = [*(tree(i) for i in range(40)), neutral]
        (folder / f"{split}.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def model(trees):
    data = {
        split: heedful.read(f"sst:{trees}", split=split, cleaning=SST) for split in ("train", "dev")
    }
    recipe = heedful.Recipe(encoder="average", embedding=8, hidden=8, epochs=1)
    return heedful.fit(data["train"], data["dev"], recipe)


def test_train_and_audit_by_the_command_line(run, trees, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "heedful.cli.audit._write_report", lambda run: "none"
    )  # the page is not asked for
    words = ("train", f"sst:{trees}", "--out", tmp_path / "model", "--cleaning", SST,
             "--encoder", "average", "--epochs", "1")  # fmt: skip
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    left = "6 rows left out: 1 neutral; 4 of 5 words or fewer; 1 longest of the split (10 words)"
    assert f"Training data: {left}" in out
    told = json.loads((tmp_path / "model/heedful.json").read_text())
    assert told["tokenizer"] == {"lower": True, "punctuation": "drop", "digits": "keep"}
    assert told["history"]["data"]["cleaning"] == SST
    assert told["history"]["data"]["rows_left_out"] == left
    asked = ("audit", tmp_path / "model", f"sst:{trees}", "--out", tmp_path / "run",
             "--checks", "agreement")  # fmt: skip
    code, out, _ = run(*asked, "--cleaning", SST)
    assert code == 0
    code, out, _ = run("report", tmp_path / "run", "--details")
    assert code == 0
    flat = " ".join(out.replace("│", " ").split())
    assert f"cleaned as {SST}" in flat
    assert "4 of 5 words or fewer" in flat
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert (manifest["data"]["cleaning"], manifest["data"]["left_out"]) == (SST, left)
    assert manifest["data"]["texts"] == 35
    assert tomllib.loads((tmp_path / "run/plan.toml").read_text())["cleaning"] == SST
    code, _, err = run(*asked)
    assert code == 2
    assert "another plan (different: cleaning)" in err
    page = heedful.Run(tmp_path / "run").markdown()
    assert left in page.replace("\\", "")


def test_instances_are_row_numbers_and_words_the_cleaned_ones(trees, model, tmp_path):
    data = heedful.read(f"sst:{trees}", cleaning=SST)
    run = heedful.audit(model, data, checks=["agreement"], out=tmp_path / "run")
    frame = run.to_dataframe()
    assert set(frame.instance) == KEPT
    plan = heedful.Plan.from_toml((tmp_path / "run/plan.toml").read_text())
    assert plan.cleaning == SST
    words = next(iter(data)).tokens
    assert words == ("good", "so2", "so2", "so2", "so2", "so2")


def test_explanations_are_of_the_cleaned_texts(run, trees, model, tmp_path):
    save_model(model, tmp_path / "model")
    out = tmp_path / "scores.parquet"
    words = ("explain", tmp_path / "model", "--data", f"sst:{trees}", "--out", out)
    code, told, _ = run(*words, "--methods", "attention", "--cleaning", SST)
    assert code == 0
    assert "4 of 5 words or fewer" in told
    rows = pq.read_table(out).to_pylist()
    cleaned = {one.index: list(one.tokens) for one in heedful.read(f"sst:{trees}", cleaning=SST)}
    assert {row["instance"]: row["tokens"] for row in rows} == cleaned


def test_a_plan_knows_its_cleanings():
    with pytest.raises(heedful.HeedfulError, match="No cleaning is named 'sst'"):
        heedful.Plan("m", "d", cleaning="sst")
    plan = heedful.Plan("m", "d", cleaning=SST)
    assert heedful.Plan.from_toml(plan.to_toml()) == plan
    assert plan.differences(heedful.Plan("m", "d")) == ["cleaning"]


in_use = pytest.fixture(as_in_use)


@pytest.mark.usefixtures("in_use")
def test_a_cleaning_is_a_name():
    with pytest.raises(ConfigError, match="cleaning must be a name, not 3"):
        heedful.Plan.from_toml('model = "m"\ndata = "d"\ncleaning = 3\n')


def test_texts_that_models_are_made_from_are_cleaned_and_apart(tmp_path):
    rows = [{"text": f"w{i} so so so so so so so", "label": i % 2} for i in range(200)]
    for split, its in (("train", rows[:120]), ("test", rows[120:])):
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, its)))
    plan = heedful.Plan("m", str(tmp_path), checks=("necessity",), cleaning=NEWS)
    made = read_training_data(str(tmp_path), plan, ("0", "1"), train=None, dev=None)
    tested = heedful.read(tmp_path, cleaning=NEWS)
    made.require_disjoint(tested)
    assert [len(made.train), len(made.dev), len(tested)] == [128, 32, 40]
    assert made.train.cleaning == made.dev.cleaning == NEWS
    plain = read_training_data(
        str(tmp_path),
        heedful.Plan("m", "d", checks=("necessity",)),
        ("0", "1"),
        train=None,
        dev=None,
    )
    assert len(made.origin()["train"]) == 5
    assert len(plain.origin()["train"]) == 4


def test_explanations_tell_what_was_left_out(trees, model, tmp_path):
    data = heedful.read(f"sst:{trees}", cleaning=SST)
    told = heedful.explain_all(model, data, methods=["attention"], out=tmp_path / "e.parquet")
    assert set(told.to_dataframe().instance) == KEPT
    assert "6 rows left out: 1 neutral" in str(told)


def test_comparisons_say_that_texts_were_cleaned_otherwise(trees, model, tmp_path):
    for name, cleaning in (("a", SST), ("b", None)):
        data = heedful.read(f"sst:{trees}", cleaning=cleaning)
        heedful.audit(model, data, checks=["agreement"], out=tmp_path / name)
    found = heedful.compare(tmp_path / "a", tmp_path / "b")
    text = json.dumps(found.to_dict())
    assert f"Texts were cleaned by {SST} in one, by None in the other." in text
