"""Words and their numbers: tricky texts, and signs that are never mistaken for padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.batch import collate
from heedful.core.errors import ConfigError, DataError
from heedful.core.values import Example
from heedful.models.recurrent import vocabulary
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from support.subjects import subject

SPLIT, DROP = WordTokenizer(), WordTokenizer(punctuation="drop")


@pytest.mark.parametrize(
    ("text", "split", "drop"),
    [
        ("can't won't", "ca n't wo n't", "can t won t"),
        ("don’t, they’re", "do n’t , they ’re", "don t they re"),
        ("I'd've", "I 'd 've", "I d ve"),
        ("Bond's films'", "Bond 's films '", "Bond s films"),
        ("n't", "n't", "n t"),
        ("a well-made e-mail", "a well - made e - mail", "a well made e mail"),
        ("$3.50!!", "$ 3 . 50 ! !", "3 50"),
        ("snake_case", "snake_case", "snake_case"),
        ("naïve café", "naïve café", "naïve café"),
        ("中文字 и русский", "中文字 и русский", "中文字 и русский"),
        ("שלום עולם!", "שלום עולם !", "שלום עולם"),
        ("مرحبا، بك", "مرحبا ، بك", "مرحبا بك"),
        ("fine 😀👍", "fine 😀 👍", "fine"),
        ("a\0b", "a \0 b", "a b"),
        ("nbsp\u00a0em\u2003line\u2028end", "nbsp em line end", "nbsp em line end"),
        ("—dash…", "— dash …", "dash"),
    ],
)
def test_tricky_texts(text, split, drop):
    assert SPLIT(text) == tuple(split.split(" "))
    assert DROP(text) == tuple(drop.split(" "))


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u00a0"])
def test_a_text_of_spaces_has_no_words(text):
    assert SPLIT(text) == DROP(text) == ()


def test_dropping_punctuation_may_leave_nothing():
    assert DROP("?! … 😀 \0") == ()


@given(st.text())
def test_splitting_loses_nothing_but_space(text):
    assert "".join(SPLIT(text)) == "".join(text.split())


@given(st.text())
def test_dropping_keeps_word_signs_only_and_in_order(text):
    assert "".join(DROP(text)) == "".join(c for c in text if c.isalnum() or c == "_")


def test_a_quoted_word_is_the_word():
    assert SPLIT("a 'fine' film") == ("a", "'", "fine", "'", "film")


@pytest.mark.parametrize("text", ["cafe\u0301", "हिन्दी"])
def test_a_mark_belongs_to_its_letter(text):
    assert SPLIT(text) == (text,)


@pytest.mark.parametrize(
    ("word", "keep", "qqq"),
    [
        ("Film", "film", "film"),
        ("B2B", "b2b", "qqq"),
        ("1984", "1984", "qqq"),
        ("٣", "٣", "qqq"),
        ("VII", "vii", "vii"),
        ("!", "!", "!"),
    ],
)
def test_the_form_the_vocabulary_knows(word, keep, qqq):
    assert WordTokenizer().normalise(word) == keep
    assert WordTokenizer(digits="qqq").normalise(word) == qqq
    assert WordTokenizer(lower=False).normalise(word) == word


def test_a_text_is_split_as_written_and_normal_only_when_numbered():
    assert WordTokenizer(digits="qqq")("In 1984") == ("In", "1984")


def test_settings_that_do_not_exist_are_refused(as_in_use):
    with pytest.raises(ConfigError) as caught:
        WordTokenizer(punctuation="keep")
    assert str(caught.value) == "punctuation must be split or drop, not 'keep'."
    with pytest.raises(ConfigError) as caught:
        WordTokenizer(digits="drop")
    assert str(caught.value) == "digits must be keep or qqq, not 'drop'."


TEXTS = [["good", "film", "good"], ["good", "bad"], ["film", "a"], ["a", "bad"], ["good"]]


def test_words_come_by_the_number_of_texts_then_by_name():
    assert Vocabulary.from_texts(TEXTS).words == (*SPECIAL_TOKENS, "good", "a", "bad", "film")


@pytest.mark.parametrize(("least", "kept"), [(1, 4), (2, 4), (3, 1), (4, 0)])
def test_rare_words_are_left_out(least, kept):
    assert len(Vocabulary.from_texts(TEXTS, min_df=least)) == len(SPECIAL_TOKENS) + kept


def test_a_word_twice_in_a_text_counts_once():
    assert Vocabulary.from_texts([["so", "so"], ["fine"]], min_df=2).words == SPECIAL_TOKENS


@given(st.permutations(TEXTS))
def test_the_order_of_the_texts_does_not_matter(texts):
    assert Vocabulary.from_texts(texts) == Vocabulary.from_texts(TEXTS)


def test_known_words_have_their_place_and_others_are_unknown():
    vocabulary = Vocabulary.from_texts(TEXTS)
    assert [vocabulary.number(word) for word in ("good", "film", "Good", "")] == [4, 7, 1, 1]


@pytest.mark.parametrize("sign", SPECIAL_TOKENS)
def test_a_sign_typed_in_a_text_is_unknown(sign):
    assert Vocabulary.from_texts([[sign, "film"]]).words == (*SPECIAL_TOKENS, "film")
    assert Vocabulary.from_texts([["film"]]).number(sign) == 1


@pytest.mark.parametrize("sign", SPECIAL_TOKENS)
def test_a_sign_among_the_tokens_of_a_row_is_never_padding(sign):
    model = subject()
    model = type(model)(model.network, model.vocabulary, WordTokenizer(lower=False), model.labels)
    encoded = model.encode(Example(0, "", 0, tokens=(sign, "w1")))
    assert encoded.ids == (2, 1, model.vocabulary.number("w1"), 3)
    assert collate([encoded]).mask.tolist() == [[False, True, True, False]]


def test_a_vocabulary_starts_with_the_signs():
    with pytest.raises(ConfigError) as caught:
        Vocabulary(("film", "<PAD>"))
    assert str(caught.value) == (
        "A vocabulary starts with ('<PAD>', '<UNK>', '<SOS>', '<EOS>'), not ('film', '<PAD>')."
    )


def test_a_vocabulary_holds_a_word_once():
    with pytest.raises(ConfigError) as caught:
        Vocabulary((*SPECIAL_TOKENS, "film", "film"))
    assert str(caught.value) == "A vocabulary holds every word once; this one repeats some."


def test_a_vocabulary_is_bounded(monkeypatch):
    monkeypatch.setattr(vocabulary, "MOST_WORDS", 3)
    assert len(Vocabulary.from_texts(TEXTS, min_df=3)) == len(SPECIAL_TOKENS) + 1
    with pytest.raises(DataError, match="have 4 different words"):
        Vocabulary.from_texts(TEXTS)
