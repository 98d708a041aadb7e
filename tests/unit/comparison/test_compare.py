"""Run folders side by side: what is paired, refused, counted, corrected and required."""

import json
from math import isnan, nan

import numpy as np
import pyarrow as pa
import pytest

import heedful
from heedful.comparison.requirements import parse_requirement
from heedful.core.errors import ConfigError, RunError
from heedful.core.records import MeasureKey
from heedful.numerics.stats.multiple_testing import benjamini_hochberg_adjusted, holm_adjusted
from heedful.results.tables import KEY_FIELDS, MEASUREMENT_SCHEMA, PartitionedTable, gather_columns
from support.run_folders import taus, write_run

N = 60


def measures(seed=0, n=N, shift=0.0, degree=0.5):
    random = np.random.default_rng(seed)
    found = taus(n, seed=seed, degree=degree)
    found["permutation", "median_tvd"] = random.normal(0.3 + shift, 0.1, n)
    found["permutation", "leverage"] = random.normal(0.5, 0.1, n)
    found["adversary", "jsd", "λ 0.1"] = random.normal(0.2 + shift, 0.1, n)
    found["adversary", "jsd"] = random.normal(0.2, 0.1, n)
    return found


@pytest.fixture
def two(tmp_path):
    one = write_run(tmp_path / "one", measures())
    other = write_run(
        tmp_path / "other", measures(1, shift=0.2, degree=0.8), answer="faithful", model="models/b"
    )
    return one, other


def row(found, measure, check="permutation", setting=None, pair=0):
    return found.record.pairs[pair].find(MeasureKey(check, measure, setting=setting))


def rows_of(key, instances, values):
    classes = {"predicted": "pos", "label": "neg"}
    return [
        {**key._asdict(), **classes, "instance": i, "value": value}
        for i, value in zip(instances, values, strict=True)
    ]


def test_columns_are_those_of_the_frame_under_every_key():
    keys = [
        MeasureKey("agreement", "tau"),
        MeasureKey("agreement", "tau", layer=0),
        MeasureKey("agreement", "tau", layer=0, head=1),
        MeasureKey("agreement", "tau", layer=1, head=0),
        MeasureKey("agreement", "tau", method="lime"),
        MeasureKey("faithfulness", "tau", method="lime", setting="masking"),
        MeasureKey("roar", "tau", method="lime", seed=2, setting="0.5"),
    ]
    random = np.random.default_rng(0)
    rows = [row for key in keys for row in rows_of(key, range(7), random.normal(size=7).tolist())]
    rows += rows_of(MeasureKey("c", "m", setting="s"), [-1], [1.0])  # of the whole run
    table = pa.Table.from_pylist(rows, MEASUREMENT_SCHEMA)
    order = random.permutation(len(table))
    found = gather_columns(PartitionedTable.of(table.take(order)))
    frame = table.to_pandas()
    kinds = frame[frame["instance"] >= 0].groupby(list(KEY_FIELDS), dropna=False)
    assert found.instances.tolist() == list(range(7))
    assert set(found.values) == set(keys)
    assert len(kinds) == len(keys)
    for kind, part in kinds:
        key = MeasureKey(*(None if one != one else one for one in kind))
        assert found.values[key].tolist() == part.sort_values("instance")["value"].tolist()
    twice = pa.concat_tables([table, table.slice(0, 1)])
    with pytest.raises(RunError, match="measured twice"):
        gather_columns(PartitionedTable.of(twice))


def test_a_run_does_not_differ_from_itself(two):
    found = heedful.compare(two[0], two[0])
    assert [one.name for one in found.record.sides] == [str(two[0]), f"{two[0]} (2)"]
    for _, one in found.record.rows:
        difference = one.difference
        assert (difference.value, difference.low, difference.high) == (0.0, 0.0, 0.0)
        assert (one.p, one.corrected, one.certain) == (1.0, 1.0, False)


def test_turned_round_the_signs_turn(two):
    there, back = heedful.compare(*two).record, heedful.compare(*reversed(two)).record
    assert len(list(there.rows)) == 8
    for (_, one), (_, other) in zip(there.rows, back.rows, strict=True):
        assert one.key == other.key
        assert one.difference.value == -other.difference.value
        assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-12)
        assert one.p == pytest.approx(other.p, abs=1e-12)


def test_known_differences_are_found_and_chance_is_not(two):
    found = heedful.compare(*two)
    for key in (("median_tvd",), ("jsd", "adversary", "λ 0.1"), ("degree", "")):
        one = row(found, *key)
        assert one.certain
        assert one.difference.low > 0.1
    assert not row(found, "leverage").certain
    assert row(found, "degree", "").difference.value == pytest.approx(0.3, abs=0.06)


def test_p_values_are_corrected_over_all_pairs_and_settings_apart(two, tmp_path):
    third = write_run(tmp_path / "third", measures(5))
    for how, adjusted in (
        ("holm", holm_adjusted),
        ("bh", benjamini_hochberg_adjusted),
        ("none", list),
    ):
        rows = [one for _, one in heedful.compare(*two, third, correction=how).record.rows]
        for by_setting in (True, False):
            family = [one for one in rows if (one.key.setting is not None) == by_setting]
            assert len(family) == (2 if by_setting else 14)
            assert [one.corrected for one in family] == adjusted([one.p for one in family])
            assert all(one.certain == (one.corrected <= 0.05) for one in family)


def test_a_family_of_many_questions_can_still_be_answered(tmp_path):
    random = np.random.default_rng(0)
    many = {("faithfulness", f"m{i}"): random.normal(0, 1, 40) for i in range(150)}
    one = write_run(tmp_path / "one", many)
    moved = {key: value + 5 for key, value in many.items()}
    found = heedful.compare(one, write_run(tmp_path / "two", moved))
    assert all(row.certain for _, row in found.record.rows)


def test_texts_that_one_run_lacks_are_counted_and_left_out(tmp_path):
    one = write_run(tmp_path / "one", measures() | {("agreement", "x_bh"): np.ones(N)})
    few = measures(1, n=40) | {("agreement", "x_bh"): np.ones(40)}
    other = write_run(tmp_path / "two", few, instances=[*range(30), *range(100, 110)])
    found = heedful.compare(one, other)
    pairing = found.record.pairs[0].pairing
    assert (pairing.shared, pairing.only_first, pairing.only_second) == (30, 30, 10)
    assert str(pairing) == "paired over 30 texts; 30 only in the first; 10 only in the second"
    mine, theirs = measures()["permutation", "leverage"], few["permutation", "leverage"]
    want = (theirs[:30] - mine[:30]).mean()
    assert row(found, "leverage").difference.value == pytest.approx(want)
    assert "it depends on all texts" in found.record.pairs[0].only_one["agreement.x_bh"]


def test_values_that_do_not_exist_are_counted(tmp_path):
    changed = measures(1)
    changed["permutation", "leverage"][:7] = nan
    changed["permutation", "median_tvd"][:] = nan
    one, other = (write_run(tmp_path / n, m) for n, m in (("a", measures()), ("b", changed)))
    found = heedful.compare(one, other)
    assert row(found, "leverage").undefined == (0, 7)
    assert row(found, "leverage").difference.n == N - 7
    nothing = row(found, "median_tvd")
    assert isnan(nothing.difference.value)
    assert isnan(nothing.corrected)
    assert not nothing.certain


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"data": {"sha256": "ef" * 32}}, "sha256 efefefefefef"),
        ({"data": {"split": "dev"}}, r"rows.csv \(dev"),
        ({"data": {"sha256": None}}, "has no sha256"),
        ({"data": {"bad_rows": "1 bad row"}}, "other rows were left out"),
        ({"plan": '[fields]\ntext = "review"\n'}, "read other columns"),
        ({"instances": range(100, 100 + N)}, "share no text"),
    ],
)
def test_other_texts_are_refused_and_compared_as_independent_where_asked(tmp_path, change, why):
    one = write_run(tmp_path / "one", measures())
    other = write_run(tmp_path / "two", measures(1, shift=0.3), **change)
    with pytest.raises(ConfigError, match=why):
        heedful.compare(one, other)
    found = heedful.compare(one, other, paired=False)
    assert str(found.record.pairs[0].pairing) == (
        "unpaired: 60 texts against 60 others, as independent samples"
    )
    assert row(found, "median_tvd").certain
    assert row(found, "degree", "").difference.n == 2 * N


def test_what_else_is_different_is_noted(tmp_path):
    plan = "[settings.permutation]\ndraws = {}\n"
    one, other = (
        write_run(tmp_path / f"{draws}", measures(), plan=plan.format(draws), **more)
        for draws, more in ((100, {}), (5, {"dtype": "float32"}))
    )
    assert heedful.compare(one, other).record.pairs[0].notes == (
        "permutation was run with other settings: draws.",
        "dtype is None in one, float32 in the other.",
    )


OLDER = "[settings.adversarial]\nsteps = 5\nepsilon = {}\n[settings.adversary]\nepsilon = {}\n"
NEWER = "epsilon = {}\n[settings.adversarial]\nsteps = 5\n[settings.adversary]\n"


@pytest.mark.parametrize(
    ("plans", "notes"),
    [
        ((OLDER.format(0.05, 0.05), NEWER.format(0.05)), ()),
        ((OLDER.format(0.2, 0.2), NEWER.format(0.2)), ()),
        (("", NEWER.format(0.05)), ()),
        (
            (OLDER.format(0.05, 0.05), NEWER.format(0.2)),
            ("epsilon is 0.05 in one, 0.2 in the other.",),
        ),
        (
            (OLDER.format(0.05, 0.2), NEWER.format(0.05)),
            ("adversary was run with other settings: epsilon.",),
        ),
    ],
)
def test_epsilon_is_compared_wherever_a_plan_has_it(tmp_path, plans, notes):
    one, other = (
        write_run(tmp_path / f"{place}", measures(), plan=plan) for place, plan in enumerate(plans)
    )
    assert heedful.compare(one, other).record.pairs[0].notes == notes


def of_methods(n=N):
    random = np.random.default_rng(0)
    found = taus(n)
    found[MeasureKey("agreement", "tau_leave_one_out", "lime")] = random.normal(0.55, 0.1, n)
    for name, worth in (("attention", 0.2), ("lime", 0.5), ("random", 0.1)):
        for setting in (None, "masking"):
            key = MeasureKey("faithfulness", "comprehensiveness", name, setting=setting)
            found[key] = random.normal(worth, 0.1, n)
    found[MeasureKey("faithfulness", "flip", "attention")] = random.normal(0.2, 0.1, n)
    found[MeasureKey("agreement", "tau_pair", "lime", setting="flow")] = random.random(n)
    found["erasure", "fraction_to_flip_attention"] = random.random(n)
    return found


def test_methods_of_one_run(tmp_path):
    run, values = write_run(tmp_path / "run", of_methods()), of_methods()
    found = heedful.compare(run, methods=["attention", "lime", "one_hot_gradient"])
    first, second = found.record.pairs
    assert [str(one.key) for one in first.differences] == [
        "agreement.tau_leave_one_out",
        "faithfulness.comprehensiveness",
        "faithfulness.comprehensiveness[masking]",
    ]
    assert [str(one.key) for one in second.differences] == ["agreement.tau_leave_one_out"]
    lime, own = (
        values[MeasureKey("faithfulness", "comprehensiveness", name)]
        for name in ("lime", "attention")
    )
    want = (lime - own).mean()
    assert row(found, "comprehensiveness", "faithfulness").difference.value == pytest.approx(want)
    assert row(found, "comprehensiveness", "faithfulness").certain
    assert first.only_one == {"faithfulness.flip": "only in attention"}
    with pytest.raises(ConfigError, match="It has: attention, lime, one_hot_gradient, random"):
        heedful.compare(run, methods=["attention", "lame"])
    with pytest.raises(ConfigError, match="same-answer is about runs"):
        found.require("same-answer")


def test_methods_keep_their_names_in_a_comparison_of_runs(tmp_path):
    runs = [write_run(tmp_path / name, of_methods()) for name in "xy"]
    found = heedful.compare(*runs).record.pairs[0]
    names = [str(one.key) for one in found.differences]
    assert "agreement.tau_leave_one_out[lime]" in names
    assert "faithfulness.comprehensiveness[random]" in names
    assert "faithfulness.comprehensiveness[random, masking]" in names


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("comprehensiveness[lime]>=0", MeasureKey("faithfulness", "comprehensiveness", "lime")),
        ("comprehensiveness_lime>=0", MeasureKey("faithfulness", "comprehensiveness", "lime")),
        (
            "faithfulness.comprehensiveness_lime[masking]>=0",
            MeasureKey("faithfulness", "comprehensiveness", "lime", setting="masking"),
        ),
        ("tau_lime_leave_one_out>=0", MeasureKey("agreement", "tau_leave_one_out", "lime")),
    ],
)
def test_measures_of_methods_are_required_by_their_name_of_now_or_of_schema_1(tmp_path, rule, key):
    moved = {name: value + 0.5 * (name == key) for name, value in of_methods().items()}
    one, other = (write_run(tmp_path / n, v) for n, v in (("x", of_methods()), ("y", moved)))
    found = heedful.compare(one, other).require(rule.replace(">=0", ">0.4"))
    assert found.met
    assert not heedful.compare(one, other).require(rule.replace(">=0", ">0.6")).met


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda a, b: heedful.compare(a), "two runs or more"),
        (lambda a, b: heedful.compare(a, b, methods=["attention", "lime"]), "within one run"),
        (lambda a, b: heedful.compare(a, methods=["lime", "lime"]), "different ones"),
        (lambda a, b: heedful.compare(a, methods=["x", "y"], paired=False), "same texts"),
        (lambda a, b: heedful.compare(a, b, correction="bonferroni"), "holm, bh, none"),
        (lambda a, b: heedful.compare(a, b, level=1.5), "between 0 and 1"),
        (lambda a, b: heedful.compare(a, b, resamples=10), "at least 100"),
    ],
)
def test_what_cannot_be_asked_is_refused(two, call, why):
    with pytest.raises(ConfigError, match=why):
        call(*two)


def test_runs_without_a_measure_in_common_are_refused(two, tmp_path):
    other = write_run(tmp_path / "x", {("mechanism", "conicity"): np.ones(N)})
    with pytest.raises(ConfigError, match="no measure in common"):
        heedful.compare(two[0], other)


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ("degree>=-0.05", True),
        ("degree >= 0.2", True),
        ("degree<0", False),
        ("median_tvd>0", True),
        ("permutation.median_tvd > .1", True),
        ("permutation.median_tvd<=1e-1", False),
        ("leverage>=-0.1", True),
        ("leverage>0", False),
        ("adversary.jsd[λ 0.1]>0", True),
        ("same-answer", False),
    ],
)
def test_requirements_hold_the_whole_interval_against_the_bound(two, rule, met):
    found = heedful.compare(*two).require(rule)
    assert found.met is met
    assert found.required[0].rule == rule
    if rule != "same-answer":
        assert "other − one: " in found.required[0].found


def test_every_pair_must_meet_a_requirement(two, tmp_path):
    third = write_run(tmp_path / "third", measures(0))
    assert heedful.compare(*two).require("median_tvd>0").met
    found = heedful.compare(*two, third).require("median_tvd>0", "degree>=-0.2")
    assert [one.met for one in found.required] == [False, True]


def test_a_degree_that_is_not_there_meets_nothing(tmp_path):
    one = write_run(tmp_path / "one", {("permutation", "median_tvd"): np.ones(N)})
    other = write_run(tmp_path / "two", {("permutation", "median_tvd"): np.ones(N)})
    found = heedful.compare(one, other).require("degree>=-1")
    assert not found.met
    assert "none, agreement was not run on both" in str(found.required[0])


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "degree",
        "degree=1",
        "degree>=",
        "degree>=x",
        "degree>=nan",
        ">=1",
        "same answer",
        "degree>=1 or more",
        "a.b.c>1",
        "degree>=-",
        "degree=>1",
        "degree>=1;degree>=2",
        "x[>1",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rule):
    with pytest.raises(ConfigError, match="it must be same-answer, or a measure"):
        parse_requirement(rule)


def test_measures_that_were_not_compared_or_are_several_cannot_be_required(two, tmp_path):
    with pytest.raises(
        ConfigError, match=r"median_tv, which was not compared. Did you mean median_tvd"
    ):
        heedful.compare(*two).require("median_tv>0")
    double = {(check, "score_base"): np.arange(9.0) for check in ("guide", "adversary")}
    runs = [write_run(tmp_path / name, double) for name in "xy"]
    with pytest.raises(ConfigError, match=r"say which: guide.score_base, adversary.score_base"):
        heedful.compare(*runs).require("score_base>0")


def test_the_frame_and_the_json_have_every_row(two):
    found = heedful.compare(*two).require("degree>0")
    frame = found.to_dataframe()
    assert len(frame) == 8
    one = frame[frame["measure"] == "median_tvd"].iloc[0]
    known = row(found, "median_tvd")
    assert one["difference_value"] == known.difference.value
    assert (one["p"], one["p_corrected"], bool(one["certain"])) == (known.p, known.corrected, True)
    raw = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [len(raw["sides"]), len(raw["pairs"][0]["differences"])] == [2, 8]
    assert raw["pairs"][0]["differences"][0]["measure"] == "degree"
    assert raw["required"] == [{"rule": "degree>0", "met": True, "found": found.required[0].found}]


def test_damaged_folders_are_named_in_one_line(two):
    manifest = two[1] / "manifest.json"
    for name, wrong in (("data", "x"), ("level", "high"), ("versions", []), ("seed", None)):
        kept = manifest.read_text()
        manifest.write_text(json.dumps(json.loads(kept) | {name: wrong}))
        with pytest.raises(RunError, match=f"manifest.json is damaged: {name}"):
            heedful.compare(*two)
        manifest.write_text(kept)
    (two[1] / "plan.toml").write_text("x = [")
    with pytest.raises(RunError, match=r"plan.toml is damaged"):
        heedful.compare(*two)
    (two[1] / "plan.toml").write_text("fields = 3")
    with pytest.raises(RunError, match="fields is no table"):
        heedful.compare(*two)
    (two[1] / "plan.toml").write_text("settings.adversarial = 3")
    with pytest.raises(RunError, match=r"settings\.adversarial is no table"):
        heedful.compare(*two)
