"""The benchmark of methods: an oracle, chance, refusals, and who is scored on what."""

import json
from collections import Counter
from importlib.metadata import EntryPoint
from typing import ClassVar

import numpy as np
import pytest

from heedful.core import registry
from heedful.core.errors import ConfigError, NotApplicable, ShapeError, UnknownName
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.methods.base import default_methods, explanation_from_scores
from heedful.planted import influence_cases, influence_kinds, score_methods
from heedful.planted.influence.kind import InfluenceTruth, KnownText, Mixture
from heedful.planted.scoring.score_methods import attention_is_right, find_kinds
from support import influence_kinds as tiny


@pytest.fixture(autouse=True)
def tiny_kinds(monkeypatch):
    tiny.register(monkeypatch)


def oracle(subject, example):
    """What each word says: strong ones 4, weak ones 2, the others nothing."""
    ids = [int(word.removeprefix("w")) for word in example.text.split()]
    return [4.0 if one < tiny.STRONG else 2.0 if one < tiny.WEAK else 0.0 for one in ids]


def at_random(subject, example):
    return generator(3, f"at random {example.text}").random(len(example.text.split())).tolist()


def refuses_long_texts(subject, example):
    if len(example.text.split()) > 8:
        raise NotApplicable("texts of more than 8 words are too long.")
    return oracle(subject, example)


def scores_of(name, one, **settings):
    return score_methods((), others={name: one}, **settings).methods[name]


def test_an_oracle_has_every_measure_1():
    found = scores_of("oracle", oracle).all_texts
    for one in (found.top_word, found.top_set, found.top_set_above_chance, found.order):
        assert (one.value, one.high, one.n) == (1.0, 1.0, 3)
        assert one.low < 0.6  # three kinds say little


def test_random_scores_are_at_chance_within_their_interval():
    found = scores_of("random", at_random, texts=300).all_texts
    assert found.top_word.value == pytest.approx(found.top_word_chance, abs=0.04)
    assert found.top_set.value == pytest.approx(found.top_set_chance, abs=0.04)
    above, order = found.top_set_above_chance, found.order
    assert above.low < 0.0 < above.high
    assert above.value == pytest.approx(0.0, abs=0.06)
    assert order.low < 0.5 < order.high
    assert order.value == pytest.approx(0.5, abs=0.03)


def test_kinds_count_alike_however_many_texts_were_scored():
    found = scores_of("half", refuses_long_texts)
    shares = found.by_kind("top_set_chance")
    assert found.all_texts.top_set_chance == pytest.approx(np.nanmean(shares))


def test_attention_is_good_where_it_is_planted_right_and_bad_where_it_is_planted_wrong():
    found = score_methods(["attention"]).methods["attention"]
    assert found.attention_right.top_set.value == 1.0
    assert found.attention_wrong.top_set.value < found.attention_wrong.top_set_chance / 2
    assert found.attention_right.top_set.n == 2  # one kind, and one part of the mixed kind
    assert found.attention_wrong.top_set.n == 2


def test_the_oracle_does_not_care_where_attention_is_wrong():
    found = scores_of("oracle", oracle)
    assert found.attention_wrong.order.value == found.attention_right.order.value == 1.0


def test_refused_texts_and_kinds_are_counted_with_their_reasons():
    found = score_methods(["rollout"], others={"half": refuses_long_texts})
    half, rollout = found.methods["half"], found.methods["rollout"]
    texts = [one.text for case in found.cases for one in case.known(20)]
    long = sum(len(text.split()) > 8 for text in texts)
    assert 0 < long < len(texts) == 60
    assert half.refused == {"texts of more than 8 words are too long.": long}
    assert half.served == (3, 60 - long)
    assert half.all_texts.top_set.value == 1.0  # of those that it served
    assert rollout.served == (0, 0)
    assert rollout.refused_kinds == 3
    assert sum(rollout.refused.values()) == 60
    assert np.isnan(rollout.all_texts.top_set.value)
    assert np.isnan(rollout.cpu_seconds)
    assert found.ranking[-1] is rollout


def test_methods_of_the_package_are_scored_by_name_or_built():
    built = score_methods(["gradient"], others={"mine": methods.build("gradient")})
    first, second = built.methods["gradient"], built.methods["mine"]
    assert first.all_texts == second.all_texts
    assert first.cpu_seconds > 0
    assert first.passes > 1  # a pass and its way back


def test_without_names_those_are_scored_that_run_unasked():
    assert tuple(score_methods(texts=1).methods) == default_methods()


class LowNumbers:
    """A method of another package: words with low numbers first, which here are those that say."""

    kind: ClassVar = "saliency"
    signed, join = False, "sum"

    def __call__(self, context, target):
        scores = 1.0 / (1.0 + context.batch.ids.double())
        return explanation_from_scores("low_numbers", context, scores)


def test_a_method_of_another_package_is_scored_by_the_name_of_its_entry_point(monkeypatch):
    plugin = EntryPoint("low_numbers", f"{__name__}:LowNumbers", "heedful.methods")
    monkeypatch.setattr(registry, "entry_points", lambda group: [plugin])
    monkeypatch.setattr(methods, "_parts", dict(methods._parts))
    monkeypatch.setattr(methods, "_plugins_loaded", False)
    found = score_methods(["low_numbers"]).methods["low_numbers"]
    assert found.served == (3, 60)
    assert found.all_texts.top_set.value == found.all_texts.order.value == 1.0
    assert "low_numbers" in default_methods()


def test_figures_do_not_depend_on_the_other_methods_or_the_number_of_kinds():
    alone = score_methods(["random"], kinds=["plain-wrong"]).methods["random"]
    among = score_methods(["gradient", "random"]).methods["random"]
    own, others = alone.kinds["plain-wrong"], among.kinds["plain-wrong"]
    assert [one.score for one in own] == [one.score for one in others]


def test_another_seed_draws_other_texts():
    one, other = (score_methods(["random"], seed=seed).to_dict() for seed in (0, 1))
    assert one["methods"]["random"]["by_kind"] != other["methods"]["random"]["by_kind"]


def test_the_dictionary_is_ready_for_json():
    found = score_methods(["attention", "rollout"], texts=4).to_dict()
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again["planted_version"] == 3
    assert (again["seed"], again["texts_per_kind"]) == (0, 4)
    assert again["kinds"]["mixed-class"]["mixed"] is True
    assert list(again["methods"]) == ["attention", "rollout"]  # the best top set first
    attention, rollout = again["methods"].values()
    assert set(attention["top_set"]) == {"value", "low", "high", "n"}
    assert set(attention) == {
        *("top_word", "top_word_chance", "top_set", "top_set_chance", "top_set_above_chance"),
        *("order", "attention_right", "attention_wrong", "cost", "served", "refused", "by_kind"),
    }
    assert rollout["top_set"]["value"] is None
    assert attention["by_kind"]["plain-right"]["top_set"] == 1.0


def test_kinds_are_chosen_by_name_or_family():
    assert find_kinds(["mixed-class", "plain"]) == ["plain-right", "plain-wrong", "mixed-class"]
    assert find_kinds(None) == list(influence_kinds())
    found = score_methods(["attention"], kinds=["plain"], texts=2)
    assert [case.kind for case in found.cases] == ["plain-right", "plain-wrong"]


def test_attention_is_right_by_part_where_a_kind_is_mixed():
    mixture = Mixture("ranks", "class", holds="yes", fails="no")
    truth = InfluenceTruth(True, None, mixture)
    parts = {"yes": True, "no": False, "": None}
    for part, right in parts.items():
        assert attention_is_right(truth, KnownText("a", (), part=part)) is right
    unused = InfluenceTruth(None, True, Mixture("used", "class", holds="yes", fails="no"))
    assert attention_is_right(unused, KnownText("a", (), part="no")) is True
    case = influence_cases(0, 3)[2]
    found = Counter(attention_is_right(case.truth, one) for one in case.known(40))
    assert set(found) == {True, False}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["atention"]}, "Did you mean 'attention'"),
        ({"kinds": ["plane"]}, "Did you mean 'plain'"),
        ({"others": {"attention": oracle}, "methods": ["attention"]}, "Two methods have the name"),
        ({"methods": ()}, "No method was given"),
        ({"kinds": ()}, "No kinds were given"),
        ({"texts": 0}, "texts must be at least 1, not 0"),
    ],
)
def test_wrong_requests_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        score_methods(**settings)


def test_an_unknown_name_is_named_before_any_work(monkeypatch):
    with pytest.raises(UnknownName):
        score_methods(["gradient", "nothing"], progress=lambda *_: pytest.fail("work began"))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda *_: [1.0], ShapeError, "bad must give one score for each word of a text"),
        (lambda *_: 1 / 0, ConfigError, "bad failed on a text of planted-test: ZeroDivisionError"),
    ],
)
def test_a_broken_method_is_named(given, error, message):
    with pytest.raises(error, match=message):
        scores_of("bad", given)


def test_scores_that_are_not_finite_are_counted_as_refused():
    found = scores_of("bad", lambda *_: [float("nan")] * 99)
    assert found.refused == {"bad gave a score that is not finite.": 60}
    assert found.served == (0, 0)
