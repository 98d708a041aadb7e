"""Places from sums over texts: against plain loops, and where the truth is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from heedful.checks.influence.estimates import (
    Ceiling,
    Places,
    Reader,
    SummedColumns,
    estimate_influence,
)
from heedful.checks.influence.names import HALF, MEAN, NAME, SHUFFLED
from heedful.checks.influence.orders import chance_variance, pair_agreement, pair_stakes, tied_ranks
from heedful.checks.influence.spec import SPEC
from heedful.core.records import MeasureKey
from heedful.results.tables import MeasurementColumns

RESAMPLING = SimpleNamespace(resamples=300, seed=0, level=0.95, clusters=None, copies=None)


def measured(texts, words, *, noise, quality=1.0, draw=None, skew=False, effect=None):
    """Columns of texts whose true influence is known; attention is `quality` parts of it."""
    draw = draw or np.random.default_rng(0)
    columns = {}
    for _ in range(texts):
        m = np.exp(draw.normal(size=words)) if skew else draw.normal(size=words)
        halves = [m + noise * np.sqrt(2) * draw.normal(size=words) for _ in range(2)]
        whole = np.mean(halves, axis=0)
        other = draw.permutation(m)
        ranked = m if draw.random() < quality else other
        values = {
            ("order_sum", "attention", None): pair_agreement(tied_ranks(ranked), whole),
            ("order_sum", "attention", SHUFFLED): pair_agreement(tied_ranks(other), whole),
            ("order_chance", "attention", None): chance_variance(tied_ranks(ranked), whole),
            ("order_weight", None, None): pair_stakes(whole),
            ("exact", None, None): 0.0,
            ("items", None, None): words,
            ("confidence", None, None): draw.random(),
            ("gain_top", "attention", None): whole[ranked.argmax()] - whole.mean(),
            ("gain_top", "attention", SHUFFLED): whole[other.argmax()] - whole.mean(),
            ("gain_most", None, None): whole.max() - whole.mean(),
            ("gain_most", None, "cross-fitted"): halves[1][halves[0].argmax()] - halves[1].mean(),
            ("change_top", "attention", None): 0.5 if ranked is m else 0.1,
            ("change_top", "attention", SHUFFLED): 0.1,
            ("change_top", "random", None): 0.1,
            ("change_top", None, "influence"): 0.5,
            ("change_top", None, HALF): 0.45,
            ("leverage_top", None, None): draw.random() if effect is None else effect,
            ("leverage_words", None, None): draw.random() if effect is None else effect,
        }
        for which in (0, 1):
            one, other_half = halves[1 - which], halves[which]
            values["half_sum", None, str(which + 1)] = pair_agreement(tied_ranks(one), other_half)
            values["half_weight", None, str(which + 1)] = pair_stakes(other_half)
            values["half_most", None, str(which + 1)] = other_half.max() - other_half.mean()
        for key, value in values.items():
            columns.setdefault(key, []).append(value)
    keyed = {
        MeasureKey(NAME, measure, method, setting=setting): np.array(column, dtype=float)
        for (measure, method, setting), column in columns.items()
    }
    predicted = np.array([f"class{number % 2}" for number in range(texts)], dtype=object)
    return MeasurementColumns(np.arange(texts), predicted, predicted, keyed)


def replace_clusters(clusters, copies):
    return SimpleNamespace(**{**vars(RESAMPLING), "clusters": clusters, "copies": copies})


def rows_of(columns):
    rows = estimate_influence(columns, RESAMPLING, [], epsilon=0.05)
    return {(one.measure, one.method, one.setting, one.slice): one.estimate for one in rows}


def value(columns, build):
    reader = Reader(columns, SummedColumns())
    statistic = build(reader, np.ones(len(columns.instances), dtype=bool))
    sums = np.array([np.nansum(column) for column in reader.table.columns])
    return float(statistic(sums[None])[0])


@pytest.mark.parametrize("noise", [0.3, 0.7, 1.0])
def test_a_perfect_ranking_of_normal_influence_reaches_one(noise):
    columns = measured(400, 12, noise=noise)
    assert value(columns, lambda r, t: Places(r, t).order()) == pytest.approx(1.0, abs=0.03)
    true = 1 / (1 + noise**2)
    found = value(columns, lambda r, t: Ceiling(r, t).reliability())
    assert found == pytest.approx(true, abs=0.04)


def test_order_is_a_ratio_of_sums_over_the_ceiling_from_shrinking_stakes():
    columns = measured(30, 8, noise=0.5, quality=0.6)
    read = lambda *key: columns.values[MeasureKey(NAME, key[0], key[1], setting=key[2])]  # noqa: E731
    agreed, stakes = read("order_sum", "attention", None), read("order_weight", None, None)
    halves = np.mean([read("half_weight", None, part) for part in ("1", "2")], axis=0)
    true_stakes = np.sqrt(2 * stakes.sum() ** 2 - halves.sum() ** 2)
    assert value(columns, lambda r, t: Places(r, t).order()) == pytest.approx(
        agreed.sum() / true_stakes
    )
    half_agreed = np.mean([read("half_sum", None, part) for part in ("1", "2")], axis=0)
    assert value(columns, lambda r, t: Ceiling(r, t).half_order()) == pytest.approx(
        half_agreed.sum() / true_stakes
    )
    ceiling = np.sqrt(2 - np.mean(halves / stakes) ** 2)
    assert value(columns, lambda r, t: Places(r, t).order(over_texts=True)) == pytest.approx(
        np.mean(agreed / stakes) / ceiling
    )


def test_the_ceiling_holds_where_words_matter_in_bursts():
    """The root of the reliability would be off by a fifth here."""
    draw, rows = np.random.default_rng(0), []
    for _ in range(600):
        m = np.where(np.arange(20) < 3, draw.uniform(0.5, 1.5, 20), draw.exponential(0.05, 20))
        orders = np.where(draw.random((8, 20)) < 0.25, 4 * m, 0.0)
        whole, halves = orders.mean(0), (orders[::2].mean(0), orders[1::2].mean(0))
        rows.append(
            {
                ("order_sum", "attention", None): pair_agreement(tied_ranks(m), whole),
                ("order_weight", None, None): pair_stakes(whole),
                ("exact", None, None): 0.0,
                **{("half_weight", None, str(k + 1)): pair_stakes(halves[k]) for k in (0, 1)},
            }
        )
    keyed = {
        MeasureKey(NAME, measure, method, setting=setting): np.array([one[key] for one in rows])
        for key in rows[0]
        for measure, method, setting in (key,)
    }
    predicted = np.array(["a"] * len(rows), dtype=object)
    columns = MeasurementColumns(np.arange(len(rows)), predicted, predicted, keyed)
    assert value(columns, lambda r, t: Places(r, t).order()) == pytest.approx(1.0, abs=0.03)


def test_enumerated_influence_has_a_ceiling_of_one():
    columns = measured(30, 8, noise=0.8)
    columns.values[MeasureKey(NAME, "exact")][:] = 1.0
    read = lambda name, method=None: columns.values[MeasureKey(NAME, name, method)]  # noqa: E731
    g = read("order_sum", "attention").sum() / read("order_weight").sum()
    assert value(columns, lambda r, t: Places(r, t).order()) == pytest.approx(g)


def test_every_measure_of_the_description_is_estimated():
    columns = measured(80, 10, noise=0.4)
    for (_, name, method, *rest), values in [*columns.values.items()]:
        if method == "attention" and rest[-1] is None:
            columns.values[MeasureKey(NAME, name, "lime")] = values
    found = {key[0] for key in rows_of(columns)}
    kept = {"flip_top", "leverage_top"}  # means over texts, made as of any check
    assert {one.name for one in SPEC.measures if one.averaged} <= found | kept
    gain = rows_of(columns)["order_gain", "lime", None, None]
    assert (gain.value, gain.low, gain.high) == (0.0, 0.0, 0.0)


def test_chance_is_zero_and_controls_are_on_their_sides():
    rows = rows_of(measured(200, 10, noise=0.4))
    shuffled = rows["order", "attention", SHUFFLED, None]
    assert shuffled.low < 0 < shuffled.high
    assert rows["order", None, HALF, None].low > 0.5
    assert rows["top_set", None, HALF, None].value == pytest.approx(0.875)
    assert rows["top_set", "attention", None, None].value == pytest.approx(1.0)
    assert rows["order", "attention", MEAN, None].value == pytest.approx(1.0, abs=0.1)


def test_a_place_of_a_class_that_answers_differently_has_small_p_values():
    columns = measured(120, 10, noise=0.4)
    wrong = columns.predicted == "class1"
    for name in ("order_sum", "gain_top"):
        columns.values[MeasureKey(NAME, name, "attention")][wrong] *= -1
    rows = rows_of(columns)
    names = [f"class: texts predicted class{number}" for number in (0, 1)]
    assert rows["p_above", None, "order", names[0]].value < 0.01
    assert rows["p_below", None, "order", names[1]].value < 0.01
    assert rows["p_below", None, "order", names[0]].value > 0.9
    assert rows["share", None, None, names[1]].value == pytest.approx(0.5)


@pytest.mark.parametrize(("quality", "least", "most"), [(0.0, 0.7, 1.4), (1.0, 0.0, 0.3)])
def test_order_of_one_kind_of_ranking_differs_between_texts_as_chance_or_less(quality, least, most):
    found = value(
        measured(300, 10, noise=0.4, quality=quality), lambda r, t: Places(r, t).dispersion()
    )
    assert least <= found <= most


def test_order_that_is_right_in_some_texts_and_reversed_in_others_differs_more_than_chance():
    columns = measured(300, 10, noise=0.4)
    wrong = np.random.default_rng(1).random(300) < 0.5
    columns.values[MeasureKey(NAME, "order_sum", "attention")][wrong] *= -1
    found = rows_of(columns)
    assert found["dispersion", None, None, None].low > 2
    share = found["share_not_ranked", None, None, None]
    assert share.low < wrong.mean() < share.high
    assert share.high - share.low < 0.13


def test_the_share_of_texts_that_are_not_ranked_by_a_plain_loop():
    columns = measured(60, 8, noise=0.5, quality=0.6)
    read = lambda *key: columns.values[MeasureKey(NAME, key[0], key[1], setting=key[2])]  # noqa: E731
    agreed, stakes = read("order_sum", "attention", None), read("order_weight", None, None)
    halves = np.mean([read("half_weight", None, part) for part in ("1", "2")], axis=0)
    columns.values[MeasureKey(NAME, "exact")][:30] = 1.0
    ceiling = np.sqrt(2 - np.mean((halves / stakes)[30:]) ** 2)
    below = [
        agreed[text] / stakes[text] / (1.0 if text < 30 else ceiling) < 0.5 for text in range(60)
    ]
    found = rows_of(columns)["share_not_ranked", None, None, None]
    assert (found.value, found.n) == (pytest.approx(np.mean(below)), 60)


def test_long_texts_that_are_ranked_more_or_less_well_do_not_answer_differently():
    """Of long texts a random ranking varies less than good rankings of unlike quality do."""
    columns = measured(60, 8, noise=0.1)
    stakes = columns.values[MeasureKey(NAME, "order_weight")]
    quality = np.linspace(0.65, 1.0, 60)
    columns.values[MeasureKey(NAME, "order_sum", "attention")][:] = quality * stakes
    columns.values[MeasureKey(NAME, "order_chance", "attention")][:] = 0.001 * stakes**2
    found = rows_of(columns)
    assert found["dispersion", None, None, None].low > 1
    assert found["share_not_ranked", None, None, None].value == 0.0


def test_shares_of_texts_are_never_certain():
    found = rows_of(measured(40, 8, noise=0.3, effect=0.01))["share_below", None, "0.05", None]
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low < 0.92


def test_parts_are_tested_by_distinct_texts_where_texts_are_drawn_by_document():
    columns = measured(160, 10, noise=0.3)
    second = columns.predicted == "class1"
    columns.values[MeasureKey(NAME, "order_sum", "attention")][second] *= -1
    for documents, tested in ((20, True), (5, False)):
        ids = np.arange(160) % documents
        drawn = replace_clusters(ids, np.arange(160))
        rows = estimate_influence(columns, drawn, [], epsilon=0.05)
        assert any(one.measure == "p_below" for one in rows) == tested
    copies = replace_clusters(np.arange(160) % 20, np.arange(160) % 20)
    rows = estimate_influence(columns, copies, [], epsilon=0.05)
    assert not any(one.measure == "p_below" for one in rows)


def test_few_texts_are_not_tested_apart():
    rows = rows_of(measured(50, 10, noise=0.4, effect=0.3))
    assert not [key for key in rows if key[0] == "p_above"]


def test_nothing_is_estimated_where_no_text_has_enough_words():
    columns = measured(3, 8, noise=0.3)
    for column in columns.values.values():
        column[:] = np.nan
    assert estimate_influence(columns, RESAMPLING, [], epsilon=0.05) == ()
