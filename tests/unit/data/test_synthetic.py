"""Synthetic corpora: labels and rationales computed again, from the words alone."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from heedful.data import corpora, read
from heedful.data.corpora.word_lists import (
    FILLERS,
    NEGATIVE,
    PEOPLE,
    PLACES,
    POSITIVE,
    RANKED,
    SYMBOLS,
    TOPICS,
)

NAMES = [name for name in corpora if name.startswith("synthetic:")]
SIGN = dict.fromkeys(NEGATIVE, -1) | dict.fromkeys(POSITIVE, 1)
RANK = {w: (r, p) for p, words in RANKED.items() for r, w in enumerate(words)}
TOPIC = {word: topic for topic, words in TOPICS.items() for word in words}


def needle(tokens):
    ((place, sign),) = [(t, SIGN[w]) for t, w in enumerate(tokens) if w in SIGN]
    return "positive" if sign > 0 else "negative", (place,)


def votes(tokens):
    cues = {t: SIGN[w] for t, w in enumerate(tokens) if w in SIGN}
    assert len(cues) in (3, 5, 7)
    return "positive" if sum(cues.values()) > 0 else "negative", tuple(cues)


def priority(tokens):
    cues = [(*RANK[w], t) for t, w in enumerate(tokens) if w in RANK]
    assert 3 <= len(cues) == len({rank for rank, _, _ in cues}) <= 5
    _, polarity, place = max(cues)
    return polarity, (place,)


def topics(tokens):
    ((place, topic),) = [(t, TOPIC[w]) for t, w in enumerate(tokens) if w in TOPIC]
    return topic, (place,)


def questions(tokens, question):
    """Everybody is in a place of their own, which stands behind the name."""
    places = {person: t + 1 for t, person in enumerate(tokens) if person in PEOPLE}
    assert 2 <= len(places) == len({tokens[t] for t in places.values()}) <= 4
    place = places[question.removeprefix("where is ")]
    return tokens[place], (place,)


def counting(tokens, question):
    """The rationale is where either symbol is; ties are not more."""
    one, other = question.split()
    assert one != other
    assert {*tokens, one, other} <= set(SYMBOLS)
    places = tuple(t for t, word in enumerate(tokens) if word in (one, other))
    return "more" if tokens.count(one) > tokens.count(other) else "not more", places


@cache
def drawn(name, split):
    data = read(name, split=split)
    return data, tuple(data)


RULES = {
    f"synthetic:{rule.__name__}": rule
    for rule in (needle, votes, priority, topics, questions, counting)
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("split", "size"), [("train", 2000), ("dev", 400), ("test", 400)])
def test_the_rule_gives_every_label_and_rationale(name, split, size):
    data, examples = drawn(name, split)
    assert len(data) == len(examples) == size
    for example in examples:
        assert example.text == " ".join(example.tokens)
        assert 8 <= len(example.tokens) <= 24
        asked = (example.tokens, example.pair) if example.pair else (example.tokens,)
        assert RULES[name](*asked) == (data.labels[example.label], example.rationale)
    shares = Counter(e.label for e in examples)
    assert set(shares.values()) == {size // len(data.labels)}


@pytest.mark.parametrize("name", NAMES)
def test_splits_differ_and_are_the_same_every_time(name):
    texts = {
        split: [(e.text, e.pair) for e in drawn(name, split)[1]]
        for split in ("train", "dev", "test")
    }
    assert not set(texts["train"]) & set(texts["test"])
    assert not set(texts["dev"]) & set(texts["test"])
    assert texts["dev"] == [(e.text, e.pair) for e in read(name, split="validation")]
    assert read(name, split="dev").sha256 != read(name).sha256 == read(name).sha256


def test_no_word_is_in_two_lists():
    words = [*FILLERS, *SIGN, *TOPIC, *PEOPLE, *PLACES, *SYMBOLS]
    assert len(FILLERS) == 200
    assert len(set(words)) == len(words)
    assert len(RANK) == 20
    assert not set(RANK) & set(FILLERS)


def test_the_majority_says_nothing_about_priority():
    data = drawn("synthetic:priority", "train")[1]
    sums = np.array(
        [sum(1 if RANK[w][1] == "positive" else -1 for w in e.tokens if w in RANK) for e in data]
    )
    labels = np.array([2 * e.label - 1 for e in data])
    decided = sums != 0
    assert np.mean(np.sign(sums[decided]) == labels[decided]) == pytest.approx(0.5, abs=0.07)


def test_each_symbol_asked_for_is_a_quarter_of_the_text():
    shares = [
        [e.tokens.count(word) / len(e.tokens) for word in e.pair.split()]
        for e in drawn("synthetic:counting", "train")[1]
    ]
    assert np.mean(shares) == pytest.approx(0.25, abs=0.01)


def bag(data):
    """Share of each word in each text: what uniform attention sees."""
    column = {word: i for i, word in enumerate([*FILLERS, *SIGN, *RANK])}
    shares = np.zeros((len(data), len(column)))
    for row, example in enumerate(data):
        for word in example.tokens:
            shares[row, column[word]] += 1 / len(example.tokens)
    return shares, np.array([2 * e.label - 1 for e in data])


def logistic(shares, labels):
    """Weights of a logistic regression with the usual penalty, Σ log(1 + e^(−yz)) + ½‖w‖²."""

    def loss(weights):
        margin = labels * (shares @ weights)
        slope = -labels / (1 + np.exp(np.clip(margin, -50, 50)))
        return np.logaddexp(0, -margin).sum() + weights @ weights / 2, shares.T @ slope + weights

    return minimize(loss, np.zeros(shares.shape[1]), jac=True, method="L-BFGS-B").x


@pytest.mark.parametrize(("name", "low", "high"), [("priority", 0.5, 0.75), ("needle", 0.99, 1.0)])
def test_a_bag_of_words_fails_on_priority_alone(name, low, high):
    train, test = (drawn(f"synthetic:{name}", split)[1] for split in ("train", "test"))
    weights = logistic(*bag(train))
    shares, labels = bag(test)
    assert low <= np.mean(np.sign(shares @ weights) == labels) <= high
