"""Models, plans and names that mean harm or are merely broken: one clear line and exit code 2."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.models.recurrent.model_folder import save_model
from support import subjects
from support.hostile_input import SCRIPT, as_in_use, refused, small_model

as_in_use = pytest.fixture(autouse=True)(as_in_use)
model = pytest.fixture(scope="module")(small_model)


def test_a_folder_where_a_file_is_expected(run, model, tmp_path):
    (tmp_path / "rows.jsonl").mkdir()
    words = ("audit", model, tmp_path / "rows.jsonl", "--out", tmp_path / "run")
    assert "has no train, dev or test file" in refused(run(*words))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/test.jsonl").mkdir()
    words = ("audit", model, tmp_path / "data", "--out", tmp_path / "run")
    assert "has no train, dev or test file" in refused(run(*words))
    words = ("audit", model, "synthetic:needle", "--out", tmp_path / "run", "--plan", tmp_path)
    assert "Cannot read the plan" in refused(run(*words))


@pytest.mark.parametrize("name", ["model.safetensors", "heedful.json", "vocabulary.json"])
@pytest.mark.parametrize("kind", ["truncated", "a folder", "missing", "zeros", "noise"])
def test_damaged_model_files(run, tmp_path, name, kind):
    save_model(subjects.subject(), tmp_path / "model")
    path = tmp_path / "model" / name
    raw = path.read_bytes()
    path.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing":
        new = {"truncated": raw[: len(raw) // 2], "zeros": bytes(len(raw)), "noise": raw[::-1]}
        path.write_bytes(new[kind])
    words = ("audit", tmp_path / "model", "synthetic:needle", "--out", tmp_path / "run")
    assert name in refused(run(*words))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_weights_of_the_wrong_type(run, tmp_path, kind):
    save_model(subjects.subject(), tmp_path / "model")
    weights = load_file(tmp_path / "model/model.safetensors")
    weights["decoder.bias"] = weights["decoder.bias"].to(kind)
    save_file(weights, tmp_path / "model/model.safetensors")
    words = ("audit", tmp_path / "model", "synthetic:needle", "--out", tmp_path / "run")
    said = refused(run(*words))
    assert "decoder.bias" in said
    assert str(kind) in said


@pytest.mark.parametrize("name", ["x" * 10_000, "a\0b", "~nobody-here/model", "<script>"])
def test_strange_names_of_models_and_data(run, model, tmp_path, name):
    refused(run("audit", name, "synthetic:needle", "--out", tmp_path / "run"))
    refused(run("audit", model, name, "--out", tmp_path / "run"))
    refused(run("explain", name, "w1"))


@pytest.mark.parametrize("name", ["x" * 10_000, "a\0b"])
def test_strange_names_of_run_folders(run, model, tmp_path, name):
    refused(run("audit", model, "synthetic:needle", "--limit", 4, "--out", tmp_path / name))


def test_explain_with_hostile_words(run, model):
    for text in (SCRIPT, "w1 \0 \x1b[31m w2", "שלום 👩‍👩‍👧‍👦", "w1 " * 100_000):
        assert run("explain", model, text, "--methods", "attention")[0] == 0
        assert json.loads(run("explain", model, text, "--methods", "attention", "--json")[1])
    for text in ("", " \n", "\u200b"):
        assert run("explain", model, text)[0] in (0, 2)


def test_a_plan_of_noise(run, model, tmp_path):
    for content in (b"\xff\xfe", b"\0", b"= 1", b"seed = 1e999", b"seed = inf", b"a." * 9999):
        (tmp_path / "plan.toml").write_bytes(content)
        words = ("audit", model, "synthetic:needle", "--out", tmp_path / "run")
        refused(run(*words, "--plan", tmp_path / "plan.toml"))
