"""Every method of the house in one audit: of a model with one attention, and of a transformer."""

import json

import numpy as np
import pytest

import heedful
from heedful.checks.requested_methods import rankable_methods
from heedful.core.errors import ConfigError
from heedful.methods.base import warn_left_out
from heedful.models.recurrent.model_folder import save_model
from support import subjects, tiny_models

FEW = {"lime": {"samples": 16}, "kernel_shap": {"samples": 16}}
ALL = {"agreement": {"methods": ("all",), "shuffles": 2}}
PLAN = "[methods.lime]\nsamples = 16\n[methods.kernel_shap]\nsamples = 16\n"
LAYERED = (
    *("rollout", "flow", "gradient_rollout", "relevance_rollout", "value_zeroing"),
    *("alti", "globenc", "decompx"),
)


def rows(count=6):
    draw = np.random.default_rng(3)
    lengths = [*draw.integers(2, 7, count - 1).tolist(), 15]  # the last is too long for shapley
    return [
        {"text": " ".join(draw.choice(subjects.WORDS, n)), "label": f"class{draw.integers(2)}"}
        for n in lengths
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model folder, a file of texts and a plan."""
    folder = tmp_path_factory.mktemp("agree")
    save_model(subjects.subject(), folder / "model")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    (folder / "plan.toml").write_text(PLAN)
    return folder


def test_all_methods_from_the_command_line(files, run, tmp_path, caplog):
    warn_left_out.cache_clear()
    out = tmp_path / "run"
    words = ("audit", files / "model", files / "rows.jsonl", "--checks", "agreement", "--out", out)
    code, told, errors = run(*words, "--methods", "all", "--plan", files / "plan.toml")
    assert code == 0, errors
    assert errors.strip() == (
        "Slow methods, in passes for each text: lime and kernel_shap 16 together; shapley 2^T "
        "where a text has T ≤ 12 tokens."
    )
    left_out = [one for one in caplog.messages if "is left out of all methods" in one]
    assert len(left_out) == 1  # diffmask, which nothing was trained for
    assert "diffmask" not in (out / "plan.toml").read_text()
    _, told, _ = run("report", out, "--details")
    assert "the report has every pair of methods" in " ".join(told.replace("│", " ").split())
    check = json.loads((out / "verdict.json").read_text())["checks"]["agreement"]
    assert [(one["measure"], one["method"]) for one in check["missing"]] == [
        ("tau_leave_one_out", name) for name in LAYERED
    ]
    assert not check["undefined"]
    taus = [
        row
        for row in check["by"]
        if row["measure"] == "tau_leave_one_out" and "method" in row and "class" not in row
    ]
    assert {row["method"]: row["undefined"] for row in taus if "undefined" in row} == {"shapley": 1}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["methods"]["shapley"] == {"kind": "saliency", "at_most": "12 tokens"}
    assert 'id="methods"' in (out / "report.html").read_text()
    # the plan that was kept is complete: with it alone the run goes on, and another is refused
    before = (out / "verdict.json").read_bytes()
    assert run(*words, "--plan", out / "plan.toml", "--quiet") == (0, "", "")
    assert (out / "verdict.json").read_bytes() == before
    code, _, errors = run(*words, "--methods", "all")
    assert code == 2
    assert "another plan (different: methods)" in errors


@pytest.mark.parametrize("checks", ["faithfulness", "agreement,faithfulness"])
def test_methods_reach_faithfulness(files, run, tmp_path, checks):
    out = tmp_path / "run"
    words = ("audit", files / "model", files / "rows.jsonl", "--checks", checks, "--out", out)
    code, _, errors = run(
        *words, "--methods", "gradient,lime,kernel_shap", "--plan", files / "plan.toml"
    )
    assert code == 0, errors
    verdict = json.loads((out / "verdict.json").read_text())["checks"]
    rows = verdict["faithfulness"]["by"]
    of = {row["method"] for row in rows if row["measure"] == "sufficiency"}
    asked = ("attention", "gradient", "lime", "kernel_shap")
    assert of == {*asked, "random", "uniform"}
    assert ("agreement" in verdict) == ("agreement" in checks)
    plan = heedful.Plan.from_toml((out / "plan.toml").read_text())
    assert plan.settings["faithfulness"]["methods"] == asked
    assert plan.methods["lime"]["samples"] == 16
    assert 'id="figure-faithfulness"' in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--methods", "rolout"), "No method is named 'rolout'. Did you mean 'rollout'?"),
        (("--methods", "random", "--plan", "PLAN"), "lime.samples was set, but lime is not among"),
        (("--plan", "PLAN", "--checks", "permutation"), "no check uses methods; give --methods"),
        (("--checks", "permutation", "--methods", "all"), "not among the checks"),
    ],
)
def test_wrong_requests_get_one_clear_line(files, run, tmp_path, words, told):
    words = [files / "plan.toml" if one == "PLAN" else one for one in words]
    code, _, errors = run(
        "audit", files / "model", files / "rows.jsonl", "--out", tmp_path / "run", *words
    )
    assert code == 2
    assert told in errors
    assert len(errors.strip().splitlines()) == 1


def test_methods_of_a_transformer_do_not_depend_on_the_batch():
    subject = heedful.load(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    texts = ("a fine film that is so good", "not so bad , in places", "very dull", "it was best .")
    data = [{"text": text, "label": f"LABEL_{n % 2}"} for n, text in enumerate(texts)]
    frames = []
    for size in (1, 1000):
        one = heedful.audit(
            subject, data, checks=["agreement"], settings=ALL, methods=FEW, max_batch_tokens=size
        )
        assert not one.verdict.checks["agreement"].missing
        frames.append(one.to_dataframe())
    keys = ["instance", "measure", "method", "layer", "head", "setting"]
    one, other = (frame.sort_values(keys, ignore_index=True) for frame in frames)
    assert one[keys].equals(other[keys])
    np.testing.assert_allclose(one["value"], other["value"], atol=1e-6, rtol=0, equal_nan=True)
    pairs, count = one[one["measure"] == "tau_pair"], len(rankable_methods()) + 3
    each = pairs.groupby(["method", "setting"])["value"].count()
    assert len(each) == count * (count - 1) // 2
    assert each.min() > 0


def test_settings_of_methods_in_python():
    with pytest.raises(ConfigError, match="method 'lime' has no setting 'sample'"):
        heedful.audit(
            subjects.subject(),
            rows(),
            checks=["agreement"],
            settings={"agreement": {"methods": ("lime",)}},
            methods={"lime": {"sample": 3}},
        )


def test_methods_reach_roar_where_it_is_named():
    from heedful.cli.audit import _checks_with_methods

    assert _checks_with_methods(("roar",)) == ("roar",)
    assert _checks_with_methods(("faithfulness", "roar")) == ("faithfulness", "roar")
    assert "roar" not in _checks_with_methods(("all",))
    assert _checks_with_methods(()) == ("agreement",)
