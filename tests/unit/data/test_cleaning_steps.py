"""Words after each cleaning, beside plain regular expressions over the whole text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.errors import UnknownName
from heedful.core.word_split import split_words, word_patterns
from heedful.data.cleaning.presets import CLEANINGS, get_cleaning
from heedful.data.cleaning.steps import Cleaning, count_words
from heedful.data.sources.row_schema import ValidRow

SETS = ["sst", "imdb", "20news", "agnews", "adr", "mimic", "mimic-diabetes", "mimic-anemia"]
SETS += ["snli", "cnn", "babi"]

WRITTEN = {
    "sst": "a it s fun 8 1 2 stars don t miss",
    "imdb": "“a it's fun 8 1 2 stars … don't miss",
    "20news": "a it ' s fun qqq qqq qqq stars do n ' t miss !",
    "agnews": "“ a it 's fun qqq qqq / qqq stars … do n't miss ! ! !",
    "mimic": "“ a it 's fun qqq qqq / qqq stars … do n't miss !",
    "cnn": "“A It's fun 8 1/2 stars … Don't miss!!!",
    "babi": "“ A It 's fun 8 1 / 2 stars … Do n't miss ! ! !",
}
TEXT = "“A It's fun 8 1/2 stars … Don't miss!!!"


def jain(name):
    return get_cleaning(f"jain-wallace-2019/{name}")


@pytest.mark.parametrize(("name", "words"), WRITTEN.items())
def test_one_text_by_each_cleaning(name, words):
    assert " ".join(jain(name).clean_text(TEXT)) == words


def test_every_set_has_its_cleaning_and_who_followed_has_the_same():
    assert [name for name in CLEANINGS if name.startswith("jain")] == [
        f"jain-wallace-2019/{one}" for one in SETS
    ]
    for name, one in CLEANINGS.items():
        own, _, data_set = name.partition("/")
        assert one.name == name
        assert str(one) == str(jain(data_set)) != ""
        assert own in ("jain-wallace-2019", "wiegreffe-pinter-2019")


def test_unknown_cleanings_suggest_what_is_near(run):
    with pytest.raises(UnknownName, match=r"'jain-wallace-2019/stt'. Did you mean 'jain-wallace"):
        get_cleaning("jain-wallace-2019/stt")
    code, out, _ = run("list", "cleanings")
    assert (code, len(out.splitlines())) == (0, len(CLEANINGS))
    assert re.search(r"2019/sst +words only, lower case, > 5, < the longest, min. 1 text", out)
    assert "20% of all to test and 20% of the rest to dev, > 6, < 500" in out


SIGNS = st.text("ab ä1'!.-*[]\n\u0301_", max_size=40)


@given(st.text() | SIGNS)
def test_words_taken_apart_at_white_space_are_those_of_the_pattern(text):
    assert split_words(text) == word_patterns()[1].findall(text)


@given(SIGNS)
def test_letters_are_what_is_left_when_all_else_is_space(text):
    assert jain("sst").clean_text(text) == re.sub(r"\W", " ", text).lower().split()


@given(SIGNS)
def test_newsgroups_keep_the_last_sign_of_every_run(text):
    parted = " ".join(word_patterns()[1].findall(text)).lower()
    told = " ".join("qqq" if re.search(r"\d", word) else word for word in parted.split(" "))
    alike = re.sub(r"\W+", lambda run: f" {run[0][-1]} ", told).split()
    assert jain("20news").clean_text(text) == alike


@given(st.text("a[]* 1", max_size=30))
def test_notes_hide_what_was_hidden_and_say_signs_once(text):
    told = " ".join(word_patterns()[1].findall(text))
    told = re.sub(r"\[ \* \* (?:.*? )??\* \* \]", "<DE>", told)
    told = re.sub(r"([^\sa-zA-Z0-9<>])(?: \1)+(?= |$)", r"\1", told)
    want = ["qqq" if "1" in word else word for word in told.split()]
    assert jain("mimic").clean_text(text) == want


def test_many_brackets_that_never_close_take_no_longer():
    text = "[**" * 50_000
    assert len(jain("mimic").clean_text(text)) == 100_000


@pytest.mark.parametrize("digit", ["7", "x7", "٣", "²"])
def test_words_with_any_digit_are_one(digit):
    assert jain("snli").clean_text(f"a {digit}") == ["a", "qqq"]


def test_the_second_text_is_cleaned_and_must_have_words():
    row = ValidRow("A dog, 2 cats", "x", None, None, pair="No. 7?")
    clean = jain("snli").clean_row(row)
    assert (clean.text, clean.pair) == ("a dog , qqq cats", "no . qqq ?")
    assert clean.tokens == ("a", "dog", ",", "qqq", "cats")
    assert count_words(clean) == 5
    none = jain("sst").clean_row(ValidRow("a dog", "x", None, None, pair="?!"))
    assert (none.pair, count_words(none)) == ("", 0)


def test_stories_lose_their_last_sign_and_nothing_else():
    row = ValidRow("Mary left. John came.", "x", None, None, pair="Who left?")
    clean = jain("babi").clean_row(row)
    assert (clean.text, clean.pair) == ("Mary left . John came", "Who left")


def test_marks_go_along_with_their_tokens():
    row = ValidRow("It isn't  so-so , really!", "x", None, (1, 4), None, (0.0, 1.0, 2.0, 3.0, 4.0))
    clean = jain("sst").clean_row(row)
    assert clean.tokens == ("it", "isn", "t", "so", "so", "really")
    assert clean.rationale == (1, 2, 5)
    assert clean.word_scores == (0.0, 1.0, 1.0, 2.0, 2.0, 4.0)
    given = ValidRow("ignored", "x", ("New York", "!", "won 3"), (0,))
    clean = jain("20news").clean_row(given)
    assert (clean.tokens, clean.rationale) == (("new", "york", "won", "qqq"), (0, 1))


@given(SIGNS, st.sampled_from(sorted(CLEANINGS)))
def test_marks_change_no_words(text, name):
    plain, tokens = ValidRow(text, "x", None, None), tuple(range(len(text.split())))
    marked = ValidRow(text, "x", None, tokens)
    one, other = (get_cleaning(name).clean_row(row) for row in (plain, marked))
    assert one.tokens == other.tokens
    assert other.rationale == tuple(range(len(other.tokens)))


def test_a_cleaning_is_told_in_one_line():
    one = Cleaning("mine", "space", lower=False, longer_than=2, shorter_than=9, fewer_than=7)
    assert str(one) == "words at white space, < 7 words, > 2, < 9, min. 1 text a word"
