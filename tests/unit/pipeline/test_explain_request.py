"""Which methods are asked for, with which settings, in whatever form."""

import pytest

from heedful.core.errors import ConfigError, UnknownName
from heedful.methods import methods
from heedful.pipeline.explain.request import (
    ExplainRequest,
    default_methods,
    resolve_methods,
)
from support.known_methods import MADE_UP, registered


@pytest.fixture
def made_up(monkeypatch):
    registered(monkeypatch)


def test_usual_are_all_but_the_slow_the_patented_and_the_controls():
    usual = default_methods()
    slow, patented = {"flow", "lime", "kernel_shap", "shapley", "diffmask"}, {"lrp"}
    assert set(methods) - set(usual) == slow | patented | {"relevance_rollout", "random", "uniform"}
    assert {"attention", "leave_one_out", "one_hot_gradient"} <= set(usual)
    assert tuple(resolve_methods(None)) == tuple(resolve_methods(())) == usual
    assert tuple(resolve_methods({})) == tuple(resolve_methods("")) == usual


@pytest.mark.parametrize("wanted", ["all", ("all",), ["short", "all"], "short, all"])
def test_all_means_all(made_up, wanted):
    assert tuple(resolve_methods(wanted)) == tuple(MADE_UP)


@pytest.mark.parametrize(
    "wanted",
    ["short,never", ["short", "never"], ("short", "never", "short"), {"short": {}, "never": {}}],
)
def test_names_in_any_form_keep_their_order(made_up, wanted):
    assert resolve_methods(wanted) == {"short": {}, "never": {}}


def test_settings_of_both_sources_come_together(made_up):
    chosen = resolve_methods({"counting": {"scale": 2}}, {"counting": {"how": "minus"}})
    assert chosen == {"counting": {"scale": 2, "how": "minus"}}


WRONG = {
    "a method": ("contig", {}, "Did you mean 'counting'?"),
    "a method of a setting": ((), {"contig": {"scale": 1}}, "Did you mean 'counting'?"),
    "a setting": (
        (),
        {"counting": {"size": 1}},
        "method 'counting' has no setting 'size'. Settings: scale, how, most, of, players.",
    ),
    "no settings": ((), {"short": {"size": 1}}, "has no setting 'size'. Settings: none."),
    "not chosen": (
        ("short",),
        {"counting": {"scale": 1}},
        "counting.scale was set, but counting is not among the methods: short.",
    ),
    "a name for a number": (
        {"counting": {"scale": "much"}},
        {},
        "counting.scale must be a number, not 'much'.",
    ),
    "truth for a number": (
        {"counting": {"scale": True}},
        {},
        "counting.scale must be a number, not True.",
    ),
    "a name that is none": (
        {"counting": {"how": "so"}},
        {},
        "counting.how must be plain or minus, not 'so'.",
    ),
    "half a number": (
        {"counting": {"most": 1.5}},
        {},
        "counting.most must be a whole number, not 1.5.",
    ),
    "what the method refuses": ({"counting": {"scale": 0}}, {}, "scale must not be 0."),
    "no mapping": ({"counting": 3}, {}, "The settings of counting must be a mapping, not 3."),
    "no names": ([3], {}, "methods must be names, or a mapping from names; got (3,)."),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_choices_are_told_with_what_exists(made_up, as_in_use, case):
    wanted, settings, said = WRONG[case]
    with pytest.raises(ConfigError) as caught:
        resolve_methods(wanted, settings)
    assert said in str(caught.value)
    assert isinstance(caught.value, UnknownName) == ("Did you mean" in said)


@pytest.mark.parametrize("value", [None, 3])
def test_a_setting_may_be_of_several_types(made_up, value):
    assert resolve_methods({"counting": {"most": value}})["counting"] == {"most": value}


@pytest.mark.parametrize(("granularity", "players"), [("word", "words"), ("token", "tokens")])
def test_players_follow_what_is_shown_unless_they_were_set(made_up, granularity, players):
    built = ExplainRequest({"counting": {}, "short": {}}, granularity=granularity).build()
    assert built.parts["counting"].players == players
    assert built.settings == {"counting": {}, "short": {}}
    for own in ("words", "tokens"):
        asked = ExplainRequest({"counting": {"players": own}}, granularity=granularity)
        assert asked.build().parts["counting"].players == own


def test_of_goes_to_all_that_know_it_and_whom_it_does_not_suit_is_refused(made_up):
    built = ExplainRequest({"counting": {}, "short": {}}, of="logit").build()
    assert built.parts["counting"].of == "logit"
    built = ExplainRequest({"counting": {}, "short": {}}, of="log_odds").build()
    assert built.refused == {"counting": "of must be probability or logit, not 'log_odds'."}
    assert list(built.parts) == ["short"]
    asked = ExplainRequest({"counting": {"of": "probability"}}, of="log_odds")
    assert asked.build().parts["counting"].of == "probability"


def test_settings_that_are_the_usual_ones_are_not_told(made_up):
    given = {"scale": 1.0, "how": "minus", "of": "logit"}
    assert ExplainRequest({"counting": given}).build().settings == {"counting": {"how": "minus"}}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"granularity": "letter"}, "granularity must be word or token, not 'letter'."),
        ({"of": "odds"}, "of must be probability, log_odds or logit, not 'odds'."),
    ],
)
def test_wrong_requests_are_told(as_in_use, wrong, said):
    with pytest.raises(ConfigError) as caught:
        ExplainRequest({}, **wrong)
    assert str(caught.value) == said
