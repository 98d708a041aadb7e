"""Whole audits: independent of batching, resumable, with the files that were promised."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import heedful
from heedful.checks import checks
from heedful.core.errors import AttentionUnavailable, DataError, RunError
from heedful.core.records import ANSWERS, CLAIMS
from heedful.models.recurrent.model_folder import save_model
from support import subjects

SEARCHED = {"epsilon_max_jsd"}


def rows(count=60, classes=2, seed=3):
    draw = np.random.default_rng(seed)
    return [
        {
            "text": " ".join(draw.choice(subjects.WORDS, int(draw.integers(1, 25)))),
            "label": f"class{draw.integers(classes)}",
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("setup", [("bilstm", "additive", 2), ("cnn", "dot", 3)])
def test_numbers_do_not_depend_on_the_batch_size(setup):
    encoder, attention, classes = setup
    subject = subjects.subject(encoder, attention, classes=classes)
    settings = {"adversarial": {"steps": 60}}
    frames = [
        heedful.audit(
            subject, rows(12, classes), settings=settings, max_batch_tokens=size
        ).to_dataframe()
        for size in (30, 20_000)
    ]
    for other in frames[1:]:
        keys = ["instance", "predicted", "label", "check", "measure"]
        assert (frames[0][keys] == other[keys]).all(axis=None)
        searched = frames[0]["measure"].isin(SEARCHED)
        for part, tolerance in ((~searched, 1e-6), (searched, 1e-3)):
            a, b = frames[0]["value"][part], other["value"][part]
            np.testing.assert_allclose(a, b, atol=tolerance, rtol=0, equal_nan=True)


def test_same_plan_same_bytes(tmp_path):
    subject = subjects.subject()
    for name in ("a", "b"):
        heedful.audit(subject, rows(20), out=tmp_path / name, settings=QUICK)
    assert (tmp_path / "a/verdict.json").read_bytes() == (tmp_path / "b/verdict.json").read_bytes()


QUICK = {"adversarial": {"steps": 5}}
BOTH = ("gradient", "leave_one_out")
PROMISED = {
    "influence": {
        *("reliability", "top_set_gap", "dispersion", "share_not_ranked"),
        *("leverage_top", "leverage_words"),
    },
    "agreement": {
        *(f"{kind}_{one}" for kind in ("tau", "top1", "significant") for one in BOTH),
        *(f"significant_{one}_bh" for one in BOTH),
        *("tau_gradient_leave_one_out", "tau_shuffled_leave_one_out", "tau_gradient_shuffled"),
    },
    "permutation": {"median_tvd", "leverage", "median_of_leverage"},
    "adversarial": {
        *("epsilon_max_jsd", "certified_jsd", "bound_jsd"),
        *("of_bound", "output_tvd", "random_tvd"),
    },
    "mechanism": {"tau_weighting", "tau_mixing", "conicity"},
    "erasure": {
        *("flip_top", "flip_random", "js_top_minus_random", "can_flip"),
        *(
            f"fraction_to_flip_{one}"
            for one in ("attention", "gradient", "attention_x_gradient", "random", "optimal")
        ),
    },
}


def test_a_run_folder_holds_what_was_promised(tmp_path):
    run = heedful.audit(subjects.subject(), rows(), out=tmp_path / "run", settings=QUICK)
    names = {path.name for path in run.folder.iterdir()}
    assert {"plan.toml", "manifest.json", "verdict.json", "measurements"} <= names
    verdict = json.loads((run.folder / "verdict.json").read_text())
    assert verdict["schema"] == 2
    assert verdict["answer"] in ANSWERS
    assert set(verdict["claims"]) == set(CLAIMS)
    assert verdict["places"].keys() == {"order", "top_set", "top_word", "reliability"}
    assert {"attention", "best_method", "best_set", "random"} <= verdict["flips"].keys()
    assert {"accuracy", "majority", "n_by_class"} <= verdict["score"].keys()
    assert {"audited", "distinct", "seen_in_training"} <= verdict["texts"].keys()
    assert verdict["degree"].keys() == {"of", "value", "low", "high", "n"}
    assert verdict["degree"]["of"] == "order"
    assert verdict["degree"]["value"] == verdict["places"]["order"]["value"]
    for name, check in verdict["checks"].items():
        described = {one.name: one for one in checks.spec(name).measures}
        assert PROMISED[name] <= {*described}
        missing = {one["measure"] for one in check["missing"]}
        assert {*check["estimates"]} == PROMISED[name] - missing
        assert {row.get("class") for row in check["by"]} <= {None, "class0", "class1"}
        estimate = {"value", "low", "high", "n", "undefined"}
        keyed = [
            tuple((key, row[key]) for key in row if key not in estimate) for row in check["by"]
        ]
        assert len(set(keyed)) == len(keyed)
        assert all(len(one) > 1 for one in keyed)  # a plain measure is in `estimates`
        for row in check["by"]:
            assert row["measure"] in described or "slice" in row
            keys = {"method", "layer", "head", "seed", "setting"} & {*row}
            assert keys <= {*described[row["measure"]].by} if keys else True
    for path in (run.folder / "measurements").glob("*.parquet"):
        schema = pq.read_schema(path)
        assert schema.names == [
            "instance",
            "predicted",
            "label",
            "check",
            "measure",
            "method",
            "layer",
            "head",
            "seed",
            "setting",
            "value",
        ]
    manifest = json.loads((run.folder / "manifest.json").read_text())
    for key in ("versions", "model", "data", "seed", "device", "dtype", "attention_path", "parity"):
        assert key in manifest
    assert set(manifest["seconds"]) >= set(verdict["checks"])
    assert manifest["dtype"] == "float64"
    assert manifest["parity"] < 1e-12


def test_every_instance_has_every_measure_once():
    run = heedful.audit(subjects.subject(), rows(50), settings=QUICK, instances_per_job=16)
    frame = run.to_dataframe()
    keys = ["method", "layer", "head", "seed", "setting"]
    assert not frame.duplicated(["instance", "check", "measure", *keys]).any()
    counts = frame.groupby(["check", "measure"]).instance.nunique()
    assert (counts == 50).all()


def test_an_interrupted_run_goes_on_and_ends_in_the_same_bytes(tmp_path):
    subject, data = subjects.subject(), rows(50)
    settings = {"settings": QUICK, "instances_per_job": 8}
    whole = heedful.audit(subject, data, out=tmp_path / "whole", **settings)
    seen = []

    def stop(done, total, words):
        seen.append(done)
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heedful.audit(subject, data, out=tmp_path / "cut", progress=stop, **settings)
    kept = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cut/measurements").iterdir()}
    assert 0 < len(kept) < 7
    assert not (tmp_path / "cut/verdict.json").exists()
    again = heedful.audit(subject, data, out=tmp_path / "cut", **settings)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cut/measurements").iterdir()}
    assert all(after[name] == time for name, time in kept.items())  # nothing done twice
    assert (again.folder / "verdict.json").read_bytes() == (
        whole.folder / "verdict.json"
    ).read_bytes()


def test_another_plan_or_model_does_not_mix_into_a_run(tmp_path):
    heedful.audit(subjects.subject(), rows(10), out=tmp_path, settings=QUICK)
    with pytest.raises(RunError, match=r"another plan \(different: seed\)"):
        heedful.audit(subjects.subject(), rows(10), out=tmp_path, settings=QUICK, seed=1)


def test_undefined_taus_are_counted_and_never_nan_in_a_mean():
    data = [{"text": "w1", "label": "class0"}, {"text": "w2", "label": "class1"}, *rows(20)]
    run = heedful.audit(subjects.subject(), data, checks=["agreement"])
    result = run.verdict.checks["agreement"]
    singles = sum(len(row["text"].split()) == 1 for row in data)
    assert result.undefined["tau_leave_one_out"] == singles >= 2
    assert result.estimates["tau_leave_one_out"].n == len(data) - singles
    assert np.isfinite(result.estimates["tau_leave_one_out"].value)


def test_uniform_attention_has_no_ranking_to_judge():
    subject, chosen = subjects.subject("bilstm", "uniform"), ["agreement", "influence"]
    verdict = heedful.audit(subject, rows(20), checks=chosen).verdict
    assert "it ranks none above another" in verdict.checks["agreement"].why
    assert verdict.checks["agreement"].undefined["tau_gradient"] == 20
    order = verdict.places["order"]
    assert (order.value, order.low, order.high) == (0.0, 0.0, 0.0)
    assert verdict.claims["ranks"].answer != "supported"


def test_three_classes_say_why_there_is_no_certificate():
    run = heedful.audit(subjects.subject(classes=3), rows(10, 3), settings=QUICK)
    adversarial = run.verdict.checks["adversarial"]
    assert "certified_jsd" not in adversarial.estimates
    (why,) = (one.reason for one in adversarial.missing if one.measure == "certified_jsd")
    assert "3 classes" in why
    assert adversarial.estimates["of_bound"].value <= 1 + 1e-9


def test_certified_is_at_least_what_the_search_found_and_within_epsilon():
    frame = heedful.audit(
        subjects.subject(),
        rows(80),
        checks=["adversarial"],
        settings={"adversarial": {"steps": 200}},
    ).to_dataframe()
    wide = frame.pivot_table(index="instance", columns="measure", values="value")
    assert (wide["certified_jsd"] >= wide["epsilon_max_jsd"] - 1e-6).all()
    assert (wide["output_tvd"] <= 0.05).all()
    assert (wide["certified_jsd"] <= wide["bound_jsd"] + 1e-9).all()


def test_a_text_without_words_is_counted_and_nothing_at_all_is_an_error():
    data = [*rows(10), {"text": "w1", "label": "class0"}]
    run = heedful.audit(subjects.subject(), data, checks=["permutation"], min_words=2)
    short = sum(len(row["text"].split()) < 2 for row in data)
    assert run.manifest["too_short"] == short
    with pytest.raises(DataError, match="No text has 99 words or more"):
        heedful.audit(subjects.subject(), data, checks=["permutation"], min_words=99)


def test_epsilon_is_set_for_the_whole_audit_and_older_runs_have_it_elsewhere(tmp_path):
    chosen = {"checks": ["permutation", "adversarial"], "settings": QUICK, "epsilon": 0.2}
    audited = subjects.subject(), rows(6)
    run = heedful.audit(*audited, out=tmp_path / "run", **chosen)
    assert run.verdict.checks["adversarial"].estimates["output_tvd"].value > 0.05  # up to 0.2
    assert "0.2" in run.verdict.checks["permutation"].why
    plan, files = run.folder / "plan.toml", sorted((run.folder / "measurements").iterdir())
    text, stamps = plan.read_text(), [path.stat().st_mtime_ns for path in files]
    assert text.count("epsilon") == 1
    older = text.replace("epsilon = 0.2\n", "")
    plan.write_text(
        older.replace("[settings.adversarial]\n", "[settings.adversarial]\nepsilon = 0.2\n")
    )
    again = heedful.audit(*audited, out=tmp_path / "run", **chosen)
    assert again.verdict.to_json() == run.verdict.to_json()
    assert heedful.compare(run, run.folder).record.pairs[0].notes == ()
    found = sorted((run.folder / "measurements").iterdir())
    assert [path.name for path in found] == [path.name for path in files]
    done = [place for place, path in enumerate(files) if path.stem != "whole"]
    assert [found[n].stat().st_mtime_ns for n in done] == [stamps[n] for n in done]


def test_methods_beside_attention_reach_the_verdict(tmp_path):
    settings = {"agreement": {"methods": ("random", "attention")}}
    run = heedful.audit(subjects.subject(), rows(40), checks=["agreement"], settings=settings)
    found = run.verdict.checks["agreement"]
    assert abs(found.of("tau_leave_one_out", method="random").value) < 0.2
    assert found.of("tau_leave_one_out", method="attention") == found.of("tau_leave_one_out")


def test_a_decoder_that_hears_nothing_is_an_error_not_a_zero():
    subject = subjects.subject()

    class Deaf:
        labels, family = subject.labels, "deaf"
        encode, batch, embed, forward = (
            subject.encode,
            subject.batch,
            subject.embed,
            subject.forward,
        )

        def decoder(self, batch, forward):
            return lambda attention: forward.logits + 1.0

    with pytest.raises(AttentionUnavailable, match="decoder\\(\\) must use the attention"):
        heedful.audit(Deaf(), rows(5), checks=["permutation"])


def test_no_check_has_a_vote_on_a_kind_of_model_whose_power_was_not_measured():
    few = {"adversarial": {"steps": 20}}
    inner = subjects.subject()
    chosen = {"checks": ["agreement", "adversarial"], "settings": few}
    other = subjects.Adapter(inner)
    known, unknown = (heedful.audit(s, rows(40), **chosen).verdict for s in (inner, other))
    assert known.checks["adversarial"].answer in ("supports", "refutes")
    assert known.claims["exclusive"].answer in ("supported", "refuted")
    assert {one.answer for one in unknown.checks.values()} == {"no vote"}
    assert {one.answer for one in unknown.claims.values()} <= {"undecided", "not tested"}
    assert unknown.answer == "undecided"
    plain = "power of the checks was not measured for this kind of model"
    assert plain in unknown.claims["exclusive"].why
    assert "its power was not measured for this kind" in unknown.checks["adversarial"].why
    for name, one in known.checks.items():  # what was measured is the same
        assert unknown.checks[name].estimates == one.estimates


def test_loading_a_saved_model_gives_the_same_audit(tmp_path):
    subject = subjects.subject()
    save_model(subject, tmp_path / "model")
    loaded = heedful.load(tmp_path / "model")
    data = rows(15)
    one, two = (heedful.audit(s, data, checks=["agreement"]).verdict for s in (subject, loaded))
    tau, again = (v.checks["agreement"].estimates["tau_gradient"].value for v in (one, two))
    assert tau == pytest.approx(again, abs=0.02)  # weights are kept in float32
    shutil.rmtree(tmp_path / "model")
