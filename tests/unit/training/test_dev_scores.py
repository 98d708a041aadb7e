"""The scores that training selects by."""

import pytest
import torch

from heedful.core.batch import Encoded, collate
from heedful.core.errors import DataError
from heedful.training.loop.predictions import predict_all
from support import subjects
from support.dev_scores import dev_score


def texts(subject, gold):
    """Texts of many lengths, with the given labels."""
    made = subjects.encoded(subject, [1 + 3 * i % 11 for i in range(len(gold))])
    return [
        Encoded(one.index, label, one.ids, one.word, one.words)
        for one, label in zip(made, gold, strict=True)
    ]


@pytest.mark.parametrize("budget", [1, 30, 20_000])
def test_outputs_come_in_the_order_of_the_texts(budget):
    subject = subjects.subject(classes=3)
    known = texts(subject, [0] * 9)
    found = predict_all(subject, known, max_batch_tokens=budget).probabilities
    for row, one in enumerate(known):
        alone = subject.forward(collate([one])).probabilities[0]
        torch.testing.assert_close(found[row], alone)


def test_two_classes_are_scored_by_pairs_in_the_right_order():
    subject, gold = subjects.subject(), [0, 1, 1, 0, 1, 0, 0, 1]
    known = texts(subject, gold)
    p = predict_all(subject, known).probabilities[:, 1].tolist()
    pairs = [
        (a, b)
        for a, y in zip(p, gold, strict=True)
        if y
        for b, x in zip(p, gold, strict=True)
        if not x
    ]
    want = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
    assert dev_score(subject, known) == pytest.approx(want)


def test_more_classes_are_scored_by_how_many_are_right():
    subject, gold = subjects.subject(classes=4), [0, 1, 2, 3, 0, 1, 2, 3]
    known = texts(subject, gold)
    guessed = predict_all(subject, known).probabilities.argmax(-1).tolist()
    assert dev_score(subject, known) == sum(map(int.__eq__, guessed, gold)) / 8


def test_no_texts_have_no_score():
    with pytest.raises(DataError) as caught:
        dev_score(subjects.subject(), [])
    assert str(caught.value) == "There are no dev texts to select the best epoch by."


@pytest.mark.parametrize("label", [0, 1])
def test_texts_of_one_class_have_no_score(label):
    subject = subjects.subject()
    with pytest.raises(DataError) as caught:
        dev_score(subject, texts(subject, [label] * 3))
    assert str(caught.value) == "The dev texts are all of one class; ROC-AUC needs both."
