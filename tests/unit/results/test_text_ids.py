"""Ids of texts: what makes two the same; as a run keeps them, aligned with what was measured."""

import numpy as np
import pyarrow as pa
import pytest

from heedful.core.values import Example
from heedful.results.tables import TEXT_ID_SCHEMA, PartitionedTable
from heedful.results.text_ids import cluster_id, content_id, read_text_ids, text_id_table

ONE = Example(0, "a fine film", 1)


@pytest.mark.parametrize(
    "same",
    [
        Example(9, "a fine film", 1),
        Example(0, " a  fine\nfilm ", 0),
        Example(0, "a fine film", 1, rationale=(1,), word_scores=(0.0, 1.0, 0.0)),
        Example(0, "a fine film", 1, cluster="7"),
    ],
)
def test_row_label_spaces_and_annotations_change_nothing(same):
    assert content_id(same) == content_id(ONE)


@pytest.mark.parametrize(
    "other",
    [
        Example(0, "a fine  films", 1),
        Example(0, "A fine film", 1),
        Example(0, "a fine film", 1, pair="is it"),
        Example(0, "a fine film", 1, tokens=("a fine", "film")),
        Example(0, "a fine film", 1, candidates=(0,)),
    ],
)
def test_what_a_model_reads_makes_another_text(other):
    assert content_id(other) != content_id(ONE)


def test_a_question_is_not_the_end_of_a_text():
    assert content_id(Example(0, "a b", 1, pair="c")) != content_id(Example(0, "a", 1, pair="b c"))


def test_the_name_of_a_cluster_is_not_kept():
    found = cluster_id(Example(0, "a", 1, cluster="patient 12"))
    assert found is not None
    assert "12" not in found or len(found) == 32
    assert found == cluster_id(Example(5, "b", 0, cluster="patient 12"))
    assert cluster_id(ONE) is None


EXAMPLES = [
    Example(number, text, 0, cluster=f"document {number // 2}")
    for number, text in enumerate(("good film", "dull", "good  film", "dull plot", "dull"))
]


def tables(*parts):
    return PartitionedTable(
        tuple(lambda _, one=one: text_id_table(one) for one in parts)  # file by file
    )


def test_ids_stand_in_the_order_of_the_texts():
    found = read_text_ids(tables(EXAMPLES[:2], EXAMPLES[2:]), np.arange(5))
    assert found.content[0] == found.content[2] != found.content[1] == found.content[4]
    assert (found.distinct, found.clusters) == (3, 3)
    assert (found.drawn_together == found.cluster).all()


def test_texts_that_were_not_measured_are_left_out():
    whole = read_text_ids(tables(EXAMPLES), np.arange(5))
    some = read_text_ids(tables(EXAMPLES), np.array([1, 4]))
    assert some.content.tolist() == whole.content[[1, 4]].tolist()
    assert (some.distinct, some.clusters) == (1, 2)


def test_without_clusters_distinct_texts_are_drawn():
    rows = [Example(0, "a", 0), Example(1, "b", 0)]
    found = read_text_ids(tables(rows), np.arange(2))
    assert found.clusters is None
    assert (found.drawn_together == found.content).all()


@pytest.mark.parametrize("kept", [None, tables(EXAMPLES[:4])])
def test_a_text_without_an_id_leaves_none(kept):
    assert read_text_ids(kept, np.arange(5)) is None


def test_a_run_without_texts_has_no_ids():
    empty = PartitionedTable.of(TEXT_ID_SCHEMA.empty_table())
    assert isinstance(empty.whole(), pa.Table)
    assert read_text_ids(empty, np.arange(0)) is None
