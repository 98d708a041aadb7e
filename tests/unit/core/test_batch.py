"""Batches of texts with a question: it goes with its text, whatever is done to that."""

import pytest
import torch

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import ShapeError


def text(index, ids, query, allowed=None):
    words = tuple(f"w{one}" for one in ids)
    return Encoded(index, 0, ids, tuple(range(len(ids))), words, query=query, allowed=allowed)


TEXTS = (text(5, (4, 5, 6), (7, 8)), text(6, (4, 5), (9,), (0, 2)), text(7, (4, 5, 6), (8,)))


def batch():
    return collate(TEXTS, classes=3)


def asked(found):
    """Each text of a batch as a plain list: its number, ids, question and classes."""
    return [
        (
            number,
            found.ids[row][found.present[row]].tolist(),
            [one for one in found.query[row].tolist() if one],
            found.allowed[row].nonzero().flatten().tolist(),
        )
        for row, number in enumerate(found.instances)
    ]


FIRST = (5, [4, 5, 6], [7, 8], [0, 1, 2])
SECOND = (6, [4, 5], [9], [0, 2])
THIRD = (7, [4, 5, 6], [8], [0, 1, 2])


def test_questions_have_a_padding_of_their_own_and_texts_without_candidates_allow_all():
    assert asked(batch()) == [FIRST, SECOND, THIRD]
    assert batch().query.tolist() == [[7, 8], [9, 0], [8, 0]]


def test_questions_follow_their_texts():
    rows = torch.tensor([2, 0])
    assert asked(batch().select(rows)) == [THIRD, FIRST]
    assert asked(batch().repeat_texts(2)) == [FIRST, SECOND, THIRD] * 2
    shorter = batch().delete_tokens(rows, torch.tensor([1, 0]))
    assert asked(shorter) == [(7, [4, 6], [8], [0, 1, 2]), (5, [5, 6], [7, 8], [0, 1, 2])]
    kept = batch().keep_tokens(rows, torch.tensor([[True, False, False], [False, False, True]]))
    assert asked(kept) == [(7, [4], [8], [0, 1, 2]), (5, [6], [7, 8], [0, 1, 2])]


def test_a_text_with_another_question_or_other_classes_is_another():
    same, other = text(8, (4, 5, 6), (7, 8)), text(9, (4, 5, 6), (7, 8), (1,))
    first, which = collate([*TEXTS, same, other], classes=3).distinct_texts()
    assert len(first) == 4
    assert which[0] == which[3]
    assert len({*which.tolist()}) == 4
    assert sorted(first.tolist()) == [0, 1, 2, 4]


def test_without_questions_nothing_is_there():
    plain = Encoded(0, 0, (4,), (0,), ("a",))
    found = collate([plain])
    assert (found.query, found.allowed) == (None, None)
    assert found.select(torch.tensor([0])).query is None


def test_what_does_not_fit_is_refused():
    plain = Encoded(0, 0, (4,), (0,), ("a",))
    with pytest.raises(ShapeError, match="3 of 4 texts have a query; all or none must"):
        collate([*TEXTS, plain], classes=3)
    with pytest.raises(ShapeError, match="pass their number as `classes`"):
        collate(TEXTS)
    ids = torch.ones(1, 2, dtype=torch.long)
    with pytest.raises(ShapeError, match="allows a text no class at all"):
        Batch(ids, ids > 0, ids > 0, (0,), allowed=torch.zeros(1, 3, dtype=torch.bool))


@pytest.mark.parametrize("word", [None, [[0, 0, 1, -1, 3, 3], [-1, 2, 0, 0, 1, -1]]])
def test_items_are_numbered_in_the_order_of_the_text(word):
    """By a plain loop: a new item begins with each word that was not met before."""
    mask = torch.tensor([[1, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 0]], dtype=torch.bool)
    numbers = None if word is None else torch.tensor(word)
    batch = Batch(mask.long(), torch.ones_like(mask), mask, (0, 1), word=numbers)
    for row in range(2):
        met, wanted = [], []
        for t in range(6):
            name = t if word is None else word[row][t]
            if not mask[row, t]:
                wanted.append(-1)
                continue
            if name not in met:
                met.append(name)
            wanted.append(met.index(name))
        assert batch.item_index[row].tolist() == wanted
        same = [[a == b and a >= 0 for b in wanted] for a in wanted]
        assert batch.same_item[row].tolist() == same
