"""Ids of texts: what makes two the same, and what does not."""

import pytest

from heedful.core.values import Example
from heedful.data.content_ids import cluster_id, content_id

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
