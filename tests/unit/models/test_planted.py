"""Hand-built subjects: their truth is what their table says, by plain loops."""

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.batch import collate
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasFingerprint, Subject
from heedful.planted.hand_built import draw_texts, hand_built_subjects
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE

KINDS = tuple(hand_built_subjects)
HONEST = tuple(kind for kind in KINDS if kind.startswith("honest"))
INERT = tuple(kind for kind in KINDS if kind.startswith("inert"))
SUBJECTS = {kind: hand_built_subjects.build(kind) for kind in KINDS}


@cache
def batch(kind, count=12):
    subject = SUBJECTS[kind]
    return collate([subject.encode(one) for one in draw_texts(subject, count)])


def numbers(text):
    return [int(word[1:]) for word in text.split()]


def test_there_are_both_kinds():
    assert len(HONEST) == len(INERT) == 2
    assert len(KINDS) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_subject_is_a_subject(kind):
    assert isinstance(SUBJECTS[kind], Subject)
    assert isinstance(SUBJECTS[kind], HasFingerprint)
    assert SUBJECTS[kind].family == f"planted-{kind}"


def test_no_two_subjects_have_one_fingerprint():
    made = [hand_built_subjects[kind](seed) for kind in KINDS for seed in (0, 1)]
    assert len({one.fingerprint() for one in made}) == len(made)
    assert (
        hand_built_subjects[KINDS[0]](1).fingerprint()
        == hand_built_subjects[KINDS[0]](1).fingerprint()
    )


def test_a_fingerprint_covers_the_table_its_order_and_its_precision():
    one = hand_built_subjects[KINDS[0]](0)
    swapped = replace(one, table=one.table.flip(0))  # the same sum
    single = replace(one, table=one.table.float().double())
    rounded = replace(one, table=one.table.float())
    others = [swapped, single, rounded, replace(one, inert=not one.inert)]
    assert len({each.fingerprint() for each in (one, *others)}) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_each_text_holds_exactly_one_cue_where_promised(kind):
    subject, made = SUBJECTS[kind], draw_texts(SUBJECTS[kind], 200)
    found = [sum(number < CUE_WORDS for number in numbers(one.text)) for one in made]
    if subject.cues:
        assert set(found) == {1}
        places = {
            numbers(one.text).index(n) for one in made for n in numbers(one.text) if n < CUE_WORDS
        }
        assert len(places) > 10  # not always the same position
    else:
        assert len(set(found)) > 1


def test_only_the_peaked_kind_promises_a_cue():
    assert [kind for kind in KINDS if SUBJECTS[kind].cues] == ["honest-peaked"]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_the_promised_length_words_and_label(kind):
    subject, made = SUBJECTS[kind], draw_texts(SUBJECTS[kind], 100, mean=10)
    lengths = {len(numbers(one.text)) for one in made}
    assert (min(lengths), max(lengths)) == (5, 15)
    assert [one.index for one in made] == list(range(100))
    assert max(max(numbers(one.text)) for one in made) < VOCABULARY_SIZE
    for one in made:
        assert int(subject.forward(collate([subject.encode(one)])).predicted) == one.label
    assert {one.label for one in made} == {0, 1}


def test_texts_follow_from_the_seed():
    subject = SUBJECTS["inert-random"]
    assert draw_texts(subject, 5) == draw_texts(subject, 5)
    assert draw_texts(subject, 5) == draw_texts(subject, 9)[:5]
    assert draw_texts(subject, 5)[0].text != draw_texts(subject, 5, seed=1)[0].text


@pytest.mark.parametrize("kind", KINDS)
def test_output_and_attention_are_those_of_the_table(kind):
    subject = SUBJECTS[kind]
    for one in draw_texts(subject, 20):
        a, s, u = zip(*(subject.table[n].tolist() for n in numbers(one.text)), strict=True)
        total = sum(map(math.exp, a))
        weights = [math.exp(one) / total for one in a]
        says = sum(u) if kind in INERT else sum(w * v for w, v in zip(weights, s, strict=True))
        forward = subject.forward(collate([subject.encode(one)]))
        assert forward.logits[0].tolist() == pytest.approx([0.0, says])
        assert forward.attention[0].tolist() == pytest.approx(weights)


@pytest.mark.parametrize("kind", INERT)
@given(seed=st.integers(0, 10**6))
def test_inert_output_is_the_same_under_any_attention(kind, seed):
    rows = batch(kind)
    forward = SUBJECTS[kind].forward(rows)
    draw = torch.Generator().manual_seed(seed)
    other = torch.rand(rows.mask.shape, generator=draw, dtype=torch.float64) ** 8 * rows.mask
    other = other / other.sum(-1, keepdim=True)
    assert (other - forward.attention).abs().sum(-1).min() > 0.1
    moved = SUBJECTS[kind].decoder(rows, forward)(other)
    torch.testing.assert_close(moved, forward.logits, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", HONEST)
def test_honest_output_moves_with_the_attention(kind):
    rows = batch(kind, 50)
    forward = SUBJECTS[kind].forward(rows)
    decode = SUBJECTS[kind].decoder(rows, forward)
    even = rows.mask / rows.mask.sum(-1, keepdim=True).double()
    moved = (decode(even).softmax(-1) - forward.probabilities).abs().sum(-1) / 2
    assert moved.median() > 0.05


def test_the_cue_decides_the_peaked_kind():
    subject = SUBJECTS["honest-peaked"]
    for one in draw_texts(subject, 100):
        (cue,) = (n for n in numbers(one.text) if n < CUE_WORDS)
        assert one.label == cue % 2
        forward = subject.forward(collate([subject.encode(one)]))
        assert int(forward.attention.argmax()) == numbers(one.text).index(cue)


@pytest.mark.parametrize(("kind", "column"), [("honest-graded", 1), ("inert-proportional", 2)])
def test_attention_is_in_proportion_to_what_a_word_says_or_adds(kind, column):
    subject = SUBJECTS[kind]
    torch.testing.assert_close(subject.table[:, 0].exp(), subject.table[:, column].abs())


@pytest.mark.parametrize("kind", KINDS)
def test_padding_does_not_matter(kind):
    subject, rows = SUBJECTS[kind], batch(kind)
    together = subject.forward(rows)
    for row, one in enumerate(draw_texts(subject, 12)):
        alone = subject.forward(collate([subject.encode(one)]))
        torch.testing.assert_close(together.logits[row], alone.logits[0])
        assert not together.attention[row][~rows.mask[row]].any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder_is_the_subject_s_own(kind):
    assert BatchContext(SUBJECTS[kind], batch(kind)).parity < 1e-12


def test_words_are_called_by_their_number():
    encoded = SUBJECTS["inert-random"].encode(Example(3, "w7 w0 w399", 1))
    assert (encoded.ids, encoded.word, encoded.words) == (
        (7, 0, 399),
        (0, 1, 2),
        ("w7", "w0", "w399"),
    )
