"""When attention ranks words by influence, when it is used, and why an answer stays open."""

from dataclasses import replace
from math import nan

import pytest

from heedful.checks.influence.names import (
    CROSS_FITTED,
    HALF,
    MASKING,
    MEAN,
    NAME,
    NEAR_FULL,
    SHUFFLED,
)
from heedful.checks.influence.rules import RANKS_RULES, USED_RULES
from heedful.checks.spec import Evidence, apply_rules
from heedful.core.records import CheckResult, Estimate, EstimateRow, MissingMeasure
from heedful.pipeline.verdict.judge import judge
from support.check_powers import trusted

ABOVE, BELOW, AROUND, NOTHING = (
    Estimate(0.8, 0.7, 0.9, 100),
    Estimate(0.2, 0.1, 0.3, 100),
    Estimate(0.55, 0.4, 0.7, 100),
    Estimate(nan, nan, nan, 0),
)
UNDER = Estimate(0.45, 0.3, 0.6, 100)


def rows(order=ABOVE, mean=ABOVE, top_set=ABOVE, top_word=ABOVE, fair=None, **more):
    places = {
        ("order", "attention", None): order,
        ("order", "attention", MEAN): mean,
        ("top_set", "attention", None): top_set,
        ("top_word", "attention", None): top_word,
        ("top_word", "attention", CROSS_FITTED): top_word if fair is None else fair,
        ("order", None, HALF): ABOVE,
        ("order", None, f"{HALF}, {MEAN}"): ABOVE,
        ("top_set", None, HALF): ABOVE,
        ("top_word", None, HALF): ABOVE,
        **{("order", "attention", f"{SHUFFLED}{one}"): BELOW for one in ("", f", {MEAN}")},
        ("share_below", None, "0.05"): Estimate(0.02, 0.0, 0.05, 100),
        **more.get("places", {}),
    }
    return tuple(
        EstimateRow(measure, one, method=method, setting=setting)
        for (measure, method, setting), one in places.items()
    )


SOME_TEXTS = Estimate(0.3, 0.2, 0.4, 100)


def evidence(
    by=None,
    *,
    reliability=ABOVE,
    gap=ABOVE,
    leverage=ABOVE,
    words=None,
    missing=(),
    spread=BELOW,
    reversed_in=NOTHING,
):
    estimates = {"reliability": reliability, "top_set_gap": gap, "leverage_top": leverage}
    estimates |= {"dispersion": spread, "share_not_ranked": reversed_in}
    estimates["leverage_words"] = leverage if words is None else words
    result = CheckResult("undecided", "", estimates, rows() if by is None else by, missing=missing)
    return Evidence({NAME: result})


def ranks(*args, **keys):
    return apply_rules(RANKS_RULES, evidence(*args, **keys))


def used(*args, **keys):
    return apply_rules(USED_RULES, evidence(*args, **keys))


@pytest.mark.parametrize(
    ("places", "answer"),
    [
        ({}, "supports"),
        ({"order": AROUND}, "undecided"),
        ({"mean": AROUND}, "undecided"),
        ({"top_set": AROUND}, "undecided"),
        ({"top_word": AROUND}, "undecided"),
        ({"order": BELOW, "mean": BELOW, "top_set": BELOW, "top_word": BELOW}, "refutes"),
        ({"order": BELOW, "mean": BELOW, "top_set": BELOW, "top_word": AROUND}, "refutes"),
        ({"order": BELOW, "mean": UNDER, "top_set": AROUND, "top_word": BELOW}, "refutes"),
        ({"order": BELOW, "mean": AROUND, "top_set": BELOW, "top_word": BELOW}, "undecided"),
        ({"order": BELOW, "mean": BELOW, "top_set": AROUND, "top_word": AROUND}, "undecided"),
        ({"order": BELOW, "mean": BELOW, "top_set": BELOW, "top_word": ABOVE}, "undecided"),
        ({"order": AROUND, "mean": BELOW, "top_set": BELOW, "top_word": BELOW}, "undecided"),
        # refuted only by the top word that was chosen on other orders
        (
            {"order": BELOW, "mean": BELOW, "top_set": AROUND, "top_word": BELOW, "fair": AROUND},
            "undecided",
        ),
    ],
)
def test_places_decide_together(places, answer):
    found, why = ranks(rows(**places))
    assert found == answer
    assert all(
        str(one) in why for one in {*places.values()} - {ABOVE, BELOW} if found == "undecided"
    )


def test_top_words_that_change_nothing_more_than_random_ones_abstain():
    found, why = ranks(gap=Estimate(0.01, -0.01, 0.03, 100))
    assert found == "undecided"
    assert "the top words cannot be compared" in why
    below = rows(order=BELOW, mean=BELOW, top_set=ABOVE, top_word=BELOW)
    assert ranks(below, gap=Estimate(0.01, -0.01, 0.03, 100))[0] == "refutes"


def test_without_a_reliable_yardstick_nothing_is_decided():
    found, why = ranks(reliability=Estimate(0.5, 0.4, 0.6, 100))
    assert found == "undecided"
    assert "no yardstick" in why
    assert ranks(reliability=NOTHING)[0] == "undecided"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (("top_set", None, HALF), AROUND, "independent estimate"),
        (("order", None, HALF), BELOW, "independent estimate"),
    ],
)
def test_a_control_that_fails_leaves_no_yardstick(key, value, words):
    found, why = ranks(rows(places={key: value}))
    assert found == "undecided"
    assert words in why


def test_shuffled_attention_must_not_rank_words():
    shuffled = {
        (measure, "attention", setting): ABOVE
        for measure, setting in (
            ("order", SHUFFLED),
            ("order", f"{SHUFFLED}, {MEAN}"),
            ("top_set", SHUFFLED),
            ("top_word", SHUFFLED),
        )
    }
    found, why = ranks(rows(places=shuffled))
    assert found == "undecided"
    assert "shuffled attention" in why


@pytest.mark.parametrize(
    ("reading", "value", "answer"),
    [
        (MASKING, UNDER, "undecided"),
        (MASKING, AROUND, "supports"),
        (NEAR_FULL, BELOW, "undecided"),
        (NEAR_FULL, UNDER, "supports"),
    ],
)
def test_second_readings_must_not_contradict(reading, value, answer):
    found, why = ranks(rows(places={("order", "attention", reading): value}))
    assert found == answer
    assert (str(value) in why) == (answer == "undecided")


def parts_of(split, above, below, p=0.001, measure="order"):
    named = {"above": f"{split}: {above}", "below": f"{split}: {below}"}
    share = Estimate(0.4, 0.3, 0.5, 100)
    return (
        *(
            EstimateRow(f"p_{side}", Estimate(p, nan, nan, 100), setting=measure, slice=name)
            for side, name in named.items()
        ),
        *(EstimateRow("share", share, slice=name) for name in named.values()),
    )


def test_parts_of_the_texts_that_answer_differently_are_named():
    found, why = ranks((*rows(), *parts_of("class", "texts predicted a", "texts predicted b")))
    assert found == "undecided"
    assert "holds for texts predicted a (40% of the texts), not for texts predicted b" in why


def test_p_values_of_parts_are_corrected_for_their_number():
    parts = parts_of("class", "a", "b", p=0.02)
    assert ranks((*rows(), *parts))[0] == "undecided"
    many = [row for n in range(5) for row in parts_of(f"split{n}", "a", "b", p=0.9)]
    assert ranks((*rows(), *parts, *many))[0] == "supports"


def test_texts_that_differ_more_than_by_chance_leave_the_answer_open():
    wide = Estimate(1.6, 1.2, 2.0, 100)
    found, why = ranks(spread=wide, reversed_in=SOME_TEXTS)
    assert found == "undecided"
    assert str(wide) in why
    assert "30 % [20, 40]" in why
    assert ranks(spread=Estimate(1.1, 0.9, 1.3, 100), reversed_in=SOME_TEXTS)[0] == "supports"


def test_texts_that_are_all_ranked_more_or_less_well_do_not_answer_differently():
    wide = Estimate(1.6, 1.2, 2.0, 100)
    assert ranks(spread=wide, reversed_in=Estimate(0.05, 0.02, 0.09, 100))[0] == "supports"


def test_equal_weights_rank_nothing():
    zero = Estimate(0.0, 0.0, 0.0, 100)
    found, why = ranks(rows(order=zero, mean=zero, top_set=zero, top_word=zero))
    assert found == "refutes"
    assert "ranks nothing" in why


LITTLE, MUCH, SOME = (
    Estimate(0.02, 0.01, 0.03, 100),
    Estimate(0.3, 0.2, 0.4, 100),
    Estimate(0.05, 0.03, 0.07, 100),
)


@pytest.mark.parametrize(
    ("leverage", "answer"), [(MUCH, "supports"), (LITTLE, "refutes"), (SOME, "undecided")]
)
def test_attention_is_used_where_other_weights_change_the_output(leverage, answer):
    found, why = used(leverage=leverage)
    assert found == answer
    assert str(leverage) in why


def test_attention_that_only_moves_the_output_by_other_words_is_not_refuted():
    assert used(leverage=LITTLE, words=MUCH)[0] == "undecided"


def test_attention_that_matters_in_some_texts_only_is_undecided_and_the_share_is_named():
    half = {("share_below", None, "0.05"): Estimate(0.5, 0.4, 0.6, 100)}
    found, why = used(rows(places=half), leverage=MUCH)
    assert found == "undecided"
    assert "50 % [40, 60]" in why
    few = {("share_below", None, "0.05"): Estimate(0.09, 0.05, 0.14, 100)}
    assert used(rows(places=few), leverage=MUCH)[0] == "supports"


def test_a_class_in_which_attention_is_not_used_is_named():
    parts = parts_of("class", "texts predicted a", "texts predicted b", measure="leverage_top")
    found, why = used((*rows(), *parts), leverage=MUCH)
    assert found == "undecided"
    assert "texts predicted b" in why


def test_an_output_that_cannot_be_computed_is_not_tested():
    missing = (MissingMeasure("leverage_top", "this decoder takes no weights"),)
    found = judge(evidence(leverage=NOTHING, missing=missing), trusted())
    assert found.claims["used"].answer == "not tested"
    assert "this decoder takes no weights" in found.claims["used"].why
    assert found.answer == "undecided"


@pytest.mark.parametrize(
    ("order", "leverage", "answer"),
    [
        (ABOVE, MUCH, "faithful"),
        (ABOVE, LITTLE, "unfaithful"),
        (ABOVE, SOME, "undecided"),
        (BELOW, MUCH, "unfaithful"),
        (AROUND, LITTLE, "unfaithful"),
        (AROUND, MUCH, "undecided"),
    ],
)
def test_attention_explains_a_model_where_it_ranks_words_and_is_used(order, leverage, answer):
    by = rows(order=order, mean=order, top_set=order, top_word=order)
    found = judge(evidence(by, leverage=leverage), trusted())
    assert found.answer == answer
    assert found.degree is not None
    assert (found.degree.of, found.degree.estimate) == ("order", order)
    assert found.places["order"] == order
    assert found.claims["ranks"].checks == found.claims["used"].checks == (NAME,)


def test_more_texts_are_named_only_where_they_would_decide():
    needed = judge(evidence(rows(top_word=AROUND), leverage=MUCH), trusted()).claims["ranks"]
    assert needed.answer == "undecided"
    assert needed.further == 800  # the interval of the top word reaches three times too far
    assert "800 more texts would decide" in needed.why
    for other in (
        evidence(rows(top_word=AROUND), reliability=UNDER),
        evidence((*rows(order=AROUND), *parts_of("class", "a", "b"))),
        evidence(rows(order=AROUND, places={("top_set", None, HALF): BELOW})),
    ):
        claim = judge(other, trusted()).claims["ranks"]
        assert (claim.answer, claim.further) == ("undecided", None)


def test_every_rule_is_reached_first_by_some_evidence():
    zero = Estimate(0.0, 0.0, 0.0, 100)
    mixed = parts_of("class", "a", "b")
    several = [
        Evidence({NAME: replace(evidence().results[NAME], estimates={}, by=())}),
        evidence(reliability=NOTHING),
        evidence(reliability=Estimate(nan, nan, nan, 100)),
        evidence(reliability=UNDER),
        evidence(rows(places={("top_set", None, HALF): BELOW})),
        evidence((*rows(), *mixed)),
        evidence(spread=Estimate(1.6, 1.2, 2.0, 100), reversed_in=SOME_TEXTS),
        evidence(rows(places={("order", "attention", MASKING): BELOW})),
        evidence(),
        evidence(rows(zero, zero, zero, zero)),
        evidence(rows(BELOW, BELOW, BELOW, BELOW)),
        evidence(rows(AROUND)),
    ]
    first = [next(i for i, rule in enumerate(RANKS_RULES) if rule.when(e)) for e in several]
    assert first == list(range(len(RANKS_RULES)))
