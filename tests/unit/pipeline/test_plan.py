"""A plan is data: complete, the same after TOML, and strict about what it does not know."""

import tomllib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.checks import checks
from heedful.core.errors import ConfigError, UnknownName
from heedful.pipeline.plan.plan import QUICK_LIMIT, Plan, parse_plan

PLAN = Plan("model", "data.csv")
FULL = Plan(
    "runs/größe",
    "hf:sst@x",
    split="dev",
    fields={"text": "review", "label": "stars"},
    checks=("permutation", "agreement"),
    limit=7,
    min_words=3,
    seed=5,
    max_batch_tokens=99,
    instances_per_job=11,
    resamples=300,
    level=0.9,
    settings={"agreement": {"methods": ("random", "uniform")}, "permutation": {"draws": 7}},
)


EVERY = replace(PLAN, checks=("all",))


@pytest.mark.parametrize(
    "plan", [PLAN, FULL, PLAN.quick(), replace(FULL, limit=None), EVERY, EVERY.quick()]
)
def test_a_plan_comes_back_equal(plan):
    assert Plan.from_toml(plan.to_toml()) == plan


@given(st.text(), st.text(), st.integers(0, 2**40), st.floats(0.01, 0.99), st.text(min_size=1))
def test_any_name_and_number_comes_back(model, data, seed, level, column):
    plan = Plan(model, data, seed=seed, level=level, fields={"text": column})
    assert Plan.from_toml(plan.to_toml()) == plan


NOT_SET = {"limit", "cleaning", "cluster"}


def test_the_toml_is_complete():
    raw = tomllib.loads(EVERY.to_toml())
    assert raw.keys() == {one.name for one in fields(Plan)} - NOT_SET
    assert raw["checks"] == list(checks) == list(raw["settings"])
    for name in checks:
        part = checks.build(name)
        assert raw["settings"][name] == {
            one.name: list(value) if isinstance(value := getattr(part, one.name), tuple) else value
            for one in fields(part)
            if (name, one.name) not in SHARED
        }
    assert tomllib.loads(FULL.to_toml())["limit"] == 7


SHARED = {("adversarial", "epsilon"), ("adversary", "epsilon")}  # with the whole plan


def test_epsilon_is_one_for_all_checks_of_a_plan():
    plan = Plan("m", "d", checks=("permutation", "adversarial", "adversary"), epsilon=0.1)
    assert Plan.from_toml(plan.to_toml()) == plan
    for one in (plan, replace(plan, epsilon=0.3), plan.quick()):
        built = one.build_checks()
        assert built["adversarial"].epsilon == built["adversary"].epsilon == one.epsilon
        assert built["adversarial"].hinge == 0.01  # of the published search, whatever epsilon is
        assert one.settings_of("adversarial")["epsilon"] == one.epsilon
    assert plan.differences(replace(plan, epsilon=0.2)) == ["epsilon"]
    for check in ("adversarial", "adversary"):
        assert replace(plan, settings={check: {"epsilon": 0.1}}) == plan
        with pytest.raises(ConfigError) as caught:
            replace(plan, settings={check: {"epsilon": 0.2}})
        assert str(caught.value) == (
            f"settings.{check}.epsilon is 0.2, but epsilon is one for all checks of a plan, here "
            f"0.1. Set epsilon at the top of the plan, not in {check}."
        )


def test_an_older_plan_has_epsilon_with_the_adversarial_check():
    older = """
        model = "m"
        data = "d"
        checks = ["permutation", "adversarial"]
        [settings.adversarial]
        epsilon = 0.2
        steps = 7
    """
    plan = Plan.from_toml(older)
    assert plan.epsilon == plan.build_checks()["adversarial"].epsilon == 0.2
    assert plan.settings["adversarial"]["steps"] == 7
    with pytest.raises(ConfigError, match="Set epsilon at the top of the plan"):
        Plan.from_toml(f"epsilon = 0.1\n{older}")
    assert Plan.from_toml(f"epsilon = 0.2\n{older}") == plan


def test_without_names_all_are_run_that_retrain_nothing_and_take_few_passes():
    apart = {"necessity", "seeds", "guide", "adversary", "deception", "faithfulness"}
    apart |= {"plausibility", "randomisation", "identifiability"}
    apart |= {"labels", "roar", "off_manifold"}
    assert PLAN.checks == tuple(name for name in checks if name not in apart)
    assert Plan("m", "d", checks=("seeds", "all")).checks == tuple(checks)


def test_quick_makes_fewer_models_from_fewer_texts():
    plan = Plan("m", "d", checks=("all",), retraining={"workers": 3}).quick()
    assert plan.settings["necessity"]["seeds"] == 2
    assert plan.settings["adversary"]["weights"] == (0.001, 0.0001)
    assert plan.retraining == {"limit": 2000, "workers": 3, "transformers": False}
    assert replace(plan, retraining={"limit": 50}).quick().retraining["limit"] == 50


@pytest.mark.parametrize(
    "table",
    [
        {"limit": 0},
        {"limit": "all"},
        {"limit": True},
        {"workers": -1},
        {"workers": 1.5},
        {"folder": 3},
        {"encoder": 3},
        {"transformers": "yes"},
        {"colour": "red"},
    ],
)
def test_wrong_settings_of_retraining_are_said(table):
    with pytest.raises(ConfigError, match="retraining"):
        Plan("m", "d", retraining=table)


def test_where_and_by_how_many_models_are_made_binds_no_run():
    one = Plan("m", "d", retraining={"workers": 1, "folder": "a"})
    assert one.differences(Plan("m", "d", retraining={"workers": 2})) == []
    assert one.differences(Plan("m", "d", retraining={"limit": 9})) == ["retraining"]


def test_lists_of_numbers_are_settings_too():
    given = {"adversary": {"weights": [0.5, 1]}}
    plan = Plan("m", "d", checks=("adversary",), settings=given)
    assert Plan.from_toml(plan.to_toml()) == plan
    assert plan.build_checks()["adversary"].weights == (0.5, 1)
    for wrong in (["a"], [True], 0.5, [[0.1]]):
        with pytest.raises(ConfigError, match="must be a list of numbers"):
            Plan("m", "d", checks=("adversary",), settings={"adversary": {"weights": wrong}})


def test_the_plan_builds_its_checks_as_set_and_in_order():
    built = FULL.build_checks()
    assert list(built) == ["permutation", "agreement"]
    assert built["permutation"].draws == 7
    assert built["agreement"].methods == ("random", "uniform")
    assert built["agreement"] == checks.build("agreement", methods=("random", "uniform"))


def test_a_check_twice_is_run_once():
    assert Plan("m", "d", checks=("mechanism", "agreement", "mechanism")).checks == (
        "mechanism",
        "agreement",
    )


def test_a_whole_number_may_stand_for_a_fraction(as_in_use):
    plan = Plan("m", "d", settings={"adversarial": {"rate": 1}})
    assert plan.settings["adversarial"]["rate"] == 1


def told(text):
    with pytest.raises(ConfigError) as caught:
        Plan.from_toml('model = "m"\ndata = "d"\n' + text)
    return str(caught.value)


def test_what_is_not_toml():
    assert told("seed = = 1").startswith("The plan is not valid TOML: ")


def test_an_unknown_key():
    assert told("sed = 1\nlimits = 2") == (
        "Unknown plan keys: ['limits', 'sed']. Known: "
        f"{', '.join(one.name for one in fields(Plan))}."
    )


def test_an_unknown_check():
    with pytest.raises(UnknownName, match=r"^No check is named 'agrement'. Did you mean 'agreemen"):
        Plan("m", "d", checks=("agrement",))


def test_an_unknown_setting():
    assert told("[settings.permutation]\ndraw = 3") == (
        "check 'permutation' has no setting 'draw'. Settings: draws, elsewhere."
    )


def test_a_setting_for_a_check_not_chosen():
    assert told('checks = ["agreement"]\n[settings.permutation]\ndraws = 3') == (
        "Settings for 'permutation', which is not among the checks ('agreement',)."
    )


def test_an_unknown_method_is_told_before_the_work_begins():
    assert told('[settings.agreement]\nmethods = ["rolout"]').startswith(
        "No method is named 'rolout'."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fields = 3", "fields must be a table, not 3."),
        ('settings = "x"', "settings must be a table, not 'x'."),
        ('checks = "agreement"', "checks must be a list of names, not 'agreement'."),
        ("checks = [1]", "checks must be a list of names, not [1]."),
        ("[settings]\nagreement = 3", "The settings of 'agreement' must be a table, not 3."),
        ('limit = "x"', "limit must be a whole number of at least 1, not 'x'."),
        ("min_words = 1.5", "min_words must be a whole number of at least 1, not 1.5."),
        (
            "[settings.permutation]\ndraws = 1.5",
            "permutation.draws must be a whole number of at least 1, not 1.5.",
        ),
        (
            '[settings.adversarial]\npenalty = "x"',
            "adversarial.penalty must be a number, not 'x'.",
        ),
        ('[settings.adversarial]\nepsilon = "x"', "epsilon must be a number, not 'x'."),
        ('epsilon = "x"', "epsilon must be a number, not 'x'."),
        ("epsilon = true", "epsilon must be a number, not True."),
        ("epsilon = 0", "epsilon must be a number above 0 and of at most 1, not 0.0."),
        ("epsilon = nan", "epsilon must be a number above 0 and of at most 1, not nan."),
        ("epsilon = 1.5", "epsilon must be a number above 0 and of at most 1, not 1.5."),
    ],
)
def test_a_wrong_type(text, message, as_in_use):
    assert told(text) == message


@pytest.mark.parametrize("name", ["min_words", "max_batch_tokens", "instances_per_job", "limit"])
@pytest.mark.parametrize("value", [0, -1])
def test_counts_start_at_one(name, value):
    with pytest.raises(ConfigError) as caught:
        replace(PLAN, **{name: value})
    assert str(caught.value) == f"{name} must be a whole number of at least 1, not {value}."


@pytest.mark.parametrize(
    "settings",
    [{"resamples": 99}, *({"level": one} for one in (0.0, 1.0, -0.5, 95.0, float("nan")))],
)
def test_intervals_need_draws_and_a_level(settings):
    with pytest.raises(ConfigError) as caught:
        replace(PLAN, **settings)
    assert str(caught.value) == "resamples must be at least 100 and level between 0 and 1."


def test_shuffles_start_at_one():
    assert (
        told("[settings.agreement]\nshuffles = 0")
        == "agreement.shuffles must be a whole number of at least 1, not 0."
    )


@pytest.mark.parametrize(
    "text",
    [
        'resamples = "many"',
        'level = "high"',
        '[settings.agreement]\nshuffles = "x"',
        "[settings.agreement]\nmethods = [1]",
    ],
)
def test_a_wrong_type_is_no_traceback(text, as_in_use):
    assert "must be" in told(text)


@pytest.mark.parametrize(
    "text",
    [
        'seed = "x"',
        "seed = 1.5",
        "split = 3",
        "min_words = true",
        "resamples = 200.5",
        "[fields]\ntext = 3",
        "[settings.permutation]\ndraws = 0",
        "[settings.permutation]\ndraws = true",
        "[settings.adversarial]\ncandidates = 0",
        "[settings.adversarial]\nepsilon = -1.0",
        "[settings.agreement]\nlevel = 7.0",
    ],
)
def test_a_value_that_cannot_work_is_refused(text, as_in_use):
    assert told(text)


def test_a_plan_names_its_model_and_data():
    with pytest.raises(ConfigError, match="model"):
        Plan.from_toml("seed = 1")


def test_part_of_a_plan_can_be_read():
    assert parse_plan('checks = ["agreement"]\nseed = 3') == {"checks": ("agreement",), "seed": 3}
    assert parse_plan("") == {}


@pytest.mark.parametrize(("limit", "quick"), [(None, 200), (50, 50), (5000, 200)])
def test_quick_takes_fewer_texts_and_steps(limit, quick):
    plan = replace(FULL, checks=("adversarial", *FULL.checks), limit=limit).quick()
    assert plan.limit == quick <= QUICK_LIMIT
    assert plan.settings["adversarial"]["steps"] == 50 < checks.build("adversarial").steps
    assert plan.settings["permutation"] == FULL.settings["permutation"]
    assert plan.quick() == plan


def test_quick_leaves_the_rest_as_it_is():
    assert replace(PLAN.quick(), limit=None, settings={}) == PLAN
    assert FULL.quick() == FULL  # already below the limit, and without a search


def test_quick_never_takes_more_steps():
    plan = Plan("m", "d", settings={"adversarial": {"steps": 10}})
    assert plan.quick().settings["adversarial"]["steps"] == 10


@pytest.mark.parametrize(
    ("change", "different"),
    [
        ({}, []),
        ({"max_batch_tokens": 5}, []),
        ({"seed": 1}, ["seed"]),
        ({"model": "m2", "level": 0.5}, ["model", "level"]),
        ({"settings": {"permutation": {"draws": 3}}}, ["settings"]),
        (
            {"checks": ("mechanism",), "settings": {}, "methods": {}},
            ["checks", "settings", "methods"],
        ),
        ({"fields": {"text": "t"}}, ["fields"]),
        ({"limit": 3}, ["limit"]),
    ],
)
def test_differences_are_named_unless_they_cannot_matter(change, different):
    assert PLAN.differences(replace(PLAN, **change)) == different
    assert replace(PLAN, **change).differences(PLAN) == different


def test_what_toml_cannot_hold_is_refused_when_the_plan_is_made():
    with pytest.raises(ConfigError, match="subject holds what a plan cannot keep"):
        Plan("m", "d", subject={"layer": None})
