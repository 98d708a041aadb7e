"""Plausibility by plain loops and by scikit-learn: every text alone, every word by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, f1_score

from heedful.checks import checks, default_checks
from heedful.checks.sanity.plausibility.check import (
    NO_RATIONALE,
    NO_SHARE,
    NO_WORD_SCORES,
    TOO_MANY_CLASSES,
)
from heedful.core.errors import ConfigError
from heedful.core.rationales import (
    PAIR_NOT_ALIGNED,
    WORDS_NOT_FOUND,
    WordAnnotations,
    align_annotations,
)
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor import rationale_metrics
from heedful.numerics.tensor.ranking import dense_ranks
from support import measured_values
from support.reference_removal import members, subject, texts_of

SEED, ORDERS, SHARE, NEUTRAL = 3, 4, 0.4, 2.0
ASKED = ("gradient", "input_x_gradient", "leave_one_out")
NAMES = ("bilstm", "cnn", "bert", "xlnet")


def check_of(**settings):
    usual = {"methods": ASKED, "orders": ORDERS, "share": SHARE, "neutral": NEUTRAL}
    return checks.build("plausibility", **(usual | settings))


def said_of(text):
    """Marks and numbers drawn for a text's words; every fourth text has none."""
    draw = np.random.default_rng(text.index)
    if text.index % 4 == 2:
        return WordAnnotations()
    marked = draw.random(len(text.words)) < 0.5
    marked[draw.integers(len(text.words))] = True
    return WordAnnotations(
        tuple(map(bool, marked)), tuple(map(float, draw.integers(0, 5, len(marked))))
    )


def sat(name, **more):
    one, texts = subject(name), texts_of(name)
    people = {text.index: said_of(text) for text in texts}
    return texts, people, BatchContext(one, one.batch(texts), seed=SEED, rationales=people, **more)


def found_by(check, context):
    return measured_values.columns(check(context))


def spans(chosen):
    """Maximal runs as sets of places."""
    runs, run = [], []
    for place, one in enumerate([*chosen, False]):
        if one:
            run.append(place)
        elif run:
            runs.append(set(run))
            run = []
    return runs


def iou_f1(chosen, marked):
    """As the benchmark's own code counts: a guess is right by its best match."""
    guesses, truths = spans(chosen), spans(marked)
    best = [max(len(g & t) / len(g | t) for t in truths) for g in guesses]
    right = sum(one >= 0.5 for one in best)
    if not right:
        return 0.0
    precision, recall = right / len(guesses), right / len(truths)
    return 2 * precision * recall / (precision + recall)


def top(scores, k):
    """The k highest, equal ones as they stand."""
    order = sorted(range(len(scores)), key=lambda w: (-round(scores[w], 9), w))
    return [w in order[:k] for w in range(len(scores))]


def of_scores(scores, said, *, towards):
    """Every measure of one ranking of one text; only where no scores are tied at a border."""
    if said.marked is None:
        nothing = dict.fromkeys(("auprc", "token_f1", "iou_f1", "top_k"), math.nan)
        return nothing | {"rank_human": math.nan, "sign_human": math.nan}
    k = min(len(scores), max(1, math.floor(SHARE * len(scores) + 0.5)))
    chosen, marked = top(scores, k), [*said.marked]
    as_many = top(scores, sum(marked))
    away = [one - NEUTRAL for one in said.scores]
    signs = [(s > 0) == (towards * a > 0) for s, a in zip(scores, away, strict=True) if s and a]
    tau = kendalltau(np.abs(scores), np.abs(away)).statistic if len(scores) > 1 else math.nan
    return {
        "auprc": average_precision_score(marked, scores),
        "token_f1": f1_score(marked, chosen),
        "iou_f1": iou_f1(chosen, marked),
        "top_k": sum(a and b for a, b in zip(as_many, marked, strict=True)) / sum(marked),
        "rank_human": tau,
        "sign_human": np.mean(signs) if signs else math.nan,
    }


def word_scores(one, text, name, target):
    part = methods.build(name)
    context = BatchContext(one, one.batch([text]), seed=SEED)
    tokens = part(context, torch.tensor([target])).scores[0].double()
    groups = members(text, "words")
    if part.join == "norm":
        return [math.sqrt(sum(float(tokens[t]) ** 2 for t in word)) for word in groups]
    return [sum(float(tokens[t]) for t in word) for word in groups]


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_of_every_text_is_what_loops_and_sklearn_say(name):
    texts, people, context = sat(name)
    found = found_by(check_of(), context)
    several = len(context.subject.labels) > 2
    for row, text in enumerate(texts):
        target = int(context.predicted[row])
        towards, said = (1 if target == 1 else -1), people[text.index]
        count = len(members(text, "words"))
        for method in ("attention", *ASKED):
            scores = word_scores(context.subject, text, method, target)
            for measure, value in of_scores(scores, said, towards=towards).items():
                if measure == "sign_human" and (several or not methods[method].signed):
                    continue
                got = found[f"{measure}[{method}]"][row]
                assert got == pytest.approx(value, abs=1e-9, nan_ok=True), (measure, method, text)
            beyond = found[f"auprc[{method}]"][row] - found["auprc[random]"][row]
            assert found[f"beyond_random[{method}]"][row] == pytest.approx(beyond, nan_ok=True)
        drawn = generator(SEED, "orders of plausibility", text.content).random((ORDERS, count))
        each = [of_scores(one, said, towards=1) for one in drawn.tolist()]
        for measure in ("auprc", "token_f1", "iou_f1", "top_k", "rank_human"):
            mean = np.mean([one[measure] for one in each])
            got = found[f"{measure}[random]"][row]
            assert got == pytest.approx(mean, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", NAMES)
def test_equal_scores_are_chance(name):
    texts, people, context = sat(name)
    found = found_by(check_of(), context)
    for row, text in enumerate(texts):
        marked = people[text.index].marked
        if marked is None:
            assert math.isnan(found["auprc[uniform]"][row])
            continue
        count, total = len(marked), sum(marked)
        k = min(count, max(1, math.floor(SHARE * count + 0.5)))
        assert found["auprc[uniform]"][row] == pytest.approx(total / count)
        assert found["top_k[uniform]"][row] == pytest.approx(total / count)
        f1 = 2 * (k * total / count) / (k + total)
        assert found["token_f1[uniform]"][row] == pytest.approx(f1)
        assert found["iou_f1[uniform]"][row] == iou_f1([w < k for w in range(count)], marked)


@given(
    ranks=st.lists(st.integers(0, 3), min_size=1, max_size=9),
    marks=st.lists(st.booleans(), min_size=9, max_size=9),
    chosen=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_the_arithmetic_with_many_ties(ranks, marks, chosen):
    n = len(ranks)
    scores = torch.tensor(ranks, dtype=torch.float64)[None, None]
    real = torch.ones(1, n, dtype=torch.bool)
    marked = torch.tensor(marks[:n])[None]
    dense = dense_ranks(scores, real.expand_as(scores))
    area = float(rationale_metrics.average_precision(dense, marked))
    span = float(rationale_metrics.span_f1(torch.tensor(chosen[:n])[None, None], marked))
    if not any(marks[:n]):
        assert math.isnan(area)
        assert math.isnan(span)
        return
    assert area == pytest.approx(average_precision_score(marks[:n], ranks))
    if any(chosen[:n]):
        assert span == pytest.approx(iou_f1(chosen[:n], marks[:n]))
    k = min(n, 3)
    by_group = [r for r in ranks if r > sorted(ranks)[-k]]
    inside = [float(r > sorted(ranks)[-k]) for r in ranks]
    edge = sorted(ranks)[-k]
    inside = [
        one or ((k - len(by_group)) / ranks.count(edge) if r == edge else 0.0)
        for one, r in zip(inside, ranks, strict=True)
    ]
    hits = sum(one for one, mark in zip(inside, marks, strict=False) if mark)
    got = rationale_metrics.token_f1(dense, marked, torch.tensor([k]))
    assert float(got) == pytest.approx(2 * hits / (k + sum(marks[:n])))


def test_it_is_run_when_asked_for_and_bears_on_nothing():
    check = checks.build("plausibility")
    assert "plausibility" not in default_checks()
    assert checks.spec("plausibility").claim is None
    assert not checks.spec("plausibility").votes
    assert check.methods[0] == "attention"
    with pytest.raises(ConfigError, match="share must be a number between 0 and 1"):
        check_of(share=1.5)
    with pytest.raises(ConfigError, match="orders must be a whole number of at least 1"):
        check_of(orders=0)


def test_without_marks_it_says_so():
    texts, _, context = sat("cnn")
    nobody = replace(context, rationales={}, cache={})
    findings = check_of()(nobody)
    missing = measured_values.missing(findings)
    assert set(missing) == set(measured_values.columns(findings))
    assert set(map(measured_values.plain, missing)) == {
        one.name for one in checks.spec("plausibility").measures if one.kind != "p"
    }
    assert missing["auprc[attention]"] == NO_RATIONALE
    assert missing["rank_human[attention]"] == NO_WORD_SCORES
    unsized = check_of(share=0.0)(context)
    why = measured_values.missing(unsized)
    assert why["iou_f1[random]"] == why["token_f1[attention]"] == NO_SHARE
    assert "auprc[attention]" not in why
    assert why["sign_human[leave_one_out]"] == TOO_MANY_CLASSES  # this model has three classes
    found = measured_values.columns(unsized)
    assert np.isnan(found["token_f1[attention]"]).all()
    odd = {one.index: WordAnnotations(why=PAIR_NOT_ALIGNED) for one in texts}
    unaligned = check_of()(replace(context, rationales=odd, cache={}))
    assert measured_values.missing(unaligned)["top_k[gradient]"] == PAIR_NOT_ALIGNED


def test_the_share_of_the_data_is_the_mean_of_those_that_have_one():
    rows = [
        Example(0, "a b c d", 0, rationale=(1,)),
        Example(1, "a b", 0, rationale=(0,)),
        Example(2, "a b", 0, rationale=()),
        Example(3, "a b", 0),
    ]
    check, one = checks.build("plausibility"), subject("bilstm")
    assert check.fitted(rows, one).share == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert check.fitted(rows[2:], one) == check
    given_one = checks.build("plausibility", share=0.1)
    assert given_one.fitted(rows, one) is given_one


@pytest.mark.parametrize(
    ("example", "words", "marked"),
    [
        (Example(0, "a fine  film", 0, rationale=(1,)), ("a", "fine", "film"), (0, 1, 0)),
        (Example(0, "not don't !", 0, rationale=(1,)), ("not", "do", "n't", "!"), (0, 1, 1, 0)),
        (Example(0, "So... good!", 0, rationale=(1,)), ("so", "good"), (0, 1)),
        (Example(0, "x", 0, ("a b", "c"), (0,)), ("a", "b", "c"), (1, 1, 0)),
        (Example(0, "x", 0, ("a", "b"), (1,)), ("ab",), None),
        (Example(0, "a fine film", 0, rationale=(0, 2)), ("a", "fine"), (1, 0)),  # cut
        (Example(0, "bad ad ad", 0, rationale=(1,)), ("ad", "ad"), None),  # words left out
        (Example(0, "a", 0, rationale=()), ("a",), (0,)),
    ],
)
def test_marks_of_tokens_become_marks_of_words(example, words, marked):
    found = align_annotations(example, words)
    if marked is None:
        assert (found.marked, found.why) == (None, WORDS_NOT_FOUND)
    else:
        assert found == WordAnnotations(tuple(map(bool, marked)))


def test_numbers_of_tokens_become_numbers_of_words():
    example = Example(0, "isn't bad", 0, word_scores=(1.0, 3.0))
    assert align_annotations(example, ("is", "n't", "bad")) == WordAnnotations(
        None, (1.0, 1.0, 3.0)
    )
    pair = replace(example, pair="more")
    assert align_annotations(pair, ("isn't", "bad", "more")) == WordAnnotations(
        why=PAIR_NOT_ALIGNED
    )
    assert align_annotations(Example(0, "a", 0, pair="b"), ("a", "b")) == WordAnnotations()
