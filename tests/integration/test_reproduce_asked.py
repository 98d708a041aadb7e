"""What a study is asked for: data wherever it lies, cells by what they hold, and refusals."""

import gzip
import json
import shutil
from dataclasses import replace

import pytest

import heedful
from heedful.core.errors import ConfigError, UnknownName
from heedful.studies.find_data import find_data
from heedful.studies.grid import StudyRequest, build_cells, run_cells
from heedful.studies.study import Study

JAIN = "jain-wallace-2019"


def sets_of(*names, study=JAIN):
    return Study.read(study).select(sets=names)[0]


def rows_in(folder, *, splits=("train", "test"), swapped=False):
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits:
        rows = [
            {"text": f"a film of {split} number {n} that is long", "label": (n + swapped) % 2}
            for n in range(8)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text)


def post(place, group, number, text):
    (place / group).mkdir(parents=True, exist_ok=True)
    (place / group / str(number)).write_text(f"Subject: x\n\n{text}\n")


def test_groups_of_news_as_they_are_distributed_are_found(tmp_path):
    for number in range(12):
        for group in ("rec.sport.baseball", "rec.sport.hockey"):
            post(tmp_path / "20news", group, number, f"the team of {group} won {number} games here")
    found = find_data(sets_of("20news"), tmp_path)
    assert found.data == {"20news": f"20news:{tmp_path / '20news'}"}
    assert len(heedful.read(found.data["20news"], split="train", cleaning=f"{JAIN}/20news"))


def test_each_task_of_babi_is_found_in_the_folder_of_all(tmp_path):
    folder = tmp_path / "tasks_1-20_v1-2" / "en-10k"
    folder.mkdir(parents=True)
    story = (
        "1 Mary went home.\n2 Where is Mary?\thome\t1\n1 Bob went out.\n2 Where is Bob?\tout\t1\n"
    )
    for task in ("qa1_single-supporting-fact", "qa2_two-supporting-facts"):
        for split in ("train", "test"):
            (folder / f"{task}_{split}.txt").write_text(story)
    found = find_data(sets_of("babi1", "babi2", "babi3"), tmp_path)
    assert {name: one.rpartition("@")[2] for name, one in found.data.items()} == {
        "babi1": "qa1",
        "babi2": "qa2",
    }
    assert len(heedful.read(found.data["babi2"], split="test")) == 2
    assert "must name one task" in found.absent["babi3"]


def test_notes_are_found_as_one_table_and_with_their_own_columns(tmp_path):
    notes = ["note of a patient " + "and more " * (3 + n % 11) for n in range(60)]
    lines = [f'"{note}",{n % 2}' for n, note in enumerate(notes)]
    (tmp_path / "anemia.csv").write_text("\n".join(["text,label", *lines]))
    (tmp_path / "diabetes").mkdir()
    for split in ("train", "test"):
        (tmp_path / "diabetes" / f"{split}.csv").write_text("\n".join(["TEXT,LABEL", *lines]))
    found = find_data(sets_of("anemia", "diabetes"), tmp_path)
    assert found.absent == {}
    assert found.data["anemia"] == f"mimic:{tmp_path / 'anemia.csv'}"
    for name, data in found.data.items():
        assert len(heedful.read(data, split="test", cleaning=f"{JAIN}/mimic-{name}")) > 5


def test_what_cannot_be_read_says_so_by_every_way_that_was_tried(tmp_path):
    (tmp_path / "snli").mkdir()
    (tmp_path / "snli" / "notes.txt").write_text("nothing")
    told = find_data(sets_of("snli"), tmp_path).absent["snli"]
    assert f"snli:{tmp_path / 'snli'}" in told


def cells(root, **asked):
    study = Study.read(JAIN)
    picked, models = study.select(sets=["sst"], encoders=["average"], attentions=["dot"])
    asked = StudyRequest(models, 1, quick=True, **asked)
    return build_cells(study, picked, find_data(picked, root).data, asked)


def test_a_cell_is_known_by_its_rows_not_by_where_they_lie(tmp_path, monkeypatch):
    rows_in(tmp_path / "one" / "sst")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (here,), (there,) = cells(tmp_path / "one"), cells(tmp_path / "two")
    assert here.data != there.data
    assert here.place(tmp_path) == there.place(tmp_path)
    monkeypatch.chdir(tmp_path)
    (relative,) = cells(tmp_path.__class__("one"))
    assert relative.place(tmp_path) == here.place(tmp_path)
    rows_in(tmp_path / "two" / "sst", splits=("test",), swapped=True)
    (changed,) = cells(tmp_path / "two")
    assert changed.place(tmp_path) != here.place(tmp_path)


def test_limits_hold_for_transformers_too_and_each_is_made_once(tmp_path):
    rows_in(tmp_path / "sst")
    limits = {"train": {"sst": 20}, "test": {"sst": 5}}
    made = cells(tmp_path, limits=limits, transformers=("minilm", "minilm"))
    assert [one.encoder for one in made] == ["average", "minilm"]
    assert made[1].limits == {"train": 20, "dev": 100, "test": 5}


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"train": {"stt": 10}}, UnknownName, "no set 'stt'"),
        ({"test": {"imbd": 10}}, UnknownName, "no set 'imbd'"),
        ({"workers": 0}, ConfigError, "workers and seeds must be"),
        ({"seeds": 0}, ConfigError, "workers and seeds must be"),
        ({"transformers": ["x/foo", "y/foo"]}, ConfigError, "Two transformers are named 'foo'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is(tmp_path, given, error, told):
    with pytest.raises(error, match=told):
        heedful.reproduce(JAIN, data_root=tmp_path, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_a_study_without_transformers_says_so(tmp_path):
    with pytest.raises(ConfigError, match="it takes no transformers"):
        heedful.reproduce(
            "wiegreffe-pinter-2019", data_root=tmp_path, out=tmp_path / "o", transformers=["minilm"]
        )


def test_two_failures_of_one_name_are_both_counted(tmp_path):
    rows_in(tmp_path / "sst")
    (one,) = cells(tmp_path)
    broken = [replace(one, data=str(tmp_path / "gone"), sha256=name) for name in "ab"]
    told = []
    run_cells(broken, tmp_path / "out", workers=2, progress=lambda *now: told.append(now))
    assert told[-1][:2] == (2, 2)


def test_zipped_rows_are_the_same_data_only_if_their_bytes_are(tmp_path):
    rows_in(tmp_path / "plain" / "sst")
    rows_in(tmp_path / "packed" / "sst")
    for file in list((tmp_path / "packed" / "sst").iterdir()):
        file.with_suffix(".jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    (plain,), (packed,) = cells(tmp_path / "plain"), cells(tmp_path / "packed")
    assert plain.place(tmp_path) != packed.place(tmp_path)
