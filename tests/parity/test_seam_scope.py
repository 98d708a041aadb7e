"""Where a text's answer is read: the position under audit, padding, answers and prefixes."""

import pytest
import torch

from heedful.core.errors import ConfigError
from heedful.models.attention_access.scope import Scope
from heedful.models.transformer.from_pretrained import from_model
from support import tiny_models, tiny_tokenizers
from support.attention_families import batch, encoded, made, subject, untouched
from support.tiny_models import H


@pytest.mark.parametrize(
    ("name", "config", "where"),
    [
        ("bert", {}, "first"),
        ("gpt2-classifier", {}, "last"),
        ("gpt2", {}, "last"),
        ("xlnet", {}, "last"),
        ("modernbert", {"classifier_pooling": "mean"}, "mean"),
        ("modernbert", {"classifier_pooling": "cls"}, "first"),
        ("t5", {}, "last"),
    ],
)
def test_the_position_is_found_and_its_rows_are_read(name, config, where):
    one = made(tiny_models.build(name, **config), name)
    rows = batch(one)
    assert one.scope.position == where
    assert one.pad_left == (name == "xlnet")
    with torch.no_grad():
        forward = one.forward(rows)
        last = (one.run(rows)[1]).calls[-1].weights
    for b in range(len(rows)):
        here = rows.present[b].nonzero().flatten().tolist()
        queries = {"first": here[:1], "last": here[-1:], "mean": here}[where]
        if name == "t5":
            queries = [2]
        words = sum(last[b, head, i] for head in range(H) for i in queries) * rows.mask[b]
        torch.testing.assert_close(forward.attention[b], words / words.sum())


@pytest.mark.parametrize("where", ["auto", "last", "first", "mean"])
@pytest.mark.parametrize("pad", [tiny_tokenizers.PAD, None])
def test_a_text_may_hold_the_token_that_is_padding_elsewhere(where, pad):
    model = tiny_models.build("gpt2-classifier", pad_token_id=pad)
    one = made(model, "gpt2-classifier", scope=Scope(position=where))
    texts = ("so [PAD] fine", "a film [PAD]", "[PAD]", "a film that is so fine")
    rows = batch(one, texts)
    assert rows.present.sum(-1).tolist() == [3, 3, 1, 6]
    with torch.no_grad():
        forward = one.forward(rows)
        for b, text in enumerate(encoded(one, texts)):
            states = model.transformer(torch.tensor([text.ids])).last_hidden_state
            torch.testing.assert_close(forward.logits[b], model.score(states[0, -1]))
        with pytest.raises(ZeroDivisionError):
            one.run(rows, lambda _: 1 / 0)
    assert model.config.pad_token_id == pad


def test_texts_are_padded_on_the_left_where_the_last_place_is_pooled():
    one = subject("xlnet")
    rows = batch(one)
    assert rows.present[:, -1].all()
    assert not rows.present[1, 0]
    assert rows.ids[1, -1] == tiny_tokenizers.CLS


def test_a_language_models_answers_and_an_encoder_decoders_prefix():
    model, tokenizer = tiny_models.model("gpt2"), tiny_models.tokenizer("gpt2")
    one = from_model(model, tokenizer, answers=("good", "bad"))
    rows = batch(one)
    chosen = tokenizer.convert_tokens_to_ids(["good", "bad"])
    with torch.no_grad():
        wanted = untouched(model, one, rows)[:, chosen]
        torch.testing.assert_close(one.forward(rows).logits, wanted)
    assert one.labels == ("good", "bad")
    written = tiny_models.tokenizer("bart").convert_tokens_to_ids(["so", "fine"])
    assert subject("bart").prefix == (tiny_tokenizers.SEP, *written)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            ("good", "bad film"),
            r"The answer 'bad film' has 2 tokens \('bad' \+ 'film'\), and only the next token is "
            r"predicted\. Choose answers of one token each, with or without a space in front",
        ),
        (("good", " good"), r"Two of the answers \('good', ' good'\) are the same token"),
        (("good", "wonderful"), "The answer 'wonderful' is unknown to the tokenizer"),
        (("good", ""), "The answer '' has no token"),
    ],
)
def test_an_answer_that_is_not_one_token_of_its_own_is_refused(answers, words):
    with pytest.raises(ConfigError, match=words):
        from_model(tiny_models.model("gpt2"), tiny_models.tokenizer("gpt2"), answers=answers)


def test_a_space_in_front_of_an_answer_is_part_of_its_token_and_not_of_its_name():
    tokenizer = tiny_tokenizers.byte_level(trim=True)
    model = tiny_models.build("gpt2", vocab_size=len(tokenizer))
    with pytest.raises(ConfigError, match=r"3 tokens \('f' .* each, such as ' film', which is one"):
        from_model(model, tokenizer, answers=("film", " g"))
    one = from_model(model, tokenizer, answers=(" film", " g"))
    assert one.answers == tuple(tokenizer.convert_tokens_to_ids(["Ġfilm", "Ġg"]))
    assert one.labels == ("film", "g")
    assert from_model(model, tokenizer, answers=("g", " g")).labels == ("g", " g")
