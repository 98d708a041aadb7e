"""DiffMask from the command line: trained, asked, audited, and refused in plain words."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import heedful
from heedful.core.rng import generator
from heedful.methods.base import warn_left_out
from heedful.methods.diffmask import NO_EXPLAINER
from heedful.models.recurrent.model_folder import save_model
from support import subjects
from support.random_explainers import write_explainer

TEXT = "w1 w2 w3 w4 w5"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model, rows, and an explainer of each."""
    folder = tmp_path_factory.mktemp("diffmask")
    subject = replace(subjects.subject(), labels=("no", "yes"))
    save_model(subject, folder / "model")
    save_model(subjects.subject(seed=1), folder / "other")
    draw = generator(0, "rows of a test")
    for split, count in (("train", 40), ("test", 6)):
        texts = [" ".join(draw.choice(subjects.WORDS, draw.integers(3, 9))) for _ in range(count)]
        rows = [{"text": one, "label": ("no", "yes")[n % 2]} for n, one in enumerate(texts)]
        (folder / "data").mkdir(exist_ok=True)
        (folder / f"data/{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_explainer(heedful.load(folder / "model"), folder / "made")
    return folder


def test_train_explain_and_json(files, run, tmp_path):
    words = ("diffmask", files / "model", files / "data", "--out", tmp_path / "made")
    code, told, _ = run(*words, "--epochs", "1", "--batch", "8", "--epsilon", "0.2")
    assert code == 0
    assert "bilstm-additive on " in told
    assert "Up to layer 1: " in told
    assert f"--methods diffmask --set diffmask.explainer={tmp_path / 'made'}" in told
    asked = ("--methods", "diffmask", "--set", f"diffmask.explainer={tmp_path / 'made'}")
    found = [
        json.loads(run("explain", files / "model", TEXT, *asked, *more, "--json")[1])["methods"]
        for more in ((), ("--set", "diffmask.layer=0"))
    ]
    for one in found:
        assert one["diffmask"]["kind"] == "saliency"
        assert not one["diffmask"]["signed"]
        assert all(0 <= score <= 1 for score in one["diffmask"]["scores"])
    assert all(
        deep <= first
        for deep, first in zip(*(one["diffmask"]["scores"] for one in found), strict=True)
    )
    assert found[1]["diffmask"]["settings"]["layer"] == 0


def test_python(files, tmp_path):
    rows = heedful.read(str(files / "data"), split="train", labelled=False)
    recipe = heedful.Masking(epochs=1, batch=16)
    made = heedful.fit_diffmask(heedful.load(files / "model"), rows, recipe, out=tmp_path)
    mapped = {"diffmask": {"explainer": str(tmp_path)}}
    found = heedful.explain(str(files / "model"), TEXT, methods=mapped).to_dict()["methods"]
    assert len(found["diffmask"]["scores"]) == 5
    assert made.history["recipe"]["epochs"] == 1


REFUSED = {
    "none": ((), "diffmask needs an explainer that was trained for this model"),
    "missing": (("--set", "diffmask.explainer=nowhere"), "No explainer at nowhere"),
    "layer": (
        ("--set", "diffmask.explainer=MADE", "--set", "diffmask.layer=7"),
        "layer must be between -2 and 1, not 7",
    ),
    "type": (("--set", "diffmask.explainer=3"), "diffmask.explainer must be a name, not 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name, files, run):
    words, told = REFUSED[name]
    words = [one.replace("MADE", str(files / "made")) for one in words]
    code, _, errors = run("explain", files / "model", TEXT, "--methods", "diffmask", *words)
    assert code == 2
    assert told in errors


def test_an_explainer_of_another_model_is_refused_in_words(files, run):
    asked = ("--set", f"diffmask.explainer={files / 'made'}")
    code, _, errors = run("explain", files / "other", TEXT, "--methods", "diffmask", *asked)
    assert code == 2
    assert "The explainer was trained for another model (bilstm-additive) than this" in errors
    both = ("--methods", "attention,diffmask", *asked, "--json")
    found = json.loads(run("explain", files / "other", TEXT, *both)[1])
    assert "another model" in found["refused"]["diffmask"]


def test_among_all_methods_it_is_refused_with_its_reason(files, run):
    told = ("explain", files / "model", TEXT, "--methods", "all", "--json")
    found = json.loads(run(*told, "--set", "lime.samples=16", "--set", "kernel_shap.samples=16")[1])
    assert "diffmask" not in found["methods"]
    assert found["refused"]["diffmask"] == NO_EXPLAINER


def test_unless_asked_for_it_is_left_out(files, run):
    found = json.loads(run("explain", files / "model", TEXT, "--json")[1])
    assert "diffmask" not in {*found["methods"], *found["refused"]}


@pytest.mark.parametrize("methods", ["diffmask,gradient", "all"])
def test_audits_take_it_from_a_plan(files, run, tmp_path, methods, caplog):
    warn_left_out.cache_clear()
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[methods.diffmask]\nexplainer = "{files / "made"}"\n')
    words = ("audit", files / "model", files / "data", "--checks", "agreement", "--plan", plan)
    asked = ("--methods", methods, "--out", tmp_path / "run")
    assert run(*words, *asked, "--quick", "--limit", "8", "--quiet")[0] == 0
    assert not any("left out" in one for one in caplog.messages)
    found = json.loads((tmp_path / "run/verdict.json").read_text())
    rows = found["checks"]["agreement"]["by"]
    taus = {row.get("method") for row in rows if row["measure"] == "tau_leave_one_out"}
    assert "diffmask" in taus


def test_a_training_killed_goes_on_to_the_same_bytes(files, tmp_path):
    words = [sys.executable, "-m", "heedful", "diffmask", str(files / "model"), str(files / "data")]
    words += ["--epochs", "15", "--batch", "4", "--out"]
    with subprocess.Popen([*words, str(tmp_path / "cut")]) as one:
        end = time.monotonic() + 120
        while not (tmp_path / "cut/checkpoint.safetensors").exists() and time.monotonic() < end:
            time.sleep(0.01)
        one.send_signal(signal.SIGKILL)
    assert not (tmp_path / "cut/explainer.json").exists()
    for name in ("cut", "whole"):
        subprocess.run([*words, str(tmp_path / name)], check=True, capture_output=True)
    one, other = (tmp_path / name / "explainer.safetensors" for name in ("cut", "whole"))
    assert one.read_bytes() == other.read_bytes()
    told = json.loads((tmp_path / "cut/explainer.json").read_text())["history"]
    assert told["sittings"] == 2
