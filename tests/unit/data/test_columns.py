"""Columns: the mapping of --fields, and the errors when a column is not there."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.errors import ConfigError, DataError
from heedful.data import read
from heedful.data.columns import KNOWN_FIELDS, parse_fields

columns = st.text(
    st.characters(exclude_characters=",", exclude_categories=["Cs"]), min_size=1
).filter(lambda name: name == name.strip())


@given(st.dictionaries(st.sampled_from(KNOWN_FIELDS), columns, min_size=1))
def test_a_mapping_reads_back_as_written(mapping):
    text = ",".join(f"{field}={column}" for field, column in mapping.items())
    if len(set(mapping.values())) < len(mapping):
        with pytest.raises(ConfigError, match="is mapped to two fields; map it to one"):
            parse_fields(text)
    else:
        assert parse_fields(text) == mapping


@given(st.text())
def test_any_other_text_is_a_mapping_or_a_config_error(text):
    with suppress(ConfigError):
        assert set(parse_fields(text)) <= set(KNOWN_FIELDS)


@pytest.mark.parametrize("text", ["", "text", "text=", "=review", "text=a,,label=b"])
def test_each_part_is_a_pair(text):
    with pytest.raises(ConfigError, match=r"each part must be FIELD=COLUMN. Write for example"):
        parse_fields(text)


def test_unknown_and_repeated_fields():
    with pytest.raises(ConfigError, match=r"No field is named 'txt'. Did you mean 'text'\? Known:"):
        parse_fields("txt=review")
    with pytest.raises(ConfigError, match="--fields names 'text' twice"):
        parse_fields("text=a,text=b")
    with pytest.raises(ConfigError, match=r"No field is named 'zzz'. Known: text, label"):
        read([{"text": "a", "label": 1}], fields={"zzz": "a"})


def test_columns_are_mapped():
    rows = [{"review": "a", "stars": 5, "label": "not this"}, {"review": "b", "stars": 1}]
    data = read(rows, fields="text=review,label=stars")
    assert data.labels == ("1", "5")
    assert [(e.text, e.label) for e in data] == [("a", 1), ("b", 0)]


def test_a_mapped_column_is_not_read_as_another_field():
    data = read([{"tokens": "a b", "label": 1}], fields="text=tokens")
    assert next(iter(data)).tokens is None


def test_missing_columns_are_named_with_an_example():
    with pytest.raises(DataError) as error:
        read([{"id": 3, "stars": 5, "review": "fine"}] * 200)
    assert str(error.value) == (
        "rows in memory has no column 'text' and 'label'. Its columns: id, stars, review. "
        "Name the columns, for example --fields text=review,label=stars."
    )
    with pytest.raises(DataError, match=r"no column 'label'.*--fields text=text,label=id\."):
        read([{"text": "fine", "id": 1}])
    with pytest.raises(DataError, match=r"no column 'stars'. Its columns: text, label\."):
        read([{"text": "fine", "label": 1}], fields={"label": "stars"})
    with pytest.raises(DataError, match=r"no column for 'text'. Its.* --fields text=a,label=text"):
        read([{"a": "fine", "text": 1}], fields={"label": "text"})


def test_a_premise_and_a_hypothesis_are_the_two_texts_of_a_pair():
    rows = [{"premise": "a dog", "hypothesis": "an animal", "label": 0}]
    (one,) = read(rows)
    assert (one.text, one.pair) == ("a dog", "an animal")
    (mapped,) = read([{"p": "a", "h": "b", "label": 0}], fields={"premise": "p", "hypothesis": "h"})
    assert (mapped.text, mapped.pair) == ("a", "b")
    (alone,) = read([{"text": "a", **rows[0]}])
    assert (alone.text, alone.pair) == ("a", None)
    with pytest.raises(DataError, match="no column 'text'"):
        read([{"premise": "a dog", "label": 0}])


def test_texts_without_labels_and_chats():
    (one,) = read([{"text": "a fine film"}], labelled=False)
    assert (one.text, one.label) == ("a fine film", -1)
    turns = [{"role": "user", "content": "Is it fine?"}]
    (chat,) = read([{"messages": turns}], labelled=False)
    assert json.loads(chat.text) == turns
    with pytest.raises(DataError, match="no column 'label'"):
        read([{"text": "a fine film"}])


def test_a_paragraph_and_a_question_are_the_two_texts_of_a_pair():
    rows = [{"paragraph": "Mary left.", "question": "Who?", "label": "Mary"}]
    (one,) = read(rows)
    assert (one.text, one.pair, one.candidates) == ("Mary left.", "Who?", None)
    (mapped,) = read([{"p": "a", "q": "b", "label": 0}], fields={"paragraph": "p", "question": "q"})
    assert (mapped.text, mapped.pair) == ("a", "b")
    (alone,) = read([{"text": "a", **rows[0]}])
    assert (alone.text, alone.pair) == ("a", None)
    with pytest.raises(DataError, match="no column 'text'"):
        read([{"paragraph": "a dog", "label": 0}])


def test_of_a_list_of_sentences_the_rationale_counts_those():
    row = {"paragraph": ["Mary left .", "John sat down .", "So"], "question": "Who?", "label": 0}
    (one,) = read([{**row, "rationale": [1]}])
    assert one.text == "Mary left . John sat down . So"
    assert one.rationale == (3, 4, 5, 6)
    (span,) = read([{**row, "rationale": [[1, 3]]}])
    assert span.rationale == (3, 4, 5, 6, 7)
    (text,) = read([{**row, "paragraph": one.text, "rationale": [1]}])
    assert text.rationale == (1,)
    tokens = one.text.split()
    (given,) = read([{**row, "tokens": tokens, "rationale": [1]}])
    assert given.rationale == (1,)


def test_candidates_are_the_classes_that_may_be_right():
    rows = [
        {"paragraph": "a", "question": "b", "label": "x", "candidates": ["x", "z", "elsewhere"]},
        {"paragraph": "a", "question": "b", "label": "z", "candidates": '["z"]'},
        {"paragraph": "a", "question": "b", "label": "y"},
    ]
    data = read(rows)
    assert data.labels == ("x", "y", "z")
    assert [one.candidates for one in data] == [(0, 2), (2,), None]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"candidates": []}, "bad candidates"),
        ({"candidates": ["x", None]}, "bad candidates"),
        ({"candidates": "x"}, "bad candidates"),
        ({"candidates": ["y"]}, "label not among candidates"),
        ({"paragraph": []}, "no text"),
        ({"paragraph": ["a", ""]}, "no text"),
        ({"paragraph": ["a", 3]}, "no text"),
        ({"paragraph": 3}, "no text"),
        ({"question": " "}, "no text"),
        ({"question": None}, "no text"),
        ({"paragraph": ["a b", "c"], "rationale": [2]}, "bad rationale"),
    ],
)
def test_bad_rows_with_questions_are_told(cells, reason):
    good = {"paragraph": "a", "question": "b", "label": "x"}
    data = read([good] * 200 + [{**good, **cells}])
    assert len(data) == 200
    assert data.bad.counts == {reason: 1}
