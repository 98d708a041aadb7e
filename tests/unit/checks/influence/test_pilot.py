"""The pilot: as few orders as give a yardstick, whatever the order of the rows."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.checks.influence import pilot as module
from heedful.checks.influence.check import InfluenceCheck
from heedful.checks.influence.names import HALF, NAME
from heedful.checks.influence.pilot import PilotTexts, orders_needed
from heedful.checks.influence.rules import has_yardstick
from heedful.core.values import Example
from heedful.planted.hand_built import draw_texts, hand_built_subjects
from support import subjects

CHECK = InfluenceCheck(methods=("attention",))


@pytest.fixture(scope="module")
def clear():
    """A subject with one decisive word in each text."""
    subject = hand_built_subjects.build("honest-peaked")
    return subject, draw_texts(subject, 40, mean=10)


def test_clear_influence_needs_the_fewest_orders(clear):
    subject, texts = clear
    assert orders_needed(CHECK, subject, texts, audited=40) == 4
    assert CHECK.fitted(texts, subject).orders == 4


def test_orders_double_until_there_is_a_yardstick(clear, monkeypatch):
    subject, texts = clear
    asked = []

    def only_from(enough):
        return lambda evidence: asked[-1] >= enough and has_yardstick(evidence)

    measure = module._measure
    monkeypatch.setattr(
        module, "_measure", lambda one, *rest: asked.append(one.orders) or measure(one, *rest)
    )
    for enough, wanted in ((8, 8), (16, 16), (64, 32)):
        asked.clear()
        monkeypatch.setattr(module, "has_yardstick", only_from(enough))
        assert orders_needed(CHECK, subject, texts, audited=40) == wanted
        assert asked == [orders for orders in (4, 8, 16) if orders <= wanted]


def test_orders_that_are_given_are_kept(clear):
    subject, texts = clear
    assert replace(CHECK, orders=8).fitted(texts, subject).orders == 8


def test_more_texts_make_the_intervals_of_the_pilot_narrower():
    subject = subjects.subject("bilstm")
    encoded = [
        subject.encode(Example(n, " ".join(f"w{(n * k) % 29}" for k in range(1, 9)), 0))
        for n in range(1, 30)
    ]
    own = replace(CHECK, orders=4, costly_share=0.0)
    few, many = (module._measure(own, subject, encoded, count) for count in (29, 29 * 16))
    one, other = (e.of(NAME, "order", setting=HALF) for e in (few, many))
    assert one.value == other.value
    assert other.value - other.low == pytest.approx((one.value - one.low) / 4)


def test_the_texts_of_the_pilot_do_not_depend_on_the_order_of_the_rows():
    texts = [Example(n, f"text number {n}", 0) for n in range(100)]
    chosen = []
    for order in (range(100), np.random.default_rng(0).permutation(100).tolist()):
        pilot = PilotTexts(10)
        for n in order:
            pilot.consider(texts[n])
        chosen.append([one.text for one in pilot.chosen])
        assert pilot.considered == 100
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 10
