"""A model folder: back comes the same model, and every damage is told."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.core.errors import ModelError, RunError
from heedful.core.values import Example
from heedful.models.recurrent.model_folder import (
    MODEL_SETTINGS_FILE,
    MODEL_WEIGHTS_FILE,
    VOCABULARY_FILE,
    load_model,
    save_model,
)
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from support import question_subjects
from support.subjects import WORDS as KNOWN
from support.subjects import batch, subject


def small(encoder="bilstm", attention="additive", **settings):
    """A subject as training leaves it: in float32."""
    one = subject(encoder, attention, **settings)
    one.network.float()
    return one


@pytest.fixture
def folder(tmp_path):
    save_model(small(), tmp_path / "model")
    return tmp_path / "model"


def refused(folder):
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    return str(caught.value)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "mlp"])
@pytest.mark.parametrize("attention", ["additive", "dot", "uniform"])
def test_the_same_logits_come_back(encoder, attention, tmp_path):
    one = small(encoder, attention, classes=2 + (attention == "dot"))
    save_model(one, tmp_path)
    back = load_model(tmp_path, dtype=torch.float32)
    texts = batch(one, [5, 1, 9])
    before, after = one.forward(texts), back.forward(texts)
    torch.testing.assert_close(after.logits, before.logits, rtol=0, atol=0)
    torch.testing.assert_close(after.attention, before.attention, rtol=0, atol=0)
    assert (back.family, back.labels) == (one.family, one.labels)
    assert back.fingerprint() == one.fingerprint()


def test_audits_run_in_float64_without_gradients(folder):
    network = load_model(folder).network
    assert all(one.dtype == torch.float64 for one in network.parameters())
    assert not any(one.requires_grad for one in network.parameters())
    assert not network.training


def test_words_labels_and_history_come_back(tmp_path):
    words = Vocabulary((*SPECIAL_TOKENS, "é", "😀", "\0", "\ud800", '"', *KNOWN[5:]))
    tokenizer = WordTokenizer(lower=False, punctuation="drop", digits="qqq")
    labels, history = ("größer", "[b]"), {"dev_scores": [0.5, 0.75], "recipe": {"seed": 3}}
    one = RecurrentSubject(small().network, words, tokenizer, labels, 7, history)
    save_model(one, tmp_path)
    back = load_model(tmp_path)
    assert (back.vocabulary, back.tokenizer, back.labels) == (words, tokenizer, labels)
    assert (back.max_words, back.history) == (7, history)
    assert back.encode(Example(0, "é " * 9, 1)).ids == (2, *[4] * 7, 3)


def test_three_files_and_none_of_them_pickle(folder):
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        [MODEL_WEIGHTS_FILE, MODEL_SETTINGS_FILE, VOCABULARY_FILE]
    )
    raw = (folder / MODEL_WEIGHTS_FILE).read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header.keys() - {"__metadata__"} == small().network.state_dict().keys()
    assert json.loads((folder / MODEL_SETTINGS_FILE).read_text())["schema"] == 1
    assert json.loads((folder / VOCABULARY_FILE).read_text())[:4] == list(SPECIAL_TOKENS)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"^Cannot write .*model\.safetensors"):
        save_model(small(), tmp_path / "file" / "model")


@pytest.mark.parametrize("name", [MODEL_SETTINGS_FILE, VOCABULARY_FILE])
def test_a_missing_json_file(folder, name):
    (folder / name).unlink()
    assert refused(folder) == (
        f"No heedful model at {folder}: {name} is missing. Train one with "
        f"`heedful train DATA --out {folder}`, or give the folder of one."
    )


def test_missing_weights(folder):
    (folder / MODEL_WEIGHTS_FILE).unlink()
    assert refused(folder) == (
        f"{folder / MODEL_WEIGHTS_FILE} is missing; a model folder holds "
        "model.safetensors, heedful.json, vocabulary.json."
    )


@pytest.mark.parametrize("kept", [0, 4, 200, -1])
def test_truncated_weights(folder, kept):
    raw = (folder / MODEL_WEIGHTS_FILE).read_bytes()
    (folder / MODEL_WEIGHTS_FILE).write_bytes(raw[:kept])
    assert refused(folder).startswith(
        f"{folder / MODEL_WEIGHTS_FILE} cannot be read as safetensors: "
    )


def change_weights(folder, change):
    weights = load_file(folder / MODEL_WEIGHTS_FILE)
    change(weights)
    save_file(weights, folder / MODEL_WEIGHTS_FILE)


def test_weights_of_another_shape(folder):
    change_weights(folder, lambda w: w.update({"decoder.bias": torch.zeros(3)}))
    assert refused(folder) == (
        f"{folder / MODEL_WEIGHTS_FILE}: decoder.bias is (3,) torch.float32; "
        "heedful.json needs (1,) of floating point."
    )


def test_weights_that_are_whole_numbers(folder):
    change_weights(folder, lambda w: w.update({"decoder.bias": torch.zeros(1, dtype=torch.int64)}))
    assert refused(folder) == (
        f"{folder / MODEL_WEIGHTS_FILE}: decoder.bias is (1,) torch.int64; "
        "heedful.json needs (1,) of floating point."
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(folder, value):
    change_weights(folder, lambda w: w["decoder.weight"][0, :1].fill_(value))
    assert (
        refused(folder)
        == f"{folder / MODEL_WEIGHTS_FILE}: decoder.weight holds values that are not finite."
    )


@pytest.mark.parametrize(
    "change",
    [lambda w: w.pop("decoder.bias"), lambda w: w.update({"decoder.bias2": torch.ones(1)})],
)
def test_weights_of_other_names(folder, change):
    change_weights(folder, change)
    assert refused(folder).startswith(
        f"{folder / MODEL_WEIGHTS_FILE} and heedful.json name different weights, such as "
        "'decoder.bias"
    )


@pytest.mark.parametrize("name", [MODEL_SETTINGS_FILE, VOCABULARY_FILE])
@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe"])
def test_broken_json(folder, name, data):
    (folder / name).write_bytes(data)
    assert refused(folder).startswith(f"{folder / name} is not readable JSON: ")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (MODEL_SETTINGS_FILE, "[]", "must hold a JSON dict, not list."),
        (VOCABULARY_FILE, "{}", "must hold a JSON list, not dict."),
    ],
)
def test_json_of_another_kind(folder, name, text, told):
    (folder / name).write_text(text)
    assert refused(folder) == f"{folder / name} {told}"


def change_settings(folder, **changes):
    raw = json.loads((folder / MODEL_SETTINGS_FILE).read_text())
    raw |= changes
    kept = {key: value for key, value in raw.items() if value is not ...}
    (folder / MODEL_SETTINGS_FILE).write_text(json.dumps(kept))


@pytest.mark.parametrize("schema", [3, "1", None, ...])
def test_another_schema(folder, schema):
    change_settings(folder, schema=schema)
    found = None if schema is ... else schema
    assert (
        refused(folder)
        == f"{folder / MODEL_SETTINGS_FILE} has schema {found!r}; this reads 1 and 2."
    )


@pytest.mark.parametrize("key", ["shape", "labels", "tokenizer", "max_words", "history"])
def test_a_missing_key(folder, key):
    change_settings(folder, **{key: ...})
    assert refused(folder) == f"{folder / MODEL_SETTINGS_FILE} is incomplete or damaged: {key!r}."


@pytest.mark.parametrize(
    "changes", [{"shape": []}, {"shape": {}}, {"labels": None}, {"tokenizer": {"stem": True}}]
)
def test_a_key_of_another_form(folder, as_in_use, changes):
    change_settings(folder, **changes)
    assert refused(folder).startswith(f"{folder / MODEL_SETTINGS_FILE} is incomplete or damaged: ")


@pytest.mark.parametrize(
    "changes", [{"labels": "ab"}, {"max_words": "x"}, {"max_words": -3}, {"history": []}]
)
def test_a_value_of_another_type(folder, as_in_use, changes):
    change_settings(folder, **changes)
    assert str(folder) in refused(folder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"labels": ["a", "b", "c"]}, "34 words and 2 classes; got 34 words and 3 labels."),
        ({"tokenizer": {"digits": "drop"}}, "digits must be keep or qqq, not 'drop'."),
    ],
)
def test_settings_that_do_not_fit_together(folder, as_in_use, changes, told):
    change_settings(folder, **changes)
    message = refused(folder)
    assert message.startswith(f"{folder} is not a usable model folder: ")
    assert message.endswith(told)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"encoder": "gru"}, "No encoder is named 'gru'."),
        ({"attention": "dott"}, "No attention is named 'dott'. Did you mean 'dot'?"),
        ({"classes": 1}, "A classifier needs two classes or more, not 1."),
        ({"hidden": 2}, "Sizes must be positive, and hidden at least 4"),
    ],
)
def test_a_shape_that_cannot_be_built(folder, part, told):
    shape = json.loads((folder / MODEL_SETTINGS_FILE).read_text())["shape"]
    change_settings(folder, shape=shape | part)
    assert refused(folder).startswith(f"{folder} is not a usable model folder: {told}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([*SPECIAL_TOKENS, "a"], "got 5 words and 2 labels."),
        ([], "A vocabulary starts with"),
        ([*SPECIAL_TOKENS, *["a"] * 30], "holds every word once"),
    ],
)
def test_a_vocabulary_that_does_not_fit(folder, words, told):
    (folder / VOCABULARY_FILE).write_text(json.dumps(words))
    message = refused(folder)
    assert message.startswith(f"{folder} is not a usable model folder: ")
    assert told in message


def test_a_save_cut_off_over_an_older_model_leaves_no_mixture(folder, monkeypatch):
    def full_disk(*_):
        raise RunError("Cannot write: No space left on device.")

    monkeypatch.setattr("heedful.models.recurrent.model_folder.write_atomic", full_disk)
    with pytest.raises(RunError, match="No space"):
        save_model(small("cnn"), folder)
    assert "heedful.json is missing" in refused(folder)


def test_of_a_long_text_no_more_words_are_read_than_the_model_takes():
    one = replace(small(), max_words=3)
    for words, cut in ((2, False), (3, False), (4, True), (500_000, True)):
        encoded = one.encode(Example(0, "good " * words, 0))
        assert (len(encoded.words), encoded.truncated) == (min(words, 3), cut)
    assert WordTokenizer()("It isn't bad", 2) == ("It", "is")


def test_models_with_a_query_have_a_schema_of_their_own_and_others_the_old_one(tmp_path):
    for one, schema in ((small(), 1), (question_subjects.subject(), 2)):
        save_model(one, tmp_path)
        settings = json.loads((tmp_path / MODEL_SETTINGS_FILE).read_text())
        assert settings["schema"] == schema
        assert ("query" in settings["shape"]) == (schema == 2)
        assert load_model(tmp_path).family == one.family


def test_the_fingerprint_covers_words_labels_and_the_weights_to_the_last_bit():
    one = small()
    shape = one.network.shape
    told = (
        f"Shape(vocabulary={shape.vocabulary}, classes=2, encoder='bilstm', attention='additive', "
        "embedding=6, hidden=8)"
    )
    digest = sha256(f"({told}, {one.tokenizer!r}, None)".encode())
    digest.update("\0".join((*one.labels, *one.vocabulary.words)).encode())
    for name, weight in sorted(one.network.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.numpy().tobytes())
    assert one.fingerprint() == digest.hexdigest()


def test_a_model_in_another_precision_has_another_fingerprint(folder):
    single, double = load_model(folder, dtype=torch.float32), load_model(folder)
    assert single.fingerprint() != double.fingerprint()
    assert double.fingerprint() == load_model(folder).fingerprint()


def test_weights_that_differ_by_less_than_float32_can_hold_differ_in_the_fingerprint(folder):
    one, other = load_model(folder), load_model(folder)
    other.network.embedding.weight[1, 0] += 1e-12
    assert one.fingerprint() != other.fingerprint()


def test_weights_in_float64_come_back_to_the_last_bit(tmp_path):
    one = subject()
    assert not torch.equal(
        one.network.embedding.weight.float().double(), one.network.embedding.weight
    )
    save_model(one, tmp_path)
    assert load_model(tmp_path).fingerprint() == one.fingerprint()
