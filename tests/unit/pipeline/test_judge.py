"""From estimates to the verdict: every rule is reached, from both sides and at the edge."""

from dataclasses import dataclass, replace
from math import nan

import pytest

from heedful.checks import CheckSpec, Measure, checks
from heedful.checks.base import Findings
from heedful.checks.spec import Evidence, apply_rules
from heedful.core.records import (
    CLAIMS,
    CheckResult,
    Estimate,
    EstimateRow,
    MissingMeasure,
)
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import AuditSetting
from heedful.pipeline.verdict.judge import check_rules, judge
from support.check_powers import row, trusted

NOTHING = Estimate(nan, nan, nan, 0)
ALONE = Estimate(0.9, nan, nan, 1)  # one instance: a value without an interval


def around(low, high):
    return Estimate((low + high) / 2, low, high, 50)


def result(**estimates):
    return CheckResult("undecided", "", estimates)


def by_method(measure, **estimates):
    return tuple(EstimateRow(measure, one, method=name) for name, one in estimates.items())


TAUS = result(
    tau_leave_one_out=around(0.1, 0.2),
    tau_gradient_leave_one_out=around(0.5, 0.7),
    tau_shuffled_leave_one_out=around(-0.2, 0.2),
    tau_gradient=around(0.9, 0.9),
)
MIDDLE = Place(around(0.4, 0.6), around(0.5, 0.7))


def evidence_of(results, place=None, epsilon=0.05, places=None):
    plan = Plan("m", "d", checks=tuple(results), epsilon=epsilon)
    placed = {**({"agreement": place} if place else {}), **(places or {})}
    return Evidence(results, plan.settings, placed, epsilon)


def judged(results, place=None, epsilon=0.05, places=None, powers=None):
    return judge(evidence_of(results, place, epsilon, places), powers or trusted())


def said(check, found, place=None, epsilon=0.05):
    """The answer of a check by its own rules, whether or not it has a vote."""
    evidence = evidence_of({check: found}, epsilon=epsilon, places={check: place} if place else {})
    return apply_rules(check_rules(checks.spec(check)), evidence)


VOTES = {"supports": "supported", "refutes": "refuted", "undecided": "undecided"}


# leverage, median TVD, answer
PERMUTATION = [
    (around(0.01, 0.04), around(0.01, 0.02), "refutes"),
    (around(0.01, 0.04), NOTHING, "refutes"),
    (around(0.01, 0.05), around(0.01, 0.02), "refutes"),
    (around(0.20, 0.40), around(0.01, 0.04), "refutes"),
    (NOTHING, around(0.01, 0.04), "refutes"),
    (around(0.20, 0.40), around(0.06, 0.20), "supports"),
    (NOTHING, around(0.06, 0.20), "supports"),
    (around(0.20, 0.40), around(0.04, 0.06), "undecided"),
    (around(0.20, 0.40), around(0.01, 0.05), "undecided"),
    (around(0.20, 0.40), around(0.05, 0.20), "undecided"),
    (NOTHING, NOTHING, "undecided"),
    (ALONE, ALONE, "undecided"),
]
# place, gap, answer
AGREEMENT = [
    (around(0.8, 0.9), around(-0.1, 0.3), "undecided"),
    (around(0.8, 0.9), around(0.0, 0.3), "undecided"),
    (around(0.8, 0.9), NOTHING, "undecided"),
    (around(0.8, 0.9), ALONE, "undecided"),
    (around(0.6, 0.8), around(0.5, 0.7), "supports"),
    (around(0.8, 0.95), around(0.5, 0.7), "supports"),
    (around(1.1, 1.3), around(0.5, 0.7), "supports"),
    (around(0.2, 0.4), around(0.5, 0.7), "refutes"),
    (around(-0.4, -0.2), around(0.5, 0.7), "refutes"),
    (around(0.4, 0.6), around(0.5, 0.7), "undecided"),
    (around(0.5, 0.6), around(0.5, 0.7), "undecided"),
    (around(0.4, 0.5), around(0.5, 0.7), "undecided"),
    (NOTHING, around(0.5, 0.7), "undecided"),
]


def names_one(sentence, *estimates):
    """Whether a sentence names one of the figures it may rest on, with its interval."""
    return any(str(one) in sentence for one in estimates)


@pytest.mark.parametrize(("leverage", "median", "answer"), PERMUTATION)
def test_permutation(leverage, median, answer):
    found = result(leverage=leverage, median_tvd=median)
    own, why = said("permutation", found)
    assert own == answer
    assert names_one(why, leverage, median)


def test_the_line_is_epsilon_of_the_plan():
    found = result(leverage=around(0.5, 0.6), median_tvd=around(0.1, 0.2))
    assert said("permutation", found, epsilon=0.05)[0] == "supports"
    assert said("permutation", found, epsilon=0.15)[0] == "undecided"
    assert said("permutation", found, epsilon=0.25)[0] == "refutes"
    assert "0.25 that counts" in said("permutation", found, epsilon=0.25)[1]


@pytest.mark.parametrize(
    ("check", "claim", "found"),
    [
        ("permutation", "used", {"leverage": around(0.2, 0.4), "median_tvd": around(0.1, 0.2)}),
        ("agreement", "ranks", TAUS.estimates),
    ],
)
def test_published_checks_are_shown_beside_ranks_and_used_and_do_not_decide(check, claim, found):
    verdict = judged({check: result(**found)}, Place(around(0.8, 0.9), around(0.5, 0.7)))
    assert verdict.checks[check].answer == "no vote"
    assert verdict.claims[claim].answer == verdict.answer == "undecided"
    assert "No check that ran has a vote" in verdict.claims[claim].why


@pytest.mark.parametrize("check", ["identifiability", "randomisation", "labels"])
def test_a_check_without_a_figure_is_undecided_and_says_why(check):
    nothing = CheckResult("undecided", "", {}, missing=(MissingMeasure("any", "nobody knows how"),))
    found = judged({check: nothing}).checks[check]
    assert (found.answer, found.why) == ("undecided", "Nobody knows how.")


@pytest.mark.parametrize(("place", "gap", "answer"), AGREEMENT)
def test_agreement(place, gap, answer):
    own, why = said("agreement", TAUS, Place(place, gap))
    assert own == answer
    assert names_one(why, place, gap)


TOP_WORDS = [
    (around(0.6, 0.9), "supports"),
    (around(0.0, 0.1), "refutes"),
    (around(0.4, 0.6), "undecided"),
    (NOTHING, "undecided"),
]
WEAK = Place(around(0.7, 0.9), around(0.1, 0.3))  # attention may come near so poor a reference


def weakly_referenced(top):
    return {"agreement": result(**TAUS.estimates, top1_leave_one_out=top)}


def test_every_rule_is_reached():
    """A rule that no case reaches would be untested, wherever it stands among the others."""
    cases = {
        "permutation": [
            evidence_of({"permutation": result(leverage=one, median_tvd=two)})
            for one, two, _ in PERMUTATION
        ],
        "agreement": [
            *(evidence_of({"agreement": TAUS}, Place(one, two)) for one, two, _ in AGREEMENT),
            *(evidence_of(weakly_referenced(top), WEAK) for top, _ in TOP_WORDS),
            evidence_of({"agreement": EQUAL_WEIGHTS}, Place(NOTHING, NOTHING)),
        ],
    }
    for name, several in cases.items():
        rules = checks.spec(name).rules
        first = [next(i for i, rule in enumerate(rules) if rule.when(one)) for one in several]
        assert set(first) == set(range(len(rules)))


@pytest.mark.parametrize(("top", "answer"), TOP_WORDS)
def test_with_a_weak_reference_the_word_that_counts_decides(top, answer):
    own, why = said("agreement", weakly_referenced(top)["agreement"], WEAK)
    assert own == answer
    assert str(top) in why


EQUAL_WEIGHTS = result(tau_gradient_leave_one_out=around(0.5, 0.7))


def test_equal_weights_rank_nothing():
    nowhere = Place(NOTHING, NOTHING)
    assert said("agreement", EQUAL_WEIGHTS, nowhere)[0] == "refutes"
    assert said("agreement", result(), nowhere)[0] == "undecided"


@pytest.mark.parametrize(
    ("share", "answer", "words"),
    [
        (around(0.9, 1.0), "refutes", "far."),
        (around(0.0, 0.1), "supports", "near."),
        (around(0.4, 0.6), "undecided", "contains the middle."),
        (around(0.5, 0.6), "undecided", "contains the middle."),
        (NOTHING, "undecided", "contains the middle."),
    ],
)
def test_adversarial_by_the_share_of_what_is_possible(share, answer, words):
    found = judged({"adversarial": result(of_bound=share)})
    check = found.checks["adversarial"]
    assert check.answer == answer
    assert found.claims["exclusive"].answer == VOTES[answer]
    assert f"reaches {share}" in check.why
    assert check.why.endswith(words)
    assert found.claims["exclusive"].checks == ("adversarial",)


@pytest.mark.parametrize(
    ("leverage", "answer"), [(around(0.01, 0.04), "refuted"), (around(0.2, 0.4), "undecided")]
)
def test_an_output_that_nothing_moves_is_no_one_attention_s(leverage, answer):
    known = {"leverage": leverage, "median_tvd": around(0.01, 0.02)}
    assert judged({"permutation": result(**known)}).claims["exclusive"].answer == answer


@pytest.mark.parametrize(
    ("weighting", "mixing", "words"),
    [
        (around(0.1, 0.2), around(0.3, 0.4), "arises in the weights"),
        (around(0.3, 0.4), around(0.1, 0.2), "arises in the encoder"),
        (around(0.1, 0.3), around(0.2, 0.4), "about as much is lost"),
        (around(0.1, 0.2), around(0.2, 0.4), "about as much is lost"),
        (around(0.2, 0.4), around(0.1, 0.2), "about as much is lost"),
    ],
)
def test_mechanism_says_where_it_is_lost(weighting, mixing, words):
    found = judged({"mechanism": result(tau_weighting=weighting, tau_mixing=mixing)})
    check = found.checks["mechanism"]
    assert check.answer == "no vote"
    assert words in check.why
    assert f"τ {weighting}" in check.why
    assert f"τ {mixing}" in check.why
    assert {one.answer for one in found.claims.values()} == {"not tested"}


@pytest.mark.parametrize(
    ("weighting", "mixing", "unrolled", "words"),
    [
        (
            *(around(0.1, 0.2), around(0.3, 0.4), around(0.3, 0.4)),
            "arises in the weights",
        ),
        (
            *(around(0.6, 0.7), around(0.3, 0.4), around(0.1, 0.2)),
            "recovers some of what they mix.",
        ),
        (
            *(around(0.6, 0.7), around(0.1, 0.2), around(0.3, 0.4)),
            "tracing through the layers below loses more.",
        ),
        (
            *(around(0.1, 0.3), around(0.2, 0.4), around(0.1, 0.3)),
            "about as much is lost",
        ),
    ],
)
def test_mechanism_tells_of_layers_what_tracing_wins(weighting, mixing, unrolled, words):
    known = {"tau_weighting": weighting, "tau_mixing": mixing, "tau_unrolled": unrolled}
    check = judged({"mechanism": result(**known)}).checks["mechanism"]
    assert check.answer == "no vote"
    assert words in check.why
    assert all(f"τ {one}" in check.why for one in known.values())


def test_mechanism_without_a_linear_decoder():
    found = judged({"mechanism": result(conicity=around(0.1, 0.2))})
    assert "is not known for this decoder" in found.checks["mechanism"].why


def test_mechanism_on_texts_of_one_word_does_not_blame_the_decoder():
    found = judged({"mechanism": result(tau_weighting=NOTHING, tau_mixing=NOTHING)})
    assert "decoder" not in found.checks["mechanism"].why


def erased(own, chance, least=None, *, can=1.0):
    known = {
        "flip_top": Estimate(0.1234, 0.1, 0.2, 50),
        "flip_random": Estimate(0.02, 0.0, 0.1, 50),
    }
    known |= {"can_flip": Estimate(can, can, can, 50), "fraction_to_flip_attention": own}
    known |= {"fraction_to_flip_random": chance}
    known |= {"fraction_to_flip_optimal": least} if least else {}
    return said("erasure", result(**known))


@pytest.mark.parametrize(
    ("own", "least", "words"),
    [
        (around(0.2, 0.3), around(0.1, 0.2), "0.78 of the way from random to optimal, nearer to o"),
        (around(0.3, 0.44), around(0.1, 0.2), "0.51 of the way from random to optimal. Without"),
        (around(0.4, 0.5), around(0.1, 0.2), "0.33 of the way from random to optimal, nearer to r"),
        (around(0.5, 0.7), around(0.1, 0.2), "0.00 of the way from random to optimal, no better t"),
        (around(0.2, 0.3), around(0.6, 0.7), "there is no scale for attention."),
        (ALONE, around(0.1, 0.2), "-0.67 of the way from random to optimal. Without"),
        (around(0.2, 0.3), None, "0.600 [0.550, 0.650] in random order: fewer than by chance."),
        (around(0.7, 0.8), None, "more than by chance."),
        (around(0.5, 0.6), None, "about as many as by chance."),
    ],
)
def test_erasure_says_where_attention_stands(own, least, words):
    answer, why = erased(own, around(0.55, 0.65), least)
    assert answer == "no vote"
    assert words in why
    assert f"{own} of the words must go in the order of attention" in why
    assert "Without the top weight 12.3% of decisions flip" in why
    assert "random word 2.0%" in why


BEYOND = by_method("beyond_random", attention=around(0.1, 0.2))


def test_erasure_that_flips_nothing_says_so():
    assert "no set of words flips any of 50 texts" in erased(NOTHING, NOTHING, NOTHING, can=0.0)[1]
    assert "none of the orders flips any of 50 texts" in erased(NOTHING, NOTHING, can=0.0)[1]
    alone = said("erasure", result(can_flip=NOTHING))
    assert alone[1] == "No text has two words, so no weight can be removed."


def adversarial(share):
    return {"adversarial": result(of_bound=share)}


def poor(right=9, wrong=1, undecided=0):
    return trusted(row("exclusive", "adversarial", right, wrong, undecided))


NEAR, FAR, OPEN = around(0.1, 0.2), around(0.8, 0.9), around(0.4, 0.6)


@pytest.mark.parametrize(
    ("powers", "answer"),
    [(trusted(), "supported"), (poor(9, 1), "supported"), (poor(6, 4), "undecided")],
)
def test_a_check_votes_where_it_is_right_often_enough(powers, answer):
    assert judged(adversarial(NEAR), powers=powers).claims["exclusive"].answer == answer


def test_one_distant_attention_settles_exclusive():
    moved = {"permutation": result(leverage=around(0.01, 0.04), median_tvd=around(0.01, 0.02))}
    found = judged({**adversarial(NEAR), **moved})
    assert found.claims["exclusive"].answer == "refuted"
    assert found.claims["exclusive"].checks == ("adversarial", "permutation")


def test_without_power_there_is_no_vote_and_it_says_so():
    unlike = trusted(where=AuditSetting("transformer", 20.0, 100))
    found = judged(adversarial(FAR), powers=unlike)
    assert found.checks["adversarial"].answer == "no vote"
    assert "its power was not measured" in found.checks["adversarial"].why
    assert found.checks["adversarial"].power["exclusive"] == {"description": "power not measured"}
    assert found.claims["exclusive"].answer == "undecided"
    assert found.claims["exclusive"].why.startswith("No check that ran has a vote")
    guesses = judged(adversarial(FAR), powers=poor(6, 4))
    assert guesses.checks["adversarial"].answer == "no vote"
    assert "not right often enough" in guesses.checks["adversarial"].why


def test_undecided_says_how_many_texts_would_decide():
    claim = judged(adversarial(Estimate(0.6, 0.4, 0.8, 100))).claims["exclusive"]
    assert claim.further == 300
    assert claim.why.endswith("about 300 more texts would decide.")
    assert judged(adversarial(OPEN)).claims["exclusive"].further is None  # on the line itself
    assert judged(adversarial(FAR)).claims["exclusive"].further is None


def test_claims_without_a_check_are_not_tested():
    found = judged({"permutation": result()})
    assert tuple(found.claims) == CLAIMS == ("used", "needed", "ranks", "exclusive", "robust")
    assert found.claims["exclusive"].checks == ("permutation",)
    for name in ("needed", "ranks", "robust"):
        assert found.claims[name].answer == "not tested"
        assert found.claims[name].why == "No check that ran is about this claim."
        assert found.claims[name].checks == ()
    assert (found.answer, found.degree, found.instead) == ("undecided", None, None)
    assert all(found.claims[name].why in found.why for name in ("ranks", "used"))


@dataclass(frozen=True)
class Mute:
    """A check that measures nothing."""

    def __call__(self, context):
        return Findings(())


@pytest.fixture
def mute(monkeypatch):
    """A plug-in about exclusive, without rules."""
    spec = CheckSpec("mute", "?", (Measure("guess", "a guess"),), Mute, claim="exclusive")
    monkeypatch.setitem(checks._parts, "mute", spec)


@pytest.mark.usefixtures("mute")
def test_a_check_without_rules_has_no_vote():
    found = judged({"mute": result(guess=around(0.0, 1.0))})
    assert found.checks["mute"].answer == "no vote"
    assert found.checks["mute"].why == "A guess: 0.500 [0.000, 1.000]."
    assert found.claims["exclusive"].answer == "undecided"


@pytest.mark.usefixtures("mute")
def test_only_a_check_with_a_vote_decides_its_claim():
    found = judged({"mute": result(), **adversarial(FAR)})
    assert found.claims["exclusive"].answer == "refuted"
    assert found.claims["exclusive"].checks == ("adversarial",)
    assert found.claims["exclusive"].why == found.checks["adversarial"].why


def test_what_a_check_found_is_kept_with_its_answer():
    before = CheckResult(
        *("undecided", "", TAUS.estimates, (EstimateRow("tau_gradient", ALONE, predicted="a"),)),
        *({"x": 2}, (MissingMeasure("y", "why not"),)),
    )
    after = judged({"agreement": before}, MIDDLE).checks["agreement"]
    assert (after.estimates, after.by) == (before.estimates, before.by)
    assert (after.undefined, after.missing) == (before.undefined, before.missing)


def removals(p=0.001, **others):
    own = {"attention": others.pop("attention", around(0.1, 0.2)), **others}
    tested = by_method("p_beyond_random", attention=Estimate(p, nan, nan, 20))
    found = replace(result(), by=(*by_method("beyond_random", **own), *tested))
    return said("faithfulness", found)


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
    answer, why = found
    assert answer == "no vote"
    assert words in why
    assert f"lime has the largest effect, {around(0.3, 0.4)}." in why


def test_faithfulness_without_texts_of_two_words_says_so():
    assert removals(attention=NOTHING)[1] == "No text has two words, so there is nothing to rank."


@pytest.mark.parametrize(
    ("deleted", "masked", "words"),
    [
        (around(0.2, 0.3), around(0.3, 0.4), "no farther than whole texts."),
        (around(0.2, 0.3), around(0.8, 0.9), "off distribution"),
        (around(0.4, 0.6), around(0.3, 0.4), "about as far as whole texts."),
    ],
)
def test_faithfulness_says_how_far_its_texts_are_from_whole_ones(deleted, masked, words):
    found = result(
        off_distribution_whole=around(0.4, 0.6),
        off_distribution_deletion=deleted,
        off_distribution_masking=masked,
    )
    found = replace(found, by=BEYOND)
    why = said("faithfulness", found)[1]
    assert words in why
    assert f"{deleted.value:.0%} (deletion) and {masked.value:.0%} (masking)" in why
    assert "whole)" not in why


@pytest.mark.parametrize(("way", "words"), [("deletion", "Deleting"), ("masking", "Masking")])
def test_faithfulness_says_what_was_done_to_the_words(way, words):
    found = replace(result(**{f"off_distribution_{way}": around(0.4, 0.6)}), by=BEYOND)
    why = said("faithfulness", found)[1]
    assert why.startswith(f"{words} the words that attention ranks")
    assert f"than {words.lower()} as many" in why
