"""Fine-tuning: everything follows from the seed, interruptions leave no trace, no pickle."""

import json
import shutil
from dataclasses import replace
from itertools import count

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file

import heedful
from heedful.core.errors import ConfigError, DataError, ModelError
from heedful.training.fit import finetune
from heedful.training.loop.trainables import build_transformer_optimiser, learning_rate_at
from heedful.training.loop.trainer import Trainer
from heedful.training.recipe import FineTuning
from support.dev_scores import dev_score
from support.pretrained_encoder import DEV, TRAIN, WORDS, rows, told, weights, write_encoder


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(recipe, whole, tmp_path):
    finetune(TRAIN, DEV, recipe, out=tmp_path / "again")
    assert weights(tmp_path / "again") == weights(whole)
    finetune(TRAIN, DEV, replace(recipe, seed=1), out=tmp_path / "other")
    mine, other = (load_file(one / "model.safetensors") for one in (whole, tmp_path / "other"))
    assert all(not torch.equal(mine[name], other[name]) for name in mine if "weight" in name)


def test_the_global_stream_is_neither_read_nor_moved(recipe, whole, tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        before = torch.get_rng_state()
        finetune(TRAIN, DEV, recipe, out=tmp_path)
        assert torch.equal(torch.get_rng_state(), before)
    assert weights(tmp_path) == weights(whole)


@pytest.mark.parametrize("scores", [(0.9, 0.2, 0.3), (0.2, 0.9, 0.9), (0.1, 0.2, 0.9)])
def test_the_weights_of_the_epoch_that_is_named_are_kept(recipe, tmp_path, monkeypatch, scores):
    given, seen = iter(scores), []

    def evaluate(trainer):
        seen.append({k: one.clone() for k, one in trainer.trainable.model.state_dict().items()})
        return next(given), 0.5

    monkeypatch.setattr(Trainer, "evaluate_dev", evaluate)
    subject = finetune(TRAIN, DEV, recipe, out=tmp_path)
    best = told(tmp_path)["best_epoch"]
    assert best == scores.index(max(scores)) + 1
    kept = subject.model.state_dict()
    for epoch, one in enumerate(seen, start=1):
        assert all(torch.equal(kept[k], one[k]) for k in kept) == (epoch == best)


def test_the_loop_does_what_a_plain_one_does(tmp_path):
    """One batch of all texts, three times: another optimiser, labels into the model, no seam."""
    folder = write_encoder(
        tmp_path / "e", WORDS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    recipe = FineTuning(str(folder), epochs=3, batch=40, rate=1e-3, warmup=0.5, clip=1e-6)
    start = finetune(TRAIN, DEV, replace(recipe, rate=0.0), out=tmp_path / "start").model
    model = start.train().requires_grad_(True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([one.text for one in TRAIN], padding=True, return_tensors="pt")
    gold = torch.tensor([one.label for one in TRAIN])
    plain = {k for k, _ in model.named_parameters() if k.endswith("bias") or "LayerNorm" in k}
    groups = [[p for k, p in model.named_parameters() if (k in plain) == one] for one in (0, 1)]
    optimiser = torch.optim.AdamW(
        [{"params": g, "weight_decay": d} for g, d in zip(groups, (0.01, 0.0), strict=True)],
        foreach=False,
    )
    for rate in (0.5e-3, 1e-3, 1e-3):  # two steps up, the third begins the way down
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        model(**batch, labels=gold).loss.backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        for one in model.parameters():
            one.grad *= min(1.0, 1e-6 / float(norm))  # near Adam's ε, so that it shows
        optimiser.step()
    wanted = {name: one.detach() for name, one in model.state_dict().items()}
    given = count(0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "evaluate_dev", lambda _: (next(given), 0.5))  # keeps the last epoch
        found = finetune(TRAIN, DEV, recipe, out=tmp_path / "ours").model.state_dict()
    before = load_file(folder / "model.safetensors")
    for name, one in wanted.items():
        torch.testing.assert_close(found[name], one, rtol=1e-4, atol=2e-6)
    name = "embeddings.word_embeddings.weight"
    assert float((found[f"bert.{name}"] - before[name]).abs().max()) > 1e-4


def test_the_rate_goes_up_and_down():
    found = [learning_rate_at(step, 20, FineTuning("e", rate=18.0)) for step in range(20)]
    assert found == pytest.approx([9, 18, *range(18, 0, -1)])
    assert [learning_rate_at(s, 2, FineTuning("e", rate=1.0, warmup=0.0)) for s in (0, 1)] == [
        1.0,
        0.5,
    ]
    assert [learning_rate_at(s, 2, FineTuning("e", rate=1.0, warmup=1.0)) for s in (0, 1)] == [
        0.5,
        1.0,
    ]


def test_biases_and_norms_do_not_decay():
    kind = transformers.BertForSequenceClassification
    model = kind(transformers.BertConfig(hidden_size=8, num_attention_heads=2, vocab_size=9))
    names = {id(one): name for name, one in model.named_parameters()}
    decaying, others = build_transformer_optimiser(model, FineTuning("e")).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    spared = {names[id(one)] for one in others["params"]}
    assert spared == {n for n in names.values() if n.endswith("bias") or "LayerNorm" in n}
    assert len(decaying["params"]) + len(spared) == len(names)


def test_training_learns_and_the_folder_is_a_model(encoder, tmp_path):
    recipe = FineTuning(str(encoder), epochs=12, batch=8, rate=5e-3)
    subject = finetune(TRAIN, DEV, recipe, out=tmp_path)
    encoded = [subject.encode(one) for one in DEV]
    assert max(told(tmp_path)["dev_scores"]) == dev_score(subject, encoded) > 0.95
    assert not subject.model.training
    assert not any(one.requires_grad for one in subject.model.parameters())
    assert {one.dtype for one in subject.model.parameters()} == {torch.float32}
    again = heedful.load(tmp_path)
    assert again.labels == subject.labels == ("bad", "so good")
    batch = subject.batch(encoded)
    torch.testing.assert_close(again.logits(batch).float(), subject.logits(batch))
    assert dev_score(again, encoded) == pytest.approx(max(told(tmp_path)["dev_scores"]))


def test_the_folder_holds_no_pickle_and_tells_how_it_came_about(recipe, whole):
    assert {path.name for path in whole.iterdir()} - {".lock"} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training.json",
    }
    found = told(whole)
    assert found["recipe"]["encoder"] == recipe.encoder
    assert found["data"] == {"name": TRAIN.name, "sha256": TRAIN.sha256, "texts": 40}
    assert found["dev"] == {"texts": 20, "source": "dev split"}
    assert found["new_weights"] == ["classifier.bias", "classifier.weight"]
    assert len(found["dev_scores"]) == len(found["dev_accuracies"]) == 3
    assert found["best_epoch"] == found["dev_scores"].index(max(found["dev_scores"])) + 1
    assert set(found["versions"]) == {"heedful", "torch", "transformers", "tokenizers"}
    assert found["sittings"] == 1


def test_another_model_in_the_folder_gives_way_to_the_new_one(recipe, whole, tmp_path):
    for name in ("heedful.json", "config.json", "vocabulary.json"):
        (tmp_path / name).write_text("{}")
    finetune(TRAIN, DEV, recipe, out=tmp_path)
    assert not (tmp_path / "heedful.json").exists()
    assert heedful.load(tmp_path).fingerprint() == heedful.load(whole).fingerprint()


def test_without_dev_a_tenth_is_set_aside(recipe, tmp_path):
    made = [row | {"text": f"{row['text']} own{i}"} for i, row in enumerate(rows(200))]
    data = heedful.read(made)
    finetune(data, None, replace(recipe, epochs=1), out=tmp_path)
    found = told(tmp_path)
    assert found["dev"]["source"] == "a tenth of train, by hash"
    assert 8 <= found["dev"]["texts"] == 200 - found["data"]["texts"] <= 35


def test_texts_are_cut_in_an_audit_where_training_cut_them(recipe, tmp_path):
    subject = finetune(TRAIN, DEV, replace(recipe, epochs=1, max_tokens=9), out=tmp_path)
    longer = sum(len(one.text.split()) > 7 for one in TRAIN)
    assert told(tmp_path)["truncated"]["train"] == longer > 0
    assert heedful.load(tmp_path).max_length == subject.max_length == 9


def test_pairs_of_three_classes(recipe, tmp_path):
    made = [
        {"premise": f"f{i % 20} fine", "hypothesis": f"dull f{i % 7}", "label": "nyu"[i % 3]}
        for i in range(60)
    ]
    data = heedful.read(made)
    subject = finetune(data, data, replace(recipe, epochs=1), out=tmp_path)
    assert heedful.load(tmp_path).labels == ("n", "u", "y")
    one = subject.encode(next(iter(data)))
    assert set(one.types) == {0, 1}
    assert told(tmp_path)["dev_scores"] == told(tmp_path)["dev_accuracies"]


def test_the_head_of_a_classifier_with_other_classes_is_new(recipe, tmp_path):
    kind = "BertForSequenceClassification"
    other = write_encoder(tmp_path / "e", WORDS, kind=kind, num_labels=5)
    subject = finetune(TRAIN, DEV, replace(recipe, encoder=str(other), epochs=1), out=tmp_path)
    assert subject.labels == ("bad", "so good")
    assert told(tmp_path)["new_weights"] == ["classifier.bias", "classifier.weight"]


def test_what_is_no_encoder_is_refused(recipe, encoder, tmp_path):
    def refused(name):
        with pytest.raises(ModelError) as caught:
            finetune(TRAIN, DEV, replace(recipe, encoder=str(name)), out=tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return str(caught.value)

    def changed(name, **config):
        folder = shutil.copytree(encoder, tmp_path / name)
        settings = json.loads((folder / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(settings))
        return folder

    assert refused(tmp_path / "none").startswith(f"No encoder at {tmp_path}/none: give a")
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").endswith(
        "is not a transformers folder: config.json is missing."
    )
    own = shutil.copytree(encoder, tmp_path / "own")
    (own / "heedful.json").write_text("{}")
    assert "is a heedful model" in refused(own)
    assert "do not belong together" in refused(changed("wide", hidden_size=32))
    remote = changed("remote", model_type="x", auto_map={"AutoConfig": "x.X"})
    assert "custom code" in refused(remote)
    cut = changed("cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:50])
    assert refused(cut).startswith(
        f"{cut / 'model.safetensors'} cannot be read as safetensors: it has a header of "
    )


def test_a_hub_id_that_does_not_work_is_named(recipe, tmp_path, monkeypatch):
    def offline(*_, **__):
        raise OSError("We couldn't connect to the hub.\nRead this page.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelError) as caught:
        finetune(TRAIN, DEV, replace(recipe, encoder="no-such-model"), out=tmp_path)
    assert str(caught.value) == (
        "no-such-model is not a folder, and loading it as a hub id failed: no-such-model cannot be "
        "loaded by transformers: We couldn't connect to the hub."
    )


def test_pickled_weights_are_not_read(recipe, encoder, tmp_path):
    folder = shutil.copytree(encoder, tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no file named model\.safetensors"):
        finetune(TRAIN, DEV, replace(recipe, encoder=str(folder)), out=tmp_path / "out")


def test_data_that_cannot_train(recipe, tmp_path):
    one = heedful.read([row for row in rows() if row["label"] == "bad"])
    with pytest.raises(DataError, match="one class only, 'bad'"):
        finetune(one, DEV, recipe, out=tmp_path)
    with pytest.raises(DataError, match="dev texts are all of one class"):
        finetune(TRAIN, one, recipe, out=tmp_path)
    more = heedful.read(rows(), labels=("bad", "fair", "so good"))
    with pytest.raises(DataError, match="No training text of 'fair' is left"):
        finetune(more, DEV, recipe, out=tmp_path)


def test_a_rate_that_breaks_the_model_is_named(recipe, tmp_path):
    with pytest.raises(ConfigError, match=r"^Training diverged: .* rate below 1e\+30"):
        finetune(TRAIN, DEV, replace(recipe, rate=1e30), out=tmp_path)


WRONG = [("epochs", 0), ("batch", 0), ("max_tokens", 4), ("rate", -1.0), ("rate", float("nan"))]


@pytest.mark.parametrize(
    ("name", "value"), [*WRONG, ("decay", -1.0), ("clip", 0.0), ("warmup", 2.0)]
)
def test_settings_out_of_range(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be a .*, not {value}"):
        FineTuning("e", **{name: value})
