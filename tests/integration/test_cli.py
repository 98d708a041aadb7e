"""The command line: what it prints, and the one clear line when the request is wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tiny model trained through the command line."""
    folder = tmp_path_factory.mktemp("cli") / "model"
    words = ["train", "synthetic:needle", "--out", str(folder), "--encoder", "average",
             "--epochs", "2", "--limit", "600"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "heedful", *words], capture_output=True, text=True, check=True
    )
    assert "dev score" in done.stdout
    return folder


QUICK = "[settings.adversarial]\nsteps = 5\n"


def test_train_writes_no_pickle(trained):
    assert {path.name for path in trained.iterdir()} == {
        "model.safetensors",
        "heedful.json",
        "vocabulary.json",
        ".lock",
    }
    history = json.loads((trained / "heedful.json").read_text())["history"]
    assert history["data"]["name"] == "synthetic:needle"


def test_audit_prints_the_card_and_continues(run, trained, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(QUICK)
    words = ("audit", trained, "synthetic:needle", "--out", tmp_path / "run", "--plan", plan,
             "--limit", "40")  # fmt: skip
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "Does attention explain" in out
    assert "tau_gradient_leave_one_out" not in out
    code, details, err = run("report", tmp_path / "run", "--details")
    assert (code, err) == (0, "")
    assert "tau_gradient_leave_one_out" in details
    before = (tmp_path / "run/verdict.json").read_bytes()
    assert run(*words)[0] == 0
    assert (tmp_path / "run/verdict.json").read_bytes() == before


def test_require_decides_the_exit_code(run, trained, tmp_path):
    words = ("audit", trained, "synthetic:needle", "--limit", "40", "--checks", "agreement",
             "--out", tmp_path / "run", "--quiet")  # fmt: skip
    code, out, _ = run(*words)
    assert (code, out) == (0, "")
    answer = json.loads((tmp_path / "run/verdict.json").read_text())["answer"]
    other = "unfaithful" if answer != "unfaithful" else "faithful"
    assert run(*words, "--require", answer)[0] == 0
    assert run(*words, "--require", other)[0] == 1


def test_target_turns_the_sign(run, trained):
    signs = []
    for target in ("negative", "positive"):
        _, out, _ = run("explain", trained, "the film", "--target", target, "--json",
                        "--methods", "leave_one_out")  # fmt: skip
        signs.append(json.loads(out)["methods"]["leave_one_out"]["scores"])
    assert signs[0] == pytest.approx([-one for one in signs[1]])


def test_check_says_what_works(run, trained):
    code, out, _ = run("check", trained, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["attention_path"] == "own"
    assert found["parity"] < 1e-12
    asked = found["checks"].pop("identifiability")
    assert "layers and heads; the model has one attention" in asked
    assert set(found["checks"].values()) == {"ok"}
    refused = {name for name, told in found["methods"].items() if told != "ok"}
    layered = {"rollout", "flow", "gradient_rollout", "relevance_rollout", "value_zeroing"}
    assert refused == layered | {"alti", "globenc", "decompx", "diffmask"}
    assert "this model has one attention" in found["methods"]["rollout"]
    assert run("check", trained)[1].count("ok") >= len(found["methods"]) - len(refused)


@pytest.mark.parametrize("what", ["methods", "interventions", "checks", "data", "families"])
def test_list_gives_one_line_each(run, what):
    code, out, _ = run("list", what)
    assert code == 0
    assert len(out.splitlines()) >= 3
    assert all(len(line.split()) > 1 for line in out.splitlines())


WRONG = {
    "unknown command": (["adit"], "No such command 'adit'"),
    "unknown option": (["list", "methods", "--nope"], "No such option"),
    "no model": (["audit", "nowhere", "synthetic:needle", "--out", "o"], "No heedful model at"),
    "no data": (["audit", "MODEL", "nowhere.jsonl", "--out", "o"], "nowhere.jsonl"),
    "unknown corpus": (["audit", "MODEL", "synthetic:nedle", "--out", "o"], "synthetic:needle"),
    "unknown check": (
        ["audit", "MODEL", "synthetic:needle", "--out", "o", "--checks", "agrement"],
        "Did you mean 'agreement'?",
    ),
    "unknown method": (["explain", "MODEL", "a", "--methods", "lime2"], "No method is named"),
    "unknown target": (["explain", "MODEL", "a", "--target", "great"], "No class is named"),
    "no words": (["explain", "MODEL", "   "], "contains no word"),
    "unknown engine": (
        ["audit", "MODEL", "synthetic:needle", "--out", "o", "--engine", "cloud"],
        "No engine is named 'cloud'",
    ),
    "unknown answer": (
        ["audit", "MODEL", "synthetic:needle", "--out", "o", "--require", "good"],
        "--require takes one of",
    ),
    "unknown encoder": (
        ["train", "synthetic:needle", "--out", "o", "--encoder", "bilst"],
        "Did you mean 'bilstm'?",
    ),
    "no vectors": (
        ["train", "synthetic:needle", "--out", "o", "--embeddings", "nowhere.txt"],
        "No word vectors at nowhere.txt",
    ),
    "bad fields": (
        ["train", "synthetic:needle", "--out", "o", "--fields", "x"],
        "--fields",
    ),
    "missing plan": (
        ["audit", "MODEL", "synthetic:needle", "--out", "o", "--plan", "none.toml"],
        "Cannot read the plan",
    ),
    "out is a file": (["audit", "MODEL", "synthetic:needle", "--out", "FILE"], "is a file"),
    "bad limit": (
        ["audit", "MODEL", "synthetic:needle", "--out", "o", "--limit", "0"],
        "--limit",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_get_one_clear_line_and_exit_2(run, trained, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    words, said = WRONG[case]
    words = [str(trained) if word == "MODEL" else word for word in words]
    code, out, err = run(*["file" if word == "FILE" else word for word in words])
    assert code == 2
    assert err.startswith("heedful: ")
    assert err.count("\n") == 1
    assert said in err
    assert "Traceback" not in out + err


def test_data_with_labels_the_model_does_not_know(run, trained, tmp_path):
    data = tmp_path / "test.jsonl"
    data.write_text('{"text": "a film", "label": "so-so"}\n' * 3)
    code, _, err = run("audit", trained, data, "--out", tmp_path / "o")
    assert code == 2
    assert "unknown label" in err


def test_ctrl_c_leaves_a_run_that_can_be_continued(trained, tmp_path):
    words = [sys.executable, "-m", "heedful", "audit", str(trained), "synthetic:needle",
             "--out", str(tmp_path / "run"), "--plan", str(tmp_path / "plan.toml")]  # fmt: skip
    (tmp_path / "plan.toml").write_text(
        "instances_per_job = 20\n[settings.adversarial]\nsteps = 300"
    )
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}  # also under nohup
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **heard)
    measurements = tmp_path / "run/measurements"
    deadline = time.time() + 60
    while time.time() < deadline and not list(measurements.glob("0*.parquet")):
        time.sleep(0.02)
    os.kill(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "the same command continues" in err
    assert "Traceback" not in err
    kept = set(measurements.glob("0*.parquet"))
    assert kept
    subprocess.run(words, check=True, capture_output=True)
    assert (tmp_path / "run/verdict.json").exists()
    assert kept <= set(measurements.glob("0*.parquet"))
