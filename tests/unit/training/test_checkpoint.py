"""A training that is cut off leaves no trace, and one that is not the same is not taken up."""

import shutil
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from heedful.core.errors import RunError
from heedful.training.fit import finetune
from heedful.training.loop.epochs import CHECKPOINT_FILE
from heedful.training.loop.trainer import Trainer
from support.pretrained_encoder import DEV, TRAIN, told, weights


class Killed(Exception):
    pass


def killing(at):
    def progress(done, total, words):
        if done == at:
            raise Killed

    return progress


@pytest.mark.parametrize("steps", [(6,), (8,), (11, 15), (1, 6, 12)])
def test_a_training_cut_off_ends_in_the_same_bytes(recipe, whole, tmp_path, steps):
    for step in steps:  # of five in each epoch
        with pytest.raises(Killed):
            finetune(TRAIN, DEV, recipe, out=tmp_path, progress=killing(step))
        assert (tmp_path / CHECKPOINT_FILE).exists() == (step > 5)
        assert not (tmp_path / "config.json").exists()
    heard = []
    finetune(TRAIN, DEV, recipe, out=tmp_path, progress=lambda *one: heard.append(one[0]))
    assert heard[0] == (steps[-1] - 1) // 5 * 5 + 1  # nothing is done twice
    assert weights(tmp_path) == weights(whole)
    mine, theirs = told(tmp_path), told(whole)
    for one in (mine, theirs):
        del one["cpu_seconds"], one["sittings"]
    assert mine == theirs
    assert not (tmp_path / CHECKPOINT_FILE).exists()


def test_cut_off_while_the_model_is_written(recipe, whole, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(transformers.BertForSequenceClassification, "save_pretrained", full)
        with pytest.raises(RunError, match=r"^Cannot write .*No space left"):
            finetune(TRAIN, DEV, recipe, out=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT_FILE, ".lock"}
    heard = []
    finetune(TRAIN, DEV, recipe, out=tmp_path, progress=lambda *one: heard.append(one))
    assert not heard  # nothing was left to train
    assert weights(tmp_path) == weights(whole)
    assert told(tmp_path)["sittings"] == 2


@pytest.mark.parametrize("scores", [(0.9, 0.2, 0.3), (0.2, 0.9, 0.3)])
def test_the_best_weights_outlive_an_interruption(recipe, tmp_path, monkeypatch, scores):
    def telling(*given):
        rest = iter(given)
        monkeypatch.setattr(Trainer, "evaluate_dev", lambda _: (next(rest), 0.5))

    telling(*scores)
    finetune(TRAIN, DEV, recipe, out=tmp_path / "whole")
    telling(*scores[:2])
    with pytest.raises(Killed):
        finetune(TRAIN, DEV, recipe, out=tmp_path / "cut", progress=killing(12))
    telling(scores[2])
    finetune(TRAIN, DEV, recipe, out=tmp_path / "cut")
    assert told(tmp_path / "cut")["best_epoch"] == scores.index(0.9) + 1
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def cut_off(recipe, folder):
    with pytest.raises(Killed):
        finetune(TRAIN, DEV, recipe, out=folder, progress=killing(6))


def test_a_checkpoint_of_another_training_is_refused(recipe, encoder, tmp_path):
    cut_off(recipe, tmp_path)
    before = (tmp_path / CHECKPOINT_FILE).read_bytes()
    changes = {
        "rate": (TRAIN, DEV, replace(recipe, rate=1e-4)),
        "epochs": (TRAIN, DEV, replace(recipe, epochs=4)),
        "train": (TRAIN.sample(39), DEV, recipe),
        "dev": (TRAIN, DEV.sample(19), recipe),
        "seed, model": (TRAIN, DEV, replace(recipe, seed=1)),
    }
    for name, given in changes.items():
        with pytest.raises(RunError) as caught:
            finetune(*given, out=tmp_path)
        said = f"belongs to another training run: it differs in {name}. Give the same"
        assert said in str(caught.value)
    other = shutil.copytree(encoder, tmp_path / "changed")
    moved = {n: one + 0.01 for n, one in load_file(other / "model.safetensors").items()}
    save_file(moved, other / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RunError, match="differs in encoder, model"):
        finetune(TRAIN, DEV, replace(recipe, encoder=str(other)), out=tmp_path)
    assert (tmp_path / CHECKPOINT_FILE).read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "junk", "keys", "schema"])
def test_a_damaged_checkpoint_is_named(recipe, tmp_path, damage):
    cut_off(recipe, tmp_path)
    path = tmp_path / CHECKPOINT_FILE
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "junk":
        path.write_bytes(b"no safetensors at all")
    elif damage == "keys":
        save_file({"x": torch.zeros(2)}, path, metadata={"training": "{}"})
    else:
        save_file({"x": torch.zeros(2)}, path, metadata={"training": '{"schema": 9}'})
    with pytest.raises(RunError, match=r"cannot resume from .* Remove the file to start again\.$"):
        finetune(TRAIN, DEV, recipe, out=tmp_path)
