"""The data set: counts, labels, limits, and the errors that refuse what is not fit for use."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.errors import ConfigError, DataError
from heedful.data import read
from heedful.data.columns import map_columns
from heedful.data.dataset import pick_split, rows_sha256
from heedful.data.sources.row_schema import BadLine, read_row
from heedful.data.sources.validation import BadRows

GOOD = [{"text": f"text {i}", "label": i % 2} for i in range(300)]


def build(rows, **settings):
    return read(list(rows), **settings)


def test_a_data_set_reads_the_same_again_and_again():
    data = build(GOOD)
    assert [e.index for e in data] == list(range(300)) == [e.index for e in data]
    assert len(data) == 300
    assert data.labels == ("0", "1")
    assert [e.label for e in data][:4] == [0, 1, 0, 1]
    assert not data.bad.total
    assert str(data.bad) == "no bad rows"


def test_index_counts_good_rows_only_and_bad_rows_keep_their_numbers():
    data = build([{"text": " ", "label": 1}, *GOOD])
    assert data.bad == BadRows({"no text": 1}, {"no text": (1,)})
    assert str(data.bad) == "1 bad row: 1 no text (line 1)"
    assert next(iter(data)).index == 0
    assert len(data) == sum(1 for _ in data) == 300


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"label": 1}, "no text"),
        ({"text": None, "label": 1}, "no text"),
        ({"text": 7, "label": 1}, "no text"),
        ({"text": " \n", "label": 1}, "no text"),
        ({"text": "half \ud800", "label": 1}, "not UTF-8"),
        ({"text": "a"}, "no label"),
        ({"text": "a", "label": None}, "no label"),
        ({"text": "a", "label": float("nan")}, "no label"),
        ({"text": "a", "label": "  "}, "no label"),
        ({"text": "a", "label": 0.5}, "bad label"),
        ({"text": "a", "label": [1]}, "bad label"),
        ({"text": "a", "label": float("inf")}, "bad label"),
        ({"text": "a", "label": "\udc80"}, "bad label"),
        ({"text": "a", "label": 1, "tokens": "a b"}, "bad tokens"),
        ({"text": "a", "label": 1, "tokens": ["a", 3]}, "bad tokens"),
        ({"text": "a", "label": 1, "tokens": []}, "bad tokens"),
        ({"text": "a", "label": 1, "tokens": ["a"], "rationale": [1]}, "bad rationale"),
        ({"text": "a", "label": 1, "tokens": ["a"], "rationale": [-1]}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": [True]}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": [[0, 10**12]]}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": [[0]]}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": [[1, 1]]}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": 0}, "bad rationale"),
        ({"text": "a", "label": 1, "rationale": "nonsense"}, "bad rationale"),
        (["text", "label"], "not an object"),
    ],
)
def test_every_reason_for_a_bad_row(row, reason):
    assert build([*GOOD, row]).bad == BadRows({reason: 1}, {reason: (301,)})


def test_tokens_and_rationales():
    rows = [
        {"text": "a b c d", "label": 0, "tokens": list("abcd"), "rationale": [3, 1, 1]},
        {"text": "a b c d", "label": 1, "tokens": '["a", "b"]', "rationale": "[[0, 2]]"},
        {"text": "a b c d", "label": 1, "tokens": "", "rationale": []},
    ]
    first, second, third = build(rows)
    assert (first.tokens, first.rationale) == (("a", "b", "c", "d"), (1, 3))
    assert (second.tokens, second.rationale) == (("a", "b"), (0, 1))
    assert (third.tokens, third.rationale) == (None, ())


def test_one_bad_row_in_fifty_is_too_much_and_one_in_a_hundred_is_not():
    with pytest.raises(DataError, match=r"1 of 50 rows cannot be used; at most 1 % may be bad"):
        build([*GOOD[:49], {"text": "a"}])
    assert build([*GOOD[:99], {"text": "a"}]).bad.total == 1


def test_the_error_about_bad_rows_has_counts_and_line_numbers():
    with pytest.raises(DataError) as error:
        build([*GOOD[:5], *[{"text": "", "label": 0}] * 25, {"text": "a"}])
    listed = ", ".join(map(str, range(6, 26)))
    assert f"25 no text (lines {listed}, …); 1 no label (line 31)" in str(error.value)
    assert "Fix or remove these rows." in str(error.value)


def test_empty_data_is_an_error():
    with pytest.raises(DataError, match="is empty; it must have at least one row"):
        build([])


def test_labels_of_a_model_keep_their_order_and_refuse_others():
    data = build(GOOD, labels=["1", "0"])
    assert data.labels == ("1", "0")
    assert [e.label for e in data][:2] == [1, 0]
    with pytest.raises(DataError, match=r"unknown label.*Labels must be among 0, 2; got '1'\."):
        build(GOOD, labels=("0", "2"))
    assert build([*GOOD, {"text": "a", "label": "x"}], labels=("0", "1")).bad.lines == {
        "unknown label": (301,)
    }


@pytest.mark.parametrize("labels", [[], ["a", "a"]])
def test_labels_must_be_distinct_and_some(labels):
    with pytest.raises(ConfigError, match="labels must be distinct names, at least one; got"):
        build(GOOD, labels=labels)


@pytest.mark.parametrize("rows", [GOOD, sorted(GOOD, key=lambda row: row["label"])])
def test_a_limit_takes_a_fair_sample_of_rows_by_turns_or_in_blocks(rows):
    data = build(rows)
    some = data.sample(40)
    assert 10 <= sum(e.label for e in some) <= 30
    assert {e.index: e.text for e in some}.items() <= {e.index: e.text for e in data}.items()
    assert (len(some), some.labels, some.sha256) == (40, data.labels, data.sha256)
    assert len(data.sample(1000)) == 300
    with pytest.raises(ConfigError, match="A limit must be at least 1; got 0"):
        data.sample(0)


@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 50))
def test_any_limit_takes_as_many_rows_and_fewer_are_some_of_more(rows, limit, other):
    data = build(GOOD[:rows])
    chosen, others = ([e.index for e in data.sample(one)] for one in (limit, other))
    assert len(chosen) == min(limit, rows)
    assert chosen == sorted(set(chosen))
    small, large = sorted((chosen, others), key=len)
    assert set(small) <= set(large)


def test_a_source_that_shrinks_is_noticed(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in GOOD))
    data = read(file)
    file.write_text("".join(json.dumps(row) + "\n" for row in GOOD[:200]))
    with pytest.raises(DataError, match="had 300 good rows when it was first read and has 200 now"):
        list(data)


def test_digest_of_rows_is_that_of_their_canonical_json():
    rows = [{"b": 1, "a": "é"}]
    want = hashlib.sha256(b'{"a": "\\u00e9", "b": 1}\n').hexdigest()
    assert rows_sha256([(1, rows[0])]) == want
    assert rows_sha256([(1, BadLine("no text"))]) != want
    assert rows_sha256([(1, {"a": object()})])
    with pytest.raises(DataError, match="Row 4 cannot be written as JSON"):
        rows_sha256([(4, {"a": {(1, 2): 3}})])


def test_splits_have_synonyms_and_missing_ones_are_named():
    assert pick_split("dev", ("train", "validation"), name="x") == "validation"
    assert pick_split("val", ("train", "dev"), name="x") == "dev"
    with pytest.raises(DataError, match=r"x has no split 'test'. It has: train, dev. Choose one"):
        pick_split("test", ("train", "dev"), name="x")


@pytest.mark.parametrize(
    "told", [[1], [1, 2, 3], [1, "x"], [1, float("nan")], [True, 1], 3, "nonsense"]
)
def test_word_scores_are_one_number_for_each_token(told):
    columns = map_columns(None)
    bad = read_row({"text": "a fine", "label": 1, "word_scores": told}, columns)
    assert bad == BadLine("bad word_scores")
    row = {"text": "a fine", "label": 1, "tokens": list("abc"), "word_scores": "[1, 0, -2.5]"}
    assert read_row(row, columns).word_scores == (1.0, 0.0, -2.5)
    assert read_row({"text": "a fine", "label": 1}, columns).word_scores is None


def test_without_tokens_a_rationale_counts_what_white_space_parts():
    columns = map_columns(None)
    row = {"text": "it isn't bad", "label": 1, "rationale": [2]}
    assert read_row(row, columns).rationale == (2,)
    assert read_row({**row, "rationale": [3]}, columns) == BadLine("bad rationale")
