"""Which word a piece belongs to, against a table of who owns each character."""

import json

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from heedful.core.batch import collate
from heedful.core.errors import DataError, ModelError
from heedful.core.values import Example
from heedful.models.transformer.tokenization import SubwordTokenizer
from support import tiny_tokenizers

LONG = 1000


def sentencepiece():
    """Characters with a sign for the space before a word, put in by a normalizer, as Llama's."""
    known = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "▁", "▁f", *"abcdefghijklmnopqrstuvwxyz'.,"]
    made = Tokenizer(
        models.BPE({w: i for i, w in enumerate(known)}, [("▁", "f")], unk_token="[UNK]")
    )
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return tiny_tokenizers.fast(made, "none")


def lowered():
    """A tokenizer that rewrites the text before it splits it: ﬁ → fi, É → e."""
    made = tiny_tokenizers.wordpiece().backend_tokenizer
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    return tiny_tokenizers.fast(made, "both")


def metaspace():
    """The same sign, put in when the text is split, as T5's tokenizer does."""
    made = sentencepiece().backend_tokenizer
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tiny_tokenizers.fast(made, "both")


MAKERS = {
    "words": tiny_tokenizers.words,
    "wordpiece": tiny_tokenizers.wordpiece,
    "byte level, trimmed": lambda: tiny_tokenizers.byte_level(trim=True),
    "byte level": lambda: tiny_tokenizers.byte_level(trim=False),
    "sentencepiece": sentencepiece,
    "metaspace": metaspace,
    "lowered": lowered,
}
TOKENIZERS = {name: make() for name, make in MAKERS.items()}
every = pytest.mark.parametrize("kind", TOKENIZERS)


def encode(kind, text, longest=LONG, **more):
    return SubwordTokenizer(TOKENIZERS[kind], longest).encode(Example(3, text, 1, **more))


def owners(text, words):
    """For each character the number of its word, or −1; words follow each other in the text."""
    table, at = [-1] * len(text), 0
    for number, word in enumerate(words):
        at = text.index(word, at)
        table[at : at + len(word)] = [number] * len(word)
        at += len(word)
    return table


def by_table(kind, text, words):
    """The first owner of any character of a piece; −1 for special tokens and spaces."""
    table = owners(text, words)
    told = TOKENIZERS[kind](text, return_offsets_mapping=True, return_special_tokens_mask=True)
    expected = []
    for sequence, (start, end) in zip(told.sequence_ids(), told["offset_mapping"], strict=True):
        found = [] if sequence is None else [one for one in table[start:end] if one >= 0]
        expected.append(found[0] if found else -1)
    return tuple(expected)


def spelled(one):
    """What the pieces of each word look like."""
    return [
        (
            word,
            [piece for piece, owner in zip(one.pieces, one.word, strict=True) if owner == number],
        )
        for number, word in enumerate(one.words)
    ]


def test_a_split_word_owns_all_its_pieces():
    one = encode("wordpiece", "unbelievable film")
    assert one.words == ("unbelievable", "film")
    assert one.pieces == ("[CLS]", "un", "##believ", "##able", "film", "[SEP]")
    assert one.word == (-1, 0, 0, 0, 1, -1)
    assert one.ids == tuple(TOKENIZERS["wordpiece"]("unbelievable film")["input_ids"])
    assert (one.index, one.label, one.truncated, one.types, one.explained_tokens) == (
        3,
        1,
        False,
        None,
        4,
    )


def test_punctuation_is_words_of_its_own():
    one = encode("wordpiece", "good, great (film)!")
    assert one.words == ("good", ",", "great", "(", "film", ")", "!")
    assert one.word == (-1, *range(7), -1)


def test_a_contraction_is_cut_where_its_words_meet_not_where_the_tokenizer_cuts():
    one = encode("wordpiece", "film isn't good")
    assert one.words == ("film", "is", "n't", "good")
    assert spelled(one)[1:3] == [("is", ["is"]), ("n't", ["##n", "'", "t"])]


def test_a_piece_over_two_words_belongs_to_the_first():
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "isn't": 1, "good!": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    one = SubwordTokenizer(tokenizer, LONG).encode(Example(0, "isn't good!", 0))
    assert one.words == ("is", "n't", "good", "!")
    assert one.word == (0, 2)


@pytest.mark.parametrize("kind", ["byte level", "byte level, trimmed"])
def test_a_leading_space_belongs_to_the_word_it_leads(kind):
    one = encode(kind, "good film")
    assert one.words == ("good", "film")
    assert spelled(one) == [("good", ["g", "oo", "d"]), ("film", ["Ġfilm"])]


@pytest.mark.parametrize("kind", ["byte level", "sentencepiece", "metaspace"])
def test_space_alone_belongs_to_no_word(kind):
    one = encode(kind, "  good   film  ")
    assert one.words == ("good", "film")
    for word, pieces in spelled(one):
        assert "".join(pieces).strip("Ġ▁") == word
    spaces = [owner for owner, piece in zip(one.word, one.pieces, strict=True) if piece in "Ġ▁"]
    assert spaces.count(-1) >= 3
    assert one.word == by_table(kind, "  good   film  ", one.words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("good 👍🏽 film 🎬!", ("good", "👍", "🏽", "film", "🎬", "!")),
        ("סרט טוב מאוד", ("סרט", "טוב", "מאוד")),
        ("فيلم رائع،", ("فيلم", "رائع", "،")),
        ("cafe\u0301 file\u0301e", ("cafe\u0301", "file\u0301e")),
        ("फ़िल्म अच्छी है", ("फ़िल्म", "अच्छी", "है")),
        ("映画 很好。", ("映画", "很好", "。")),
        ("ﬁlm ½ É", ("ﬁlm", "½", "É")),
    ],
)
@every
def test_any_script(kind, text, words):
    one = encode(kind, text)
    assert one.words == words
    assert one.word == by_table(kind, text, words)
    if kind.startswith("byte"):
        assert set(one.word) - {-1} == set(range(len(words)))  # no word is without a piece


def test_every_byte_of_a_sign_belongs_to_its_word():
    one = encode("byte level", "a 👍")
    assert one.words == ("a", "👍")
    assert [number for _, number in zip(one.ids, one.word, strict=True) if number == 1] == [1] * 4


def test_a_rewritten_text_is_still_cut_as_it_was_written():
    one = encode("lowered", "GOOD ﬁlm, Éé was")
    assert one.words == ("GOOD", "ﬁlm", ",", "Éé", "was")
    assert spelled(one) == [
        ("GOOD", ["good"]),
        ("ﬁlm", ["film"]),
        (",", [","]),
        ("Éé", ["e", "##e"]),
        ("was", ["was"]),
    ]


@every
@given(text=st.text(alphabet="abfilm ISn't’.,!  \n\té\u0301👍שĠ▁½ﬁ中", max_size=30))
def test_by_the_table(kind, text):
    one = encode(kind, text)
    assert one.word == by_table(kind, text, one.words)
    assert len(one.ids) == len(one.word) == len(one.pieces)
    assert "".join(one.words).split() == "".join(text.split()).split()  # no sign is lost
    owned = [number for number in one.word if number >= 0]
    assert owned == sorted(owned)


def test_given_tokens_are_the_words():
    tokens = ("good", "film", "isn't", "don't-know", "...")
    one = encode("wordpiece", "not read at all", tokens=tokens)
    assert one.words == tokens
    assert one.ids == tuple(TOKENIZERS["wordpiece"](" ".join(tokens))["input_ids"])
    assert one.word == by_table("wordpiece", " ".join(tokens), tokens)
    assert set(one.word) == {-1, 0, 1, 2, 3, 4}


@pytest.mark.parametrize("kind", ["byte level", "wordpiece"])
def test_given_tokens_may_be_empty_or_hold_spaces(kind):
    one = encode(kind, "", tokens=("good", "", "the film", "was"))
    assert one.words == ("good", "", "the film", "was")
    pieces = dict(spelled(one))
    assert pieces[""] == []
    assert "".join(pieces["the film"]).replace("Ġ", "").replace("##", "") == "thefilm"
    assert pieces["was"]


def test_a_pair_is_one_row_of_words_with_a_type_for_each_text():
    pieces = SubwordTokenizer(tiny_tokenizers.wordpiece(types=True), LONG)
    one = pieces.encode(Example(0, "the film isn't", 0, pair="unbelievable film"))
    assert one.words == ("the", "film", "is", "n't", "unbelievable", "film")
    assert " ".join(one.pieces) == ("[CLS] the film is ##n ' t [SEP] un ##believ ##able film [SEP]")
    assert one.word == (-1, 0, 1, 2, 3, 3, 3, -1, 4, 4, 4, 5, -1)
    assert one.types == (0,) * 8 + (1,) * 5
    assert not one.truncated


def test_types_are_left_out_where_the_model_does_not_ask_for_them():
    assert encode("wordpiece", "good", pair="film").types is None
    typed = SubwordTokenizer(tiny_tokenizers.words(types=True), LONG)
    assert typed.encode(Example(0, "good film", 0)).types == (0, 0, 0, 0)
    rows = collate([typed.encode(Example(0, text, 0, pair="film")) for text in ("good", "a bad")])
    assert rows.types.tolist() == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1]]
    assert rows.mask.tolist() == [[0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 0]]


def test_what_is_cut_off_is_counted():
    text = "unbelievable film was good"
    whole = encode("wordpiece", text)
    assert len(whole.ids) == 8
    assert not encode("wordpiece", text, longest=8).truncated
    cut = encode("wordpiece", text, longest=5)
    assert cut.truncated
    assert cut.pieces == ("[CLS]", "un", "##believ", "##able", "[SEP]")
    assert cut.word == (-1, 0, 0, 0, -1)
    assert cut.words == whole.words  # the text is shown whole


def test_a_pair_is_cut_from_its_longer_text_and_keeps_its_words():
    cut = encode("wordpiece", "the film was good " * 3, longest=9, pair="great film")
    assert cut.truncated
    assert " ".join(cut.pieces) == "[CLS] the film was good [SEP] great film [SEP]"
    assert cut.word == (-1, 0, 1, 2, 3, -1, 12, 13, -1)
    assert [cut.words[number] for number in cut.word if number > 3] == ["great", "film"]


@every
@pytest.mark.parametrize("text", ["", " ", " \n\t  "])
def test_a_text_of_space_has_no_words(kind, text):
    one = encode(kind, text)
    assert one.words == ()
    assert one.explained_tokens == 0
    assert set(one.word) <= {-1}


@every
@pytest.mark.parametrize("text", ["!!!", "\u200b", "...?", "’", "[SEP]", "[PAD] [CLS]"])
def test_a_text_of_signs_alone(kind, text):
    one = encode(kind, text)
    assert one.word == by_table(kind, text, one.words)
    if kind.startswith(("words", "byte")):
        assert one.explained_tokens > 0


def test_a_slow_tokenizer_is_refused():
    with pytest.raises(ModelError, match=r"ByT5Tokenizer gives no offsets.*fast tokenizer"):
        SubwordTokenizer(transformers.ByT5Tokenizer(), LONG)


def test_an_unknown_token_that_is_unknown_is_refused():
    tokenizer = tiny_tokenizers.words()
    tokenizer.unk_token = "nope"
    with pytest.raises(ModelError, match="special tokens cannot be found in the vocabulary"):
        SubwordTokenizer(tokenizer, LONG)


@pytest.mark.parametrize(
    "messages", ["good film", '{"role": "user"', '{"role": "user", "content": "good"}']
)
def test_a_chat_that_is_no_list_of_messages_is_refused(messages):
    pieces = SubwordTokenizer(tiny_tokenizers.words(), LONG)
    pieces.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    assert pieces.template('[{"role": "user", "content": "good"}]') == "good "
    with pytest.raises(DataError, match="must be a JSON list of role and content"):
        pieces.template(messages)


def test_of_a_chat_only_what_was_said_is_explained_and_no_token_is_added():
    pieces = SubwordTokenizer(tiny_tokenizers.words(), LONG)
    pieces.tokenizer.chat_template = (
        "[CLS]{% for m in messages %} very {{ m['content'] }} [SEP]{% endfor %} it was"
    )
    turns = [{"role": "user", "content": "a fine film"}, {"role": "assistant", "content": "so bad"}]
    found = pieces.encode_chat(Example(0, json.dumps(turns), 0))
    assert found.words == ("a", "fine", "film", "so", "bad")
    named = list(zip(found.pieces, found.word, strict=True))
    assert [piece for piece, word in named if word < 0] == [
        *("[CLS]", "very", "[SEP]", "very", "[SEP]", "it", "was")
    ]
    assert [found.words[word] for _, word in named if word >= 0] == list(found.words)
    pieces.tokenizer.chat_template = "{{ messages[0]['content'] | upper }}"
    with pytest.raises(DataError, match="changes the messages"):
        pieces.encode_chat(Example(0, json.dumps(turns), 0))
