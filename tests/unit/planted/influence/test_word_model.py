"""Subjects of numbers per word, against plain loops; scores and places as their docstrings say."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.core.values import Example
from heedful.planted.influence.kind import InfluenceCase, InfluenceSetting, KnownText
from heedful.planted.influence.word_model import (
    InfluenceSubject,
    Reading,
    carry_nothing,
    draw_evidence,
    place_words,
    redraw_until_wrong,
    score_at_random,
    score_in_order,
    score_on_others,
    share_in_order,
)

SETTING = InfluenceSetting("word-model", 10, 3)
EVIDENCE = draw_evidence(SETTING, 2.0, 1.0)
INFLUENCE = np.abs(EVIDENCE.amounts)
SCORES = score_in_order(SETTING, INFLUENCE)
IDS = [*EVIDENCE.words[0, 0, :2], *EVIDENCE.others[:3], EVIDENCE.words[1, 1, 0]]
TEXT = " ".join(f"w{number}" for number in IDS)


def subject(**reading):
    table = torch.from_numpy(np.stack([SCORES, EVIDENCE.amounts], axis=1))
    return InfluenceSubject(SETTING, table, Reading(**reading))


def run(model, *texts):
    batch = model.batch([model.encode(Example(i, text, -1)) for i, text in enumerate(texts)])
    return batch, model.forward(batch)


@pytest.mark.parametrize(
    ("reading", "tolerance"),
    [
        ({}, 1e-9),
        ({"held": "next"}, 1e-9),
        ({"held": "running"}, 0.03),  # exp(−6) of the weight is before the end
        ({"share": carry_nothing}, 1e-9),
        ({"share": carry_nothing, "rest": "past"}, 1e-9),
    ],
)
def test_the_output_is_the_sum_of_amounts_however_they_are_held(reading, tolerance):
    _, forward = run(subject(**reading), TEXT)
    want = sum(EVIDENCE.amounts[number] for number in IDS)
    assert forward.logits[0].tolist() == pytest.approx([0.0, want], abs=tolerance)


@pytest.mark.parametrize("held", ["own", "next", "running"])
def test_a_longer_text_in_the_batch_changes_nothing(held):
    model = subject(held=held)
    _, alone = run(model, TEXT)
    _, beside = run(model, TEXT, f"{TEXT} {TEXT}")
    torch.testing.assert_close(beside.logits[:1], alone.logits)
    torch.testing.assert_close(beside.attention[:1, : len(IDS)], alone.attention)


def test_averaged_amounts_are_weighted_by_attention():
    _, forward = run(subject(averaged=True), TEXT)
    weights = [np.exp(SCORES[number]) for number in IDS]
    amounts = [EVIDENCE.amounts[number] for number in IDS]
    want = sum(a * b for a, b in zip(weights, amounts, strict=True)) / sum(weights)
    assert float(forward.logits[0, 1]) == pytest.approx(want)


def test_the_state_after_a_word_has_its_weight_and_its_amount():
    _, own = run(subject(), TEXT)
    batch, after = run(subject(held="next"), TEXT)
    torch.testing.assert_close(after.attention, own.attention.roll(1, 1))
    decode = subject(held="next").decoder(batch, after)
    for place, number in enumerate(IDS):
        everything = torch.zeros_like(after.attention)
        everything[0, (place + 1) % len(IDS)] = 1.0
        want = EVIDENCE.amounts[number] / float(own.attention[0, place])
        assert float(decode(everything)[0, 1]) == pytest.approx(want)


def test_scores_follow_influence_or_do_not():
    matter = INFLUENCE > 0
    strong, weak = EVIDENCE.words[0], EVIDENCE.words[1]
    assert SCORES[strong].min() > SCORES[weak].max()
    assert SCORES[matter].min() > SCORES[~matter].max() + 0.69
    away = score_on_others(SETTING, INFLUENCE)
    assert away[matter].max() < away[~matter].min() - 0.79
    drawn = score_at_random(SETTING, EVIDENCE.groups)
    for words in EVIDENCE.groups:
        assert abs(drawn[words].mean() - drawn.mean()) < 1e-9


def test_words_placed_apart_have_no_neighbour_that_matters():
    draw = np.random.default_rng(0)
    for _ in range(50):
        known = place_words(draw, 6, [[1, 2], [3]], np.arange(10, 20), where="apart")
        words = known.text.split()
        assert [sorted(words[p] for p in tier) for tier in known.tiers] == [["w1", "w2"], ["w3"]]
        assert all((place + 1) % 6 not in known.decisive for place in known.decisive)


def test_early_words_are_in_the_first_half_but_not_first():
    draw = np.random.default_rng(0)
    for _ in range(50):
        known = place_words(draw, 7, [[1, 2], [3]], np.arange(10, 20), where="early")
        assert known.decisive <= {1, 2, 3}


def test_texts_are_redrawn_until_scores_order_words_no_better_than_chance():
    known = KnownText("w0 w1 w2 w3", tiers=((0,), (1,)))
    good, bad = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert share_in_order(good, known) == 1.0
    assert share_in_order(bad, known) == 0.0
    other = replace(known, text="w3 w2 w1 w0")
    offered = iter([known, known, other])
    assert redraw_until_wrong(lambda: next(offered), good) == other


def test_a_seed_gives_one_model_and_another_seed_another():
    one, same, other = (InfluenceCase("tails-noise", 20, seed) for seed in (1, 1, 2))
    assert one.subject.fingerprint() == same.subject.fingerprint()
    assert one.subject.fingerprint() != other.subject.fingerprint()
    assert one.known(5) == same.known(5)
    assert one.known(5) != other.known(5)
