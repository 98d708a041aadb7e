"""From estimates to the verdict: every rule is reached, from both sides and at the edge."""

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import pytest

from heedful.checks import Findings, checks
from heedful.core.records import CLAIMS, BetterMethod, CheckResult, Estimate
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.verdict.alternatives import Alternative
from heedful.pipeline.verdict.batch_rules import BATCH_RULES
from heedful.pipeline.verdict.check_power import AuditSetting
from heedful.pipeline.verdict.evidence import Evidence
from heedful.pipeline.verdict.judge import NO_RULES, judge
from trusted import row, trusted

NOTHING = Estimate(nan, nan, nan, 0)
ALONE = Estimate(0.9, nan, nan, 1)  # one instance: a value without an interval


def around(low, high):
    return Estimate((low + high) / 2, low, high, 50)


def result(**estimates):
    return CheckResult("undecided", "", estimates)


TAUS = result(
    tau_leave_one_out=around(0.1, 0.2),
    tau_gradient_leave_one_out=around(0.5, 0.7),
    tau_shuffled_leave_one_out=around(-0.2, 0.2),
    tau_gradient=around(0.9, 0.9),
)
MIDDLE = Place(around(0.4, 0.6), around(0.5, 0.7))


def judged(results, place=None, epsilon=0.05, parts=None, rivals=(), places=None, powers=None):
    parts = parts or {name: checks.build(name) for name in results}
    evidence = Evidence(results, parts, place, epsilon, rivals, places=places or {})
    return judge(evidence, powers or trusted())


# leverage, median TVD, answer, which rule, words of the sentence
PERMUTATION = [
    (around(0.01, 0.04), around(0.01, 0.02), "against", 0, "No attention whatever moves"),
    (around(0.01, 0.04), NOTHING, "against", 0, "the most any could do is 0.025 [0.010, 0.040]."),
    (around(0.01, 0.05), around(0.01, 0.02), "against", 1, "less than the 0.05 that counts"),
    (around(0.20, 0.40), around(0.01, 0.04), "against", 1, "at most possible: 0.300 [0.200"),
    (NOTHING, around(0.01, 0.04), "against", 1, "at most possible: nan"),
    (around(0.20, 0.40), around(0.06, 0.20), "for", 2, "0.130 [0.060, 0.200], more than the 0.05"),
    (NOTHING, around(0.06, 0.20), "for", 2, "more than the 0.05"),
    (around(0.20, 0.40), around(0.04, 0.06), "undecided", 3, "which straddles 0.05."),
    (around(0.20, 0.40), around(0.01, 0.05), "undecided", 3, "straddles"),
    (around(0.20, 0.40), around(0.05, 0.20), "undecided", 3, "straddles"),
    (NOTHING, NOTHING, "undecided", 3, "nan"),
    (ALONE, ALONE, "undecided", 3, "0.900 (n = 1, no interval)"),
]
# place, gap, answer, which rule, words of the sentence
AGREEMENT = [
    (around(0.8, 0.9), around(-0.1, 0.3), "undecided", 1, "do not agree with each other beyond"),
    (around(0.8, 0.9), around(0.0, 0.3), "undecided", 1, "(by 0.150 [0.000, 0.300])"),
    (around(0.8, 0.9), NOTHING, "undecided", 1, "nothing to hold attention against"),
    (around(0.8, 0.9), ALONE, "undecided", 1, "(by 0.900 (n = 1, no interval))"),
    (around(0.6, 0.8), around(0.5, 0.7), "for", 6, "0.700 [0.600, 0.800] of the way"),
    (around(0.8, 0.95), around(0.5, 0.7), "for", 6, "nearer to the gradient."),
    (
        around(1.1, 1.3),
        around(0.5, 0.7),
        "for",
        5,
        "weak reference here and this answer a mild one.",
    ),
    (around(0.2, 0.4), around(0.5, 0.7), "against", 7, "nearer to chance."),
    (around(-0.4, -0.2), around(0.5, 0.7), "against", 7, "-0.300 [-0.400, -0.200] of the way"),
    (around(0.4, 0.6), around(0.5, 0.7), "undecided", 8, "the interval straddles the middle."),
    (around(0.5, 0.6), around(0.5, 0.7), "undecided", 8, "straddles"),
    (around(0.4, 0.5), around(0.5, 0.7), "undecided", 8, "straddles"),
    (NOTHING, around(0.5, 0.7), "undecided", 8, "straddles"),
]


def rule_of(check, evidence):
    return next(number for number, rule in enumerate(BATCH_RULES[check]) if rule.when(evidence))


@pytest.mark.parametrize(("leverage", "median", "answer", "rule", "words"), PERMUTATION)
def test_permutation(leverage, median, answer, rule, words):
    results = {"permutation": result(leverage=leverage, median_tvd=median)}
    found = judged(results)
    evidence = Evidence(results, {"permutation": checks.build("permutation")}, None, 0.05)
    assert rule_of("permutation", evidence) == rule
    assert found.checks["permutation"].answer == found.claims["used"].answer == answer
    assert words in found.checks["permutation"].why == found.claims["used"].why


def test_the_line_is_epsilon_of_the_plan():
    results = {"permutation": result(leverage=around(0.5, 0.6), median_tvd=around(0.1, 0.2))}
    assert judged(results, epsilon=0.05).claims["used"].answer == "for"
    assert judged(results, epsilon=0.15).claims["used"].answer == "undecided"
    assert judged(results, epsilon=0.25).claims["used"].answer == "against"
    assert "0.25 that counts" in judged(results, epsilon=0.25).claims["used"].why


def test_a_measure_that_is_missing_satisfies_no_rule():
    assert judged({"permutation": result()}).claims["used"].answer == "undecided"


@pytest.mark.parametrize("check", ["identifiability", "randomisation", "labels"])
def test_a_check_without_a_figure_is_undecided_and_says_why(check):
    nothing = CheckResult("undecided", "", {}, missing={"any": "nobody knows how"})
    told = judged({check: nothing}).checks[check]
    assert (told.answer, told.why) == ("undecided", "Nobody knows how.")


ANSWERS = {"for": "faithful", "against": "unfaithful", "undecided": "undecided"}


@pytest.mark.parametrize(("place", "gap", "answer", "rule", "words"), AGREEMENT)
def test_agreement_and_the_answer(place, gap, answer, rule, words):
    found = judged({"agreement": TAUS}, Place(place, gap))
    evidence = Evidence(
        {"agreement": TAUS}, {"agreement": checks.build("agreement")}, Place(place, gap), 0.05
    )
    assert rule_of("agreement", evidence) == rule
    assert found.checks["agreement"].answer == found.claims["ranks"].answer == answer
    assert found.answer == ANSWERS[answer]
    assert words in found.why == found.claims["ranks"].why == found.checks["agreement"].why
    assert found.degree is place


def test_every_rule_is_reached():
    assert {rule for *_, rule, _ in PERMUTATION} == set(range(len(BATCH_RULES["permutation"])))
    # those of agreement for equal weights and for a weak reference have tests of their own
    assert {rule for *_, rule, _ in AGREEMENT} == {1, 5, 6, 7, 8}
    assert {name: len(rules) for name, rules in BATCH_RULES.items()} == {
        "permutation": 4,
        "agreement": 9,
        "adversarial": 3,
        "erasure": 4,
        "faithfulness": 4,
    }


@pytest.mark.parametrize(
    ("top", "answer", "rule"),
    [
        (around(0.6, 0.9), "faithful", 2),
        (around(0.0, 0.1), "unfaithful", 3),
        (around(0.4, 0.6), "undecided", 4),
        (NOTHING, "undecided", 4),
    ],
)
def test_beside_a_weak_reference_the_word_that_counts_decides(top, answer, rule):
    """Attention may come near a gradient that itself finds next to nothing."""
    place = Place(around(0.7, 0.9), around(0.1, 0.3))
    results = {"agreement": result(**TAUS.estimates, top1_leave_one_out=top)}
    found = judged(results, place)
    evidence = Evidence(results, {"agreement": checks.build("agreement")}, place, 0.05)
    assert rule_of("agreement", evidence) == rule
    assert found.answer == answer
    assert f"moves the output most in {top} of the texts" in found.why
    assert "too weak a reference" in found.why


def test_equal_weights_rank_nothing():
    known = around(0.5, 0.7)
    found = judged({"agreement": result(tau_gradient_leave_one_out=known)}, Place(NOTHING, NOTHING))
    assert found.answer == "unfaithful"
    assert "the same weight, so it ranks none above another" in found.why
    assert judged({"agreement": result()}, Place(NOTHING, NOTHING)).answer == "undecided"


@pytest.mark.parametrize(
    ("share", "answer", "words"),
    [
        (around(0.9, 1.0), "against", "far."),
        (around(0.0, 0.1), "for", "near."),
        (around(0.4, 0.6), "undecided", "the interval holds the middle."),
        (around(0.5, 0.6), "undecided", "the interval holds the middle."),
        (NOTHING, "undecided", "the interval holds the middle."),
    ],
)
def test_adversarial_by_the_share_of_what_is_possible(share, answer, words):
    found = judged({"adversarial": result(of_bound=share)})
    check = found.checks["adversarial"]
    assert check.answer == found.claims["exclusive"].answer == answer
    assert f"reaches {share} of what is possible: " in check.why
    assert check.why.endswith(words)
    assert found.claims["exclusive"].checks == ("adversarial",)


@pytest.mark.parametrize(
    ("leverage", "answer"), [(around(0.01, 0.04), "against"), (around(0.2, 0.4), "undecided")]
)
def test_an_output_that_nothing_moves_is_no_one_attention_s(leverage, answer):
    known = {"leverage": leverage, "median_tvd": around(0.01, 0.02)}
    assert judged({"permutation": result(**known)}).claims["exclusive"].answer == answer


@pytest.mark.parametrize(
    ("weighting", "mixing", "words"),
    [
        (around(0.1, 0.2), around(0.3, 0.4), "more is lost in the weighting: attention does not"),
        (around(0.3, 0.4), around(0.1, 0.2), "more is lost in the mixing: what a state adds"),
        (around(0.1, 0.3), around(0.2, 0.4), ": about as much is lost in both."),
        (around(0.1, 0.2), around(0.2, 0.4), "about as much is lost in both"),
        (around(0.2, 0.4), around(0.1, 0.2), "about as much is lost in both"),
    ],
)
def test_mechanism_says_where_it_is_lost(weighting, mixing, words):
    found = judged({"mechanism": result(tau_weighting=weighting, tau_mixing=mixing)})
    check = found.checks["mechanism"]
    assert check.answer == "no vote"
    assert words in check.why
    assert f"τ {weighting}" in check.why
    assert f"τ {mixing}" in check.why
    assert {one.answer for one in found.claims.values()} == {"not examined"}


@pytest.mark.parametrize(
    ("weighting", "mixing", "unrolled", "words"),
    [
        (
            *(around(0.1, 0.2), around(0.3, 0.4), around(0.3, 0.4)),
            "more is lost in the weighting: attention does not see how much a token has to say.",
        ),
        (
            *(around(0.6, 0.7), around(0.3, 0.4), around(0.1, 0.2)),
            "takes away, and tracing wins back some that the layers below have mixed.",
        ),
        (
            *(around(0.6, 0.7), around(0.1, 0.2), around(0.3, 0.4)),
            "takes away, and tracing through the layers below loses more.",
        ),
        (
            *(around(0.1, 0.3), around(0.2, 0.4), around(0.1, 0.3)),
            ": about as much is lost in both.",
        ),
    ],
)
def test_mechanism_tells_of_layers_what_tracing_wins(weighting, mixing, unrolled, words):
    known = {"tau_weighting": weighting, "tau_mixing": mixing, "tau_unrolled": unrolled}
    check = judged({"mechanism": result(**known)}).checks["mechanism"]
    assert check.answer == "no vote"
    assert check.why.endswith(words)
    assert all(f"τ {one}" in check.why for one in known.values())


def test_mechanism_without_a_linear_decoder():
    found = judged({"mechanism": result(conicity=around(0.1, 0.2))})
    assert found.checks["mechanism"].why == "What each state adds is not known for this decoder."


def test_mechanism_on_texts_of_one_word_does_not_blame_the_decoder():
    found = judged({"mechanism": result(tau_weighting=NOTHING, tau_mixing=NOTHING)})
    assert "decoder" not in found.checks["mechanism"].why


def erased(own, chance, least=None, *, can=1.0, place=None):
    told = {"flip_top": Estimate(0.1234, 0.1, 0.2, 50), "flip_random": Estimate(0.02, 0.0, 0.1, 50)}
    told |= {"can_flip": Estimate(can, can, can, 50), "fraction_to_flip_attention": own}
    told |= {"fraction_to_flip_random": chance}
    told |= {"fraction_to_flip_optimal": least} if least else {}
    return judged({"erasure": result(**told)}, places={"erasure": place} if place else {})


@pytest.mark.parametrize(
    ("own", "least", "words"),
    [
        (around(0.2, 0.3), around(0.1, 0.2), "0.78 of the way from random to optimal, nearer to o"),
        (around(0.3, 0.44), around(0.1, 0.2), "0.51 of the way from random to optimal. Without"),
        (around(0.4, 0.5), around(0.1, 0.2), "0.33 of the way from random to optimal, nearer to r"),
        (around(0.5, 0.7), around(0.1, 0.2), "0.00 of the way from random to optimal, no better t"),
        (around(0.2, 0.3), around(0.6, 0.7), "nothing to hold attention against."),
        (ALONE, around(0.1, 0.2), "-0.67 of the way from random to optimal. Without"),
        (around(0.2, 0.3), None, "0.600 [0.550, 0.650] in a random one: fewer than by chance."),
        (around(0.7, 0.8), None, "more than by chance."),
        (around(0.5, 0.6), None, "about as many as by chance."),
    ],
)
def test_erasure_says_where_attention_stands(own, least, words):
    found = erased(own, around(0.55, 0.65), least)
    check = found.checks["erasure"]
    assert check.answer == "undecided"  # no place, no answer
    assert words in check.why
    assert f"To flip a decision {own} of the words must go in the order of attention" in check.why
    assert "Without the top weight 12.3% of decisions flip" in check.why
    assert "drawn at random, 2.0%" in check.why
    assert found.claims["ranks"].answer == found.answer == "undecided"
    assert found.claims["ranks"].checks == ("erasure",)


@pytest.mark.parametrize(
    ("place", "gap", "answer"),
    [
        (around(0.6, 0.8), around(0.1, 0.3), "for"),
        (around(0.1, 0.4), around(0.1, 0.3), "against"),
        (around(0.4, 0.6), around(0.1, 0.3), "undecided"),
        (around(0.6, 0.8), around(-0.1, 0.3), "undecided"),
    ],
)
@pytest.mark.parametrize("check", ["erasure", "faithfulness"])
def test_checks_that_place_attention_answer_by_its_place(check, place, gap, answer):
    known = result(can_flip=around(0.9, 1.0), beyond_random_attention=around(0.1, 0.2))
    found = judged({check: known}, places={check: Place(place, gap)})
    assert found.checks[check].answer == found.claims["ranks"].answer == answer


def test_erasure_that_flips_nothing_says_so():
    assert "no set of words flips any of 50 texts" in erased(NOTHING, NOTHING, NOTHING, can=0.0).why
    assert "none of the orders flips any of 50 texts" in erased(NOTHING, NOTHING, can=0.0).why
    alone = judged({"erasure": result(can_flip=NOTHING)})
    assert alone.checks["erasure"].why == "No text has two words, so no weight can be removed."


FAITHFUL = Place(around(0.6, 0.8), around(0.5, 0.7))
UNFAITHFUL = Place(around(0.1, 0.3), around(0.5, 0.7))
OPEN = Place(around(0.4, 0.6), around(0.5, 0.7))
TWO = {"erasure": result(can_flip=around(0.1, 0.2)), "agreement": TAUS}


def poor(check, right=9, wrong=1, undecided=0):
    return trusted(row("ranks", check, right, wrong, undecided))


@pytest.mark.parametrize(
    ("agreement", "erasure", "powers", "answer"),
    [
        (FAITHFUL, FAITHFUL, trusted(), "faithful"),
        (FAITHFUL, UNFAITHFUL, trusted(), "undecided"),  # both are oracles, and disagree
        (FAITHFUL, OPEN, trusted(), "faithful"),  # half of the weight is enough
        (FAITHFUL, UNFAITHFUL, poor("erasure", 6, 4), "faithful"),  # who guesses has no vote
        (FAITHFUL, UNFAITHFUL, poor("agreement", 6, 4), "unfaithful"),
        (OPEN, UNFAITHFUL, poor("erasure", 9, 1), "undecided"),  # a good witness who cannot tell
    ],
)
def test_votes_weigh_what_their_checks_are_worth(agreement, erasure, powers, answer):
    found = judged(TWO, agreement, places={"erasure": erasure}, powers=powers)
    assert found.answer == answer
    assert found.claims["ranks"].checks == ("erasure", "agreement")


def test_of_two_who_rest_on_the_same_evidence_the_better_is_heard():
    """Both delete words: two such votes are one."""
    three = {**TWO, "faithfulness": result(beyond_random_attention=around(0.1, 0.2))}
    places = {"erasure": UNFAITHFUL, "faithfulness": FAITHFUL}
    weak = row("ranks", "faithfulness", 9, 1)
    found = judged(three, FAITHFUL, places=places, powers=trusted(weak))
    assert found.answer == "undecided"  # one against one, not two against one
    better = row("ranks", "agreement", 9, 1)
    places = {"erasure": FAITHFUL, "faithfulness": FAITHFUL}
    assert judged(three, UNFAITHFUL, places=places, powers=trusted(better)).answer == "faithful"


def test_without_power_there_is_no_vote_and_it_says_so():
    unlike = trusted(where=AuditSetting("transformer", 20.0, 100))
    found = judged({"agreement": TAUS}, FAITHFUL, powers=unlike)
    assert found.checks["agreement"].answer == "no vote"
    assert (
        "its power was not measured on subjects and texts like these"
        in found.checks["agreement"].why
    )
    assert found.checks["agreement"].power["ranks"] == {"told": "power not measured"}
    assert found.claims["ranks"].answer == found.answer == "undecided"
    assert found.claims["ranks"].why.startswith("No check that was run has a vote on this.")
    guesses = judged({"agreement": TAUS}, FAITHFUL, powers=poor("agreement", 6, 4))
    assert guesses.checks["agreement"].answer == "no vote"
    assert "not right often enough" in guesses.checks["agreement"].why


def test_undecided_says_how_many_texts_would_decide():
    straddles = Place(Estimate(0.6, 0.4, 0.8, 100), around(0.5, 0.7))
    claim = judged({"agreement": TAUS}, straddles).claims["ranks"]
    assert claim.further == 300
    assert claim.why.endswith("about 300 more texts would decide.")
    assert judged({"agreement": TAUS}, OPEN).claims["ranks"].further is None  # on the line itself
    assert judged({"agreement": TAUS}, FAITHFUL).claims["ranks"].further is None


def test_claims_without_a_check_are_not_examined():
    found = judged({"permutation": result()})
    assert tuple(found.claims) == CLAIMS == ("used", "needed", "ranks", "exclusive", "robust")
    assert found.claims["exclusive"].checks == ("permutation",)
    for name in ("needed", "ranks", "robust"):
        assert found.claims[name].answer == "not examined"
        assert found.claims[name].why == "None of the checks that were run bears on this."
        assert found.claims[name].checks == ()
    assert (found.answer, found.degree, found.instead) == ("undecided", None, None)
    assert found.why == found.claims["ranks"].why


@dataclass(frozen=True)
class Mute:
    """A plug-in that bears on ranks but may not decide it."""

    claim: ClassVar[str] = "ranks"
    measures: ClassVar[tuple[str, ...]] = ("guess",)
    beside: ClassVar[tuple[str, ...]] = ()
    head_measures: ClassVar[tuple[str, ...]] = ()

    def __call__(self, context):
        return Findings(())


def test_a_check_without_rules_has_no_vote():
    found = judged({"mute": result(guess=around(0.0, 1.0))}, parts={"mute": Mute()})
    assert found.checks["mute"].answer == "no vote"
    assert found.checks["mute"].why == "No rule says what these figures mean."
    assert found.claims["ranks"].answer == "undecided"
    assert len(NO_RULES) == 1


def test_only_a_check_with_a_vote_decides_its_claim():
    parts = {"mute": Mute(), "agreement": checks.build("agreement")}
    place = Place(around(0.8, 0.9), around(0.5, 0.7))
    found = judged({"mute": result(), "agreement": TAUS}, place, parts=parts)
    assert found.claims["ranks"].answer == "for"
    assert found.claims["ranks"].checks == ("mute", "agreement")
    assert found.claims["ranks"].why == found.checks["agreement"].why


AGAINST = Place(around(0.1, 0.2), around(0.5, 0.7))


RIVALS = (
    Alternative("one_hot_gradient", around(0.5, 0.7), around(0.2, 0.4)),
    Alternative("lime", around(0.7, 0.9), around(0.3, 0.5)),
)


def test_instead_names_the_best_that_was_tried():
    found = judged({"agreement": TAUS}, AGAINST, rivals=RIVALS)
    assert found.instead == BetterMethod("lime", 0.8, 0.7, 0.9, 50)
    assert judged({"agreement": TAUS}, AGAINST).instead is None  # nothing was


@pytest.mark.parametrize("place", [around(0.8, 0.9), around(0.4, 0.6)])
def test_nothing_instead_unless_attention_fails(place):
    place = Place(place, around(0.5, 0.7))
    assert judged({"agreement": TAUS}, place, rivals=RIVALS).instead is None


def test_what_a_check_found_is_kept_beside_its_answer():
    before = CheckResult(
        "undecided", "", TAUS.estimates, {"a": TAUS.estimates}, {"x": 2}, {"y": "why not"}
    )
    after = judged({"agreement": before}, MIDDLE).checks["agreement"]
    assert (after.estimates, after.by_class) == (before.estimates, before.by_class)
    assert (after.undefined, after.missing) == (before.undefined, before.missing)


def removals(p=0.001, **others):
    own = others.pop("attention", around(0.1, 0.2))
    named = {f"beyond_random_{name}": one for name, one in {"attention": own, **others}.items()}
    tested = {"p_beyond_random_attention": Estimate(p, nan, nan, 20)}
    return judged({"faithfulness": result(**named, **tested)}).checks["faithfulness"]


@pytest.mark.parametrize(
    ("own", "p", "words"),
    [
        (around(0.1, 0.2), 0.001, ": beyond chance (p 0.001, corrected"),
        (around(-0.1, 0.2), 0.3, ": not beyond chance (p 0.3, corrected"),
        (around(-0.3, -0.2), 1.0, ": less than chance (p 1, corrected"),
    ],
)
def test_faithfulness_says_what_the_words_of_attention_do(own, p, words):
    found = removals(p, attention=own, lime=around(0.3, 0.4), occlusion=around(0.0, 0.1))
    assert found.answer == "undecided"  # leave-one-out, the other end, was not asked for
    assert words in found.why
    assert f"Of the other methods lime does most, {around(0.3, 0.4)}." in found.why


def test_faithfulness_without_texts_of_two_words_says_so():
    assert removals(attention=NOTHING).why == "No text has two words, so there is nothing to rank."


@pytest.mark.parametrize(
    ("deleted", "masked", "words"),
    [
        (around(0.2, 0.3), around(0.3, 0.4), "no stranger to the model than whole texts."),
        (around(0.2, 0.3), around(0.8, 0.9), "strange to the model, so that part of the loss"),
        (around(0.4, 0.6), around(0.3, 0.4), "about as whole ones."),
    ],
)
def test_faithfulness_says_how_strange_its_texts_are(deleted, masked, words):
    found = result(
        beyond_random_attention=around(0.1, 0.2),
        off_distribution_whole=around(0.4, 0.6),
        off_distribution_deletion=deleted,
        off_distribution_masking=masked,
    )
    why = judged({"faithfulness": found}).checks["faithfulness"].why
    assert words in why
    assert f"{deleted.value:.0%} (deletion) and {masked.value:.0%} (masking)" in why
    assert "whole)" not in why


@pytest.mark.parametrize(("way", "words"), [("deletion", "Deleting"), ("masking", "Masking")])
def test_faithfulness_says_what_was_done_to_the_words(way, words):
    found = result(
        beyond_random_attention=around(0.1, 0.2), **{f"off_distribution_{way}": around(0.4, 0.6)}
    )
    why = judged({"faithfulness": found}).checks["faithfulness"].why
    assert why.startswith(f"{words} the words that attention names takes")
    assert f"than {words.lower()} as many at random" in why
