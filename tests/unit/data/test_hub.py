"""Data sets of the hub, from folders that `datasets` wrote; the hub itself is never asked."""

import sys

import datasets
import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.sources import hub


@pytest.fixture(autouse=True)
def no_progress_bars():
    datasets.disable_progress_bars()


@pytest.fixture
def table():
    kinds = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    rows = {"text": [f"text {i}" for i in range(200)], "label": [1, 0] * 99 + [-1, 1]}
    return datasets.Dataset.from_dict(rows, features=kinds)


def test_a_saved_table(tmp_path, table):
    table.save_to_disk(tmp_path / "saved")
    name = f"hf:{tmp_path}/saved"
    data = read(name, split="train")
    assert (data.name, data.split, data.labels) == (name, "train", ("neg", "pos"))
    assert [e.label for e in list(data)[:3]] == [1, 0, 1]
    assert data.bad.lines == {"no label": (199,)}
    assert data.sha256 == read(name).sha256
    assert splits(name) == ("all",)


def test_a_saved_dict_of_splits(tmp_path, table):
    datasets.DatasetDict({"train": table, "validation": table}).save_to_disk(tmp_path / "saved")
    name = f"hf:{tmp_path}/saved"
    assert splits(name) == ("train", "validation")
    assert len(read(name, split="dev", limit=5)) == 5
    with pytest.raises(DataError, match=r"has no split 'test'. It has: train, validation"):
        read(name)


def test_a_folder_that_datasets_did_not_write(tmp_path):
    with pytest.raises(DataError, match="is not a folder written by save_to_disk"):
        read(f"hf:{tmp_path}")


def test_name_and_config_reach_the_hub_without_remote_code(monkeypatch, table):
    asked = []

    def load(*arguments, **settings):
        asked.append((arguments, settings))
        return datasets.DatasetDict({"test": table})

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert len(read("hf:glue@sst2")) == 199
    assert splits("hf:someone/imdb") == ("test",)
    assert asked == [(("glue", "sst2"), {}), (("someone/imdb", None), {})]
    monkeypatch.setattr(datasets, "__version__", "3.6.0")
    read("hf:glue@sst2")
    assert asked[-1][1] == {"trust_remote_code": False}


@pytest.mark.parametrize(
    ("why", "message"),
    [
        (ConnectionError("Couldn't reach 'x' on the Hub\nmore"), "the hub was not reached. Couldn"),
        (ValueError("BuilderConfig 'y' not found.\nAvailable"), "from the hub: BuilderConfig 'y'"),
        (RuntimeError(), "from the hub: RuntimeError"),
    ],
)
def test_a_hub_that_cannot_help(monkeypatch, why, message):
    def load(*arguments, **settings):
        raise why

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match=message) as error:
        read("hf:x@y")
    assert "\n" not in str(error.value)


def test_a_missing_library_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"Run: pip install 'heedful\[datasets\]'\."):
        hub._library()
