"""The methods of a plan: complete, checked, the same after TOML; what they are and cost."""

from dataclasses import replace

import pytest

from heedful.checks.requested_methods import rankable_methods
from heedful.core.errors import ConfigError
from heedful.methods.base import ready_methods
from heedful.methods.erasure.additive import Lime
from heedful.pipeline.audit.run_store import make_jobs
from heedful.pipeline.plan.method_settings import describe_method_cost, describe_methods
from heedful.pipeline.plan.plan import Plan


def plan(*names, **tables):
    settings = {"agreement": {"methods": names}}
    return Plan("m", "d", checks=("agreement",), settings=settings, methods=tables)


EVERY = plan("all", lime={"samples": 200})


def test_a_plan_has_all_settings_of_all_methods_and_comes_back_equal():
    assert Plan.from_toml(EVERY.to_toml()) == EVERY
    assert tuple(EVERY.methods) == EVERY.settings["agreement"]["methods"] == rankable_methods()
    assert EVERY.methods["lime"] == {"samples": 200, "of": "probability", "players": "tokens"}
    assert EVERY.methods["kernel_shap"]["samples"] == 1000
    own = plan("attention", "leave_one_out", "random")
    assert Plan.from_toml(own.to_toml()) == own


def test_the_checks_are_built_with_the_methods_as_set():
    check = EVERY.build_checks()["agreement"]
    assert Lime(samples=200) in check.methods
    assert "kernel_shap" in check.methods  # as usual
    assert plan().build_checks()["agreement"].methods == ()


def test_what_was_made_for_a_method_makes_it_one_of_all():
    assert "diffmask" not in EVERY.methods
    made = plan("all", diffmask={"explainer": "a folder"})
    assert made.methods["diffmask"] == {"explainer": "a folder", "layer": -1}
    assert Plan.from_toml(made.to_toml()) == made
    with pytest.raises(ConfigError, match=r"diffmask\.layer was set, but diffmask is not"):
        plan("all", diffmask={"layer": 0})
    assert plan("all", "diffmask").methods["diffmask"] == {"layer": -1}  # it will be refused


def test_settings_of_methods_are_part_of_what_results_depend_on():
    other = plan("all", lime={"samples": 300})
    assert EVERY.differences(other) == ["methods"]
    keys = {make_jobs(one, 5, origin={})[0].key for one in (EVERY, other, plan("all"))}
    assert len(keys) == 3


def test_quick_takes_fewer_samples():
    quick = plan("all", lime={"samples": 50}).quick()
    assert quick.methods["lime"]["samples"] == 50
    assert quick.methods["kernel_shap"]["samples"] == 200
    assert quick.quick() == quick


@pytest.mark.parametrize(
    ("names", "tables", "message"),
    [
        ((), {"lime": {}}, "Settings for the method 'lime', but no check uses methods; give"),
        (("random",), {"lime": {"samples": 9}}, "lime.samples was set, but lime is not among the"),
        (("lime",), {"lime": {"sample": 9}}, "method 'lime' has no setting 'sample'"),
        (("lime",), {"lime": {"samples": "x"}}, "must be a whole number of at least 4, not 'x'."),
        (("lime",), {"lime": {"samples": 1}}, "must be a whole number of at least 4, not 1."),
        (("lime",), {"lime": 3}, "The settings of 'lime' must be a table, not 3."),
        (
            ("attention",),
            {"attention": {"heads": "max"}},
            "[methods.attention] cannot be set: the check uses attention as it was published. "
            "Choose the audited attention by --subject.",
        ),
    ],
)
def test_what_cannot_work_is_told_before_the_work_begins(names, tables, message, as_in_use):
    with pytest.raises(ConfigError) as caught:
        plan(*names, **tables)
    assert message in str(caught.value)


def test_the_table_of_methods_is_a_table(as_in_use):
    with pytest.raises(ConfigError, match="methods must be a table, not 3"):
        Plan.from_toml('model = "m"\ndata = "d"\nmethods = 3')
    with pytest.raises(ConfigError, match="methods must be a table, not 3"):
        replace(EVERY, methods=3)


def test_each_method_is_described_with_its_kind_and_limit():
    told = describe_methods(EVERY.methods)
    assert list(told) == [name for name in ready_methods() if name != "uniform"]
    assert told["attention"] == {"kind": "attention"}
    assert told["shapley"] == {"kind": "saliency", "at_most": "12 tokens"}
    assert told["flow"] == {"kind": "attention", "at_most": "64 tokens"}
    assert describe_methods({}) == {}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (plan(), ""),
        (plan("gradient", "occlusion", "integrated_gradients"), ""),
        (
            plan("lime", "kernel_shap"),
            "Slow methods, in passes for each text: lime and kernel_shap 1\u202f000 together. In a "
            "plan, [methods.NAME] samples = 200 takes fewer.",
        ),
        (
            plan("all", lime={"samples": 50}, kernel_shap={"samples": 9}),
            "Slow methods, in passes for each text: lime 50; kernel_shap 9; shapley 2^T where a "
            "text has T ≤ 12 tokens.",
        ),
    ],
)
def test_what_is_slow_is_said_in_one_line(asked, told):
    assert describe_method_cost(asked.methods) == told
