"""Audits that have models made anew: from the command to the verdict, killed in every phase."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import heedful
from heedful.api.run import Run
from heedful.core.errors import ConfigError
from heedful.core.records import Vote
from heedful.models.recurrent.model_folder import save_model
from support.retraining import base, data

SETTINGS = {
    "necessity": {"seeds": 2, "epochs": 3, "patience": 2},
    "seeds": {"seeds": 2, "epochs": 3, "patience": 2, "adversary": 0.001},
    "guide": {"seeds": 2, "epochs": 3, "patience": 2, "adversary": 0.001},
    "adversary": {"weights": [0.001, 0.1], "epochs": 6, "patience": 4},
    "deception": {"weights": [1.0], "epochs": 3, "patience": 2},
}
HEAD = "limit = 40\nresamples = 200\n[retraining]\nlimit = 160\n"
ALL = tuple(SETTINGS)
FEW = ("necessity", "deception")  # where it is not about the checks


def plan(workers, names):
    """A plan of some checks, with their settings."""
    told = f"checks = {json.dumps(names)}\n{HEAD}workers = {workers}\n"
    for name in names:
        settings = "".join(f"{key} = {json.dumps(one)}\n" for key, one in SETTINGS[name].items())
        told += f"[settings.{name}]\n{settings}"
    return told


MEASURES = {
    "necessity": {"score_trained", "score_uniform", "gain", "uniform_swap_tvd"},
    "seeds": {"jsd_seeds", "jsd_adversary_beyond_seeds"},
    "guide": {"score_uniform", "score_own", "score_base", "score_adversary"},
    "adversary": {"tvd", "jsd", "score"},
    "deception": {
        "mass_before",
        "mass_after",
        "score_before",
        "score_after",
        "score_without_words",
    },
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, a plan, and the run that an undisturbed command makes of them."""
    folder = tmp_path_factory.mktemp("retraining")
    save_model(base(), folder / "model")
    (folder / "plan.toml").write_text(plan(2, ALL))
    (folder / "one.toml").write_text(plan(1, FEW))
    (folder / "two.toml").write_text(plan(2, FEW))
    done = subprocess.run(command(folder, "whole"), check=True, capture_output=True, text=True)
    assert done.stderr == ""  # costs are said to terminals
    words = [*command(folder, "few", "one.toml"), "--quiet"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return folder


def command(folder, out, plan="plan.toml"):
    model, plan, out = (str(folder / one) for one in ("model", plan, out))
    words = [sys.executable, "-m", "heedful", "audit", model, "synthetic:needle"]
    return [*words, "--plan", plan, "--out", out]


def verdict(folder, out="few"):
    return (folder / out / "verdict.json").read_text()


def test_every_measure_is_there_with_its_interval(place):
    found = Run(place / "whole").verdict
    for check, measures in MEASURES.items():
        estimates = found.checks[check].estimates
        assert measures <= estimates.keys()
        assert all(one.n for one in estimates.values())
        assert found.checks[check].answer in get_args(Vote)
    assert {found.claims[one].answer for one in ("needed", "robust")} <= {
        "supported",
        "refuted",
        "undecided",
    }
    assert found.claims["used"].answer == "not tested"  # `influence` decides it, and was not run
    assert "p_equivalent" in found.checks["necessity"].estimates


def test_rows_tell_which_seed_and_which_weight(place):
    frame = Run(place / "whole").to_dataframe()
    for name in ("seed", "setting"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    by = frame.groupby(["check", "measure"])
    assert set(by["seed"].unique()["necessity", "score_trained"]) == {None, 1, 2}
    by = by["setting"].unique()
    assert set(by["necessity", "score_trained"]) == {None}
    assert set(by["adversary", "tvd"]) == {
        None,
        *(f"λ {weight}, {start}" for weight in ("0.001", "0.1") for start in ("scratch", "base")),
    }
    assert set(by["deception", "mass_after"]) == {None, "λ 1"}
    keys = ["check", "measure", "seed", "setting"]
    assert (frame.groupby(keys, dropna=False).size() == 40).all()


def test_the_estimates_are_those_of_the_rows(place):
    run = Run(place / "whole")
    frame = run.to_dataframe()
    found = run.verdict.checks["necessity"].estimates
    rows = frame[(frame.check == "necessity") & frame.seed.notna()]
    means = rows.groupby("measure")["value"].mean()
    assert found["score_trained"].value == pytest.approx(means["score_trained"])
    assert found["gain"].value == pytest.approx(means["score_trained"] - means["score_uniform"])
    seeds = frame[(frame.check == "seeds") & (frame.measure == "jsd_seeds")]
    median = seeds[seeds.seed.notna()].groupby("instance")["value"].median()
    assert run.verdict.checks["seeds"].estimates["jsd_seeds"].value == pytest.approx(median.mean())


def test_how_each_model_came_about_is_kept(place):
    told = json.loads((place / "whole" / "manifest.json").read_text())["retrained"]
    assert len(told) == 4 + 4 + 8 + 2  # arms, adversaries, guides, deception: shared by checks
    assert all(1 <= one["epochs"] <= 8 and one["cpu_seconds"] >= 0 for one in told)
    assert all(isinstance(one["plateau"], bool) for one in told)


@pytest.mark.study
def test_two_processes_end_in_the_same_bytes(place):
    subprocess.run(command(place, "two", "two.toml"), check=True, capture_output=True)
    assert verdict(place, "two") == verdict(place)


PHASES = {
    "before the first epoch": lambda run: (run / "retrained" / "worker_input").exists(),
    "in the first trainings": lambda run: any(run.glob("retrained/*/checkpoint.safetensors")),
    "after some": lambda run: len(list(run.glob("retrained/*/lesson.json"))) >= 3,
    "when checks have begun to look": lambda run: any(run.glob("measurements/retrained-*.parquet")),
}


LONGER = ("before the first epoch", "after some", "in the first trainings")  # much like the others


@pytest.mark.parametrize(
    "phase", [pytest.param(one, marks=pytest.mark.study if one in LONGER else ()) for one in PHASES]
)
def test_killed_it_goes_on_to_the_same_bytes(place, phase):
    out = f"killed {phase}"
    with subprocess.Popen(
        command(place, out, "two.toml"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as one:
        while one.poll() is None and not PHASES[phase](place / out):
            time.sleep(0.02)
        one.send_signal(signal.SIGKILL)
    made = {path.parent.name: path.stat().st_mtime_ns for path in lessons(place / out)}
    subprocess.run(command(place, out, "two.toml"), check=True, capture_output=True)
    assert verdict(place, out) == verdict(place)
    again = {path.parent.name: path.stat().st_mtime_ns for path in lessons(place / out)}
    assert made.items() <= again.items()  # what was made is not made again


def lessons(run):
    return list(run.glob("retrained/*/lesson.json"))


def test_runs_can_share_what_is_made(place):
    there = str(place / "few" / "retrained")
    words = [*command(place, "shared", "two.toml"), "--retrained", there, "--seed", "5"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert "are retrained" not in done.stderr  # all are there


@pytest.mark.study
def test_an_interrupt_is_said_and_can_be_continued(place):
    out = "interrupted"
    with subprocess.Popen(
        command(place, out, "two.toml"),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as one:
        while one.poll() is None and not PHASES["in the first trainings"](place / out):
            time.sleep(0.02)
        os.killpg(one.pid, signal.SIGINT)
        said = one.stderr.read()
    assert one.returncode == 130
    assert "Traceback" not in said


def audit(subject, texts, **more):
    chosen = {"checks": ALL, "settings": SETTINGS, "resamples": 200}
    return heedful.audit(subject, texts, **{**chosen, **more}).verdict


ROWS = [
    {"text": one.text, "label": ("negative", "positive")[one.label]} for one in data("test", 20)
]


def test_without_training_texts_the_checks_are_undecided_and_say_why():
    found = audit(base(), ROWS)
    for check in ALL:
        assert found.checks[check].answer == "undecided"
        assert "no training split" in found.checks[check].why
        assert not found.checks[check].measured
    assert found.claims["needed"].answer == "undecided"
    assert "no training split" in found.claims["robust"].why


def test_training_texts_can_be_given():
    found = audit(
        base(),
        ROWS,
        train=data("train", 160),
        dev=data("dev", 60),
        checks=["necessity"],
        settings={"necessity": SETTINGS["necessity"]},
        retraining={"workers": 1},
    )
    assert found.checks["necessity"].estimates["gain"].n == 20


def test_a_model_that_does_not_say_how_it_was_made_is_undecided():
    silent = replace(base(), history={})
    found = audit(silent, ROWS, train=data("train", 160), dev=data("dev", 60))
    assert "no record of how it was trained" in found.checks["seeds"].why


@pytest.mark.parametrize(("split", "told"), [("train", "trained on"), ("dev", "selected on")])
def test_texts_that_models_are_made_from_are_not_audited(split, told):
    given = {"train": data("train", 160), "dev": data("dev", 60)}
    found = audit(base(), given[split], **given)
    assert told in found.checks["necessity"].why


def test_a_model_that_cannot_be_made_leaves_the_other_checks_alone():
    """Its word vectors are gone: no model can be made anew, and the rest of the audit stands."""
    recipe = {**base().history["recipe"], "embeddings": "gone.txt"}
    found = audit(
        replace(base(), history={"recipe": recipe}),
        ROWS,
        train=data("train", 160),
        dev=data("dev", 60),
        checks=["necessity", "permutation"],
        settings={"necessity": SETTINGS["necessity"]},
        retraining={"workers": 1},
    )
    assert "gone.txt" in found.checks["necessity"].why
    assert found.checks["permutation"].estimates


def test_the_run_and_the_models_need_folders_of_their_own(tmp_path):
    with pytest.raises(ConfigError, match="must differ"):
        heedful.audit(
            base(),
            ROWS,
            train=data("train", 160),
            dev=data("dev", 60),
            checks=["necessity"],
            out=tmp_path,
            retraining={"folder": str(tmp_path)},
        )


def test_uniform_attention_needs_no_asking():
    subject = base(attention="uniform")
    found = audit(
        subject,
        ROWS,
        train=data("train", 160),
        dev=data("dev", 60),
        checks=["necessity"],
        settings={"necessity": SETTINGS["necessity"]},
    )
    assert "uniform already" in found.checks["necessity"].why


def test_words_that_are_nowhere_cannot_be_hidden():
    settings = {"deception": {**SETTINGS["deception"], "words": ["zebra"]}}
    found = audit(
        base(),
        ROWS,
        train=data("train", 160),
        dev=data("dev", 60),
        checks=["deception"],
        settings=settings,
        retraining={"workers": 1},
    )
    assert "zebra" in found.checks["deception"].why
    assert np.isnan(found.checks["deception"].estimates.get("gain", np.nan))
