"""Ids of texts as a run keeps them: aligned with what was measured, or none at all."""

import numpy as np
import pyarrow as pa
import pytest

from heedful.core.values import Example
from heedful.pipeline.audit.text_rows import text_id_table
from heedful.results.tables import TEXT_ID_SCHEMA, PartitionedTable
from heedful.results.text_ids import read_text_ids

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
