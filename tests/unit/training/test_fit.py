"""Training: everything follows from the seed, the best epoch is kept, no test text is seen."""

import json
from dataclasses import replace
from hashlib import blake2b
from itertools import count

import pytest
import torch

import heedful
from heedful import Recipe, fit
from heedful.cli.train import train_and_save
from heedful.core.errors import ConfigError, DataError
from heedful.core.rng import generator
from support.dev_scores import dev_score

RECIPE = Recipe(epochs=2, hidden=8, embedding=6, batch=8, rate=0.01)


def rows(count=40, seed=0, noise=0.0):
    """Texts of five to nine fillers, one of them replaced by a cue that tells the label."""
    draw = generator(seed, "rows of a test")
    made = []
    for number in range(count):
        words = [f"f{one}" for one in draw.integers(0, 20, draw.integers(5, 10))]
        words[int(draw.integers(len(words)))] = ("dull", "fine")[number % 2]
        label = int(draw.integers(2)) if draw.random() < noise else number % 2
        made.append({"text": " ".join(words), "label": ("bad", "good")[label]})
    return made


TRAIN, DEV = heedful.read(rows()), heedful.read(rows(20, seed=1))
NOISY = heedful.read(rows(40, seed=2, noise=1.0)), heedful.read(rows(20, seed=3, noise=1.0))


def weights(subject):
    return {name: one.clone() for name, one in subject.network.state_dict().items()}


def same(one, other):
    mine, theirs = weights(one), weights(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    one, again = fit(TRAIN, DEV, RECIPE), fit(TRAIN, DEV, RECIPE)
    assert same(one, again)
    assert one.history["dev_scores"] == again.history["dev_scores"]
    other = fit(TRAIN, DEV, replace(RECIPE, seed=1))
    assert not torch.equal(other.network.decoder.weight, one.network.decoder.weight)


def test_the_global_stream_is_neither_read_nor_moved():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        before = torch.get_rng_state()
        one = fit(TRAIN, DEV, RECIPE)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(456)
        assert same(fit(TRAIN, DEV, RECIPE), one)


def test_training_learns_what_is_there_to_learn():
    subject = fit(TRAIN, DEV, replace(RECIPE, epochs=12, rate=0.02))
    assert max(subject.history["dev_scores"]) > 0.95


def test_the_score_of_the_subject_is_the_best_of_all_epochs():
    train, dev = NOISY
    subject = fit(train, dev, replace(RECIPE, epochs=5, rate=0.03))
    scores = subject.history["dev_scores"]
    assert len(scores) == 5
    assert len(set(scores)) > 1
    assert dev_score(subject, [subject.encode(one) for one in dev]) == max(scores)


@pytest.mark.parametrize(
    "scores",
    [
        (0.9, 0.2, 0.3),
        (0.2, 0.9, 0.3),
        (0.1, 0.2, 0.9),
        (0.2, 0.9, 0.9),
    ],
)
def test_the_weights_of_the_epoch_that_is_named_are_kept(scores, monkeypatch):
    told = iter(scores)
    monkeypatch.setattr(
        "heedful.training.loop.trainer.selection_score", lambda *_: (next(told), 0.0)
    )
    subject = fit(TRAIN, DEV, replace(RECIPE, epochs=3))
    best = subject.history["best_epoch"]
    assert best == scores.index(max(scores)) + 1
    rising = count(0.1)
    monkeypatch.setattr(
        "heedful.training.loop.trainer.selection_score", lambda *_: (next(rising), 0.0)
    )
    at = [fit(TRAIN, DEV, replace(RECIPE, epochs=epoch)) for epoch in (1, 2, 3)]
    assert [same(subject, one) for one in at] == [epoch == best for epoch in (1, 2, 3)]


def test_the_subject_is_finished():
    subject = fit(TRAIN, DEV, RECIPE)
    assert not subject.network.training
    assert not any(one.requires_grad for one in subject.network.parameters())
    assert all(one.dtype == torch.float32 for one in subject.network.parameters())
    assert not subject.network.embedding.weight[0].any()  # padding stays zero
    assert subject.labels == ("bad", "good")


def test_the_history_tells_how_it_came_about():
    told = fit(TRAIN, DEV, replace(RECIPE, min_words=6)).history
    assert json.loads(json.dumps(told)) == told
    assert told["recipe"]["seed"] == 0
    kept = sum(len(one.text.split()) >= 6 for one in TRAIN)
    assert told["data"] == {"name": TRAIN.name, "sha256": TRAIN.sha256, "texts": kept}
    assert told["left_out"]["train"] == 40 - kept > 0
    assert told["dev"] == {"texts": 20 - told["left_out"]["dev"], "source": "dev split"}
    assert told["vectors_found"] is None


def test_the_test_split_is_never_read(tmp_path):
    for split, made in (("train", rows()), ("dev", rows(20, seed=1))):
        text = "".join(json.dumps(row) + "\n" for row in made)
        (tmp_path / f"{split}.jsonl").write_text(text)
    (tmp_path / "test.jsonl").write_text("whoever reads this is told that it is not JSON\n")
    subject = train_and_save(str(tmp_path), tmp_path / "model", RECIPE, quiet=True)
    assert subject.history["data"]["texts"] == 40
    assert subject.history["dev"] == {"texts": 20, "source": "dev split"}
    with pytest.raises(DataError):
        heedful.read(tmp_path, split="test")


def in_tenth(text):
    return blake2b(text.encode(), digest_size=8).digest()[0] % 10 == 0


def test_without_dev_a_tenth_is_set_aside_by_its_hash():
    made = [row | {"text": f"{row['text']} own{i}"} for i, row in enumerate(rows(200))]
    held = {i for i, row in enumerate(made) if in_tenth(row["text"])}
    assert 8 <= len(held) <= 35
    subject = fit(heedful.read(made), None, replace(RECIPE, epochs=1))
    assert subject.history["dev"] == {
        "texts": len(held),
        "source": "a tenth of train, by hash",
    }
    assert subject.history["data"]["texts"] == 200 - len(held)
    known = {i for i in range(200) if f"own{i}" in subject.vocabulary.numbers}
    assert known == set(range(200)) - held  # not a word of what was set aside


def test_too_few_texts_to_set_some_aside():
    few = [row for row in rows() if not in_tenth(row["text"])][:6]
    with pytest.raises(DataError) as caught:
        fit(heedful.read(few), None, RECIPE)
    assert str(caught.value) == "rows in memory has 6 texts: too few to set some aside as dev."


def test_one_class_cannot_be_trained():
    one = heedful.read([row for row in rows() if row["label"] == "bad"])
    with pytest.raises(DataError) as caught:
        fit(one, DEV, RECIPE)
    assert str(caught.value) == "The training data has one class only, 'bad'; two are needed."


def test_a_class_without_texts_is_named():
    data = heedful.read(rows(), labels=("bad", "fair", "good", "superb"))
    with pytest.raises(DataError) as caught:
        fit(data, DEV, RECIPE)
    assert str(caught.value) == "No training text of 'fair', 'superb' is left; cannot train."


def test_a_class_whose_texts_are_all_too_short_is_named():
    made = [*rows(), {"text": "so so", "label": "fair"}]
    with pytest.raises(DataError, match=r"^No training text of 'fair' is left"):
        fit(heedful.read(made), DEV, replace(RECIPE, min_words=3))


def test_dev_labels_of_another_order_are_refused():
    turned = [row | {"label": {"bad": "yes", "good": "no"}[row["label"]]} for row in rows(20)]
    with pytest.raises(DataError, match="label"):
        fit(TRAIN, heedful.read(turned), RECIPE)


@pytest.mark.parametrize("name", ["epochs", "batch", "min_df", "min_words"])
def test_counts_of_a_recipe_start_at_one(name):
    with pytest.raises(ConfigError, match=f"{name} must be a whole number of at least 1, not 0"):
        Recipe(**{name: 0})


def test_max_words_starts_at_one():
    with pytest.raises(ConfigError, match="max_words"):
        fit(TRAIN, DEV, replace(RECIPE, max_words=-3))


@pytest.mark.parametrize(("drawn", "spread"), [("uniform", 0.2 / 12**0.5), ("normal", 1.0)])
def test_word_vectors_are_drawn_as_asked(drawn, spread):
    subject = fit(TRAIN, DEV, replace(RECIPE, embedding=400, drawn=drawn, rate=0.0))
    table = subject.network.embedding.weight
    assert not table[0].any()
    assert float(table[1:].std()) == pytest.approx(spread, rel=0.1)
    if drawn == "uniform":
        assert float(table.abs().max()) <= 0.1
    with pytest.raises(ConfigError, match="drawn must be uniform or normal"):
        replace(RECIPE, drawn="otherwise")


def test_pretrained_vectors_are_where_training_starts(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("fine 1 2 3\ndull -1 -2 -3\nunseen 9 9 9\n")
    subject = fit(TRAIN, DEV, replace(RECIPE, embeddings=str(path), rate=0.0))
    assert subject.history["vectors_found"] == 2
    table = subject.network.embedding.weight
    assert table[subject.vocabulary.number("fine")].tolist() == [1, 2, 3]
    assert table[subject.vocabulary.number("dull")].tolist() == [-1, -2, -3]
    assert float(table.abs().sum()) == 12.0  # the others start at zero, as published


def test_progress_ends_at_the_end():
    heard = []
    fit(TRAIN, DEV, RECIPE, progress=lambda *told: heard.append(told))
    assert [done for done, _, _ in heard] == list(range(1, 11))
    assert {total for _, total, _ in heard} == {10}
    assert heard[0][2] == "epoch 1/2"
    assert heard[-1][2].startswith("epoch 2/2, best dev ")


def test_cut_off_it_goes_on_to_the_same_weights(tmp_path):
    def cut(done, total, words):
        if words.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(TRAIN, DEV, RECIPE, kept=tmp_path, progress=cut)
    assert any(tmp_path.iterdir())
    found, want = fit(TRAIN, DEV, RECIPE, kept=tmp_path), fit(TRAIN, DEV, RECIPE)
    assert same(found, want)
    assert found.history["dev_scores"] == want.history["dev_scores"]
    assert [one.name for one in tmp_path.iterdir()] == [".lock"]  # nothing to go on from


def test_patience_ends_a_training_that_has_stopped_rising():
    found = fit(*NOISY, replace(RECIPE, epochs=12, patience=1))
    scores = found.history["dev_scores"]
    assert len(scores) < 12
    assert scores[-1] <= max(scores[:-1])
    with pytest.raises(ConfigError, match="patience must be a whole number of at least 1"):
        replace(RECIPE, patience=0)
