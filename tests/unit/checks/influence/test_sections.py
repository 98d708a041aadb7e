"""The section of influence: which attention, kin apart, flips, parts of the texts, in words."""

from dataclasses import replace

import pytest

from heedful.checks.influence.figures import HALF_ROLE, SHUFFLED_ROLE
from heedful.checks.influence.names import KIN
from heedful.checks.influence.summary import is_kin
from heedful.methods import methods
from heedful.report.pages.run_html import render_html
from heedful.report.sections.slices import build_slices
from support.figures import draw, figures_of
from support.influence_records import METHODS, influence_result, influenced
from support.sections import names_of, sections_of, values_of


def test_kin_of_the_yardstick_are_the_methods_that_erase_words():
    assert {name for name in methods if is_kin(name)} == set(KIN)


def test_attention_derived_methods_stand_first_and_kin_apart():
    part = sections_of(influenced())["influence-methods"]
    attention, others, kin = part.tables
    assert names_of(attention) == ["attention", "rollout"]
    assert names_of(others) == ["integrated_gradients"]
    assert names_of(kin) == ["leave_one_out"]
    assert attention.rows[0][0].strong
    assert values_of(attention, 1) == [0.64, 0.41]
    assert [row[5] for row in attention.rows] == ["yes", "no"]
    assert any("leave_one_out" in line and "never named" in line for line in part.words)
    assert part.folded[0].points == ("alti: this model has one attention",)


def which(**settings):
    part = sections_of(influenced(result=influence_result(**settings)))["influence-methods"]
    return part.words[0]


def test_one_sentence_says_which_explanations_explain_the_model():
    assert "Of 2 explanations derived from attention, 1 explains this model" in which()
    assert which().endswith(": attention.")
    low = {name: (kind, 0.3, 0.3, 0.3, 0.1) for name, (kind, *_) in METHODS.items()}
    assert which(methods=low).startswith("None of the 2 explanations")


@pytest.mark.parametrize("settings", [{"reliability": 0.4}, {"shuffled": 0.8}])
def test_without_a_yardstick_no_explanation_explains_the_model(settings):
    assert "no yardstick" in which(**settings)


def test_orders_reliability_and_second_readings_are_said_in_words():
    words = " ".join(sections_of(influenced())["influence"].words)
    assert "4 orders" in words
    assert "0.840 [0.820, 0.860]" in words
    assert "masked instead of deleted, the place of attention is 0.450" in words
    assert "other side of the middle" in words
    assert "nearly all words are left, the place of attention is 0.560" in words


def test_a_model_that_cannot_mask_says_so():
    result = influence_result()
    rows = tuple(row for row in result.by if row.setting != "masking")
    made = influenced(result=replace(result, by=rows))
    assert any("Words were not masked" in one for one in sections_of(made)["influence"].words)


def test_places_are_drawn_beside_their_controls_with_a_line_at_the_middle():
    figure = figures_of(influenced())["influence_places"]
    roles = {
        (row["group"], row["role"]): row["value"]
        for row in figure.rows
        if row["group"] in ("order of all words", "order, words masked")
    }
    assert roles == {
        ("order of all words", "attention"): 0.64,
        ("order of all words", HALF_ROLE): 0.85,
        ("order of all words", SHUFFLED_ROLE): 0.0,
        ("order, words masked", "attention"): 0.45,
    }
    assert figure.span[1] > 1.15
    assert [mark["rule"] for mark in figure.marks] == [0.5]
    draw(figure)


def test_flips_are_drawn_for_all_texts_and_by_class():
    figure = figures_of(influenced())["influence_flips"]
    found = {(row["group"], row["class"]): row["value"] for row in figure.rows}
    assert found["attention", "all texts"] == 0.33
    assert found["attention", "neg"] == 0.33
    assert found["best set found (a bound)", "all texts"] == 0.79
    assert found["best method: integrated_gradients", "all texts"] == 0.36
    assert "no method is expected to reach" in figure.caption
    table = sections_of(influenced())["influence-flips"].tables[0]
    assert "attention minus random, paired" in names_of(table)
    draw(figure)


def test_parts_of_the_texts_have_their_share_and_a_mixed_answer_is_named():
    part = sections_of(influenced())["influence-strata"]
    assert part.words[0].startswith("No division of the texts")
    (table,) = part.tables
    assert [row[2] for row in table.rows] == ["50 %", "50 %"]
    assert values_of(table, 3) == [0.7, 0.3]
    mixed = sections_of(influenced(result=influence_result(p=(0.001, 0.999))))
    words = mixed["influence-strata"].words[0]
    assert "holds for texts predicted neg (50% of the texts), not for texts predicted pos" in words


def test_slices_show_those_of_the_audit_and_not_the_parts_of_the_check():
    (table,) = build_slices(influenced()).tables
    assert not {row[0] for row in table.rows} & {"class", "length"}


def test_the_section_stands_before_the_checks_and_is_not_called_descriptive():
    page = render_html(influenced())
    assert page.index('id="claims"') < page.index('id="influence"') < page.index('id="checks"')
    assert page.index('id="check-influence"') > page.index('id="checks"')
    assert 'id="check-influence-methods"' in page
    assert "nan" not in page


def test_a_run_that_measured_nothing_has_no_section():
    nothing = replace(influence_result(), estimates={}, by=())
    assert "influence" not in sections_of(influenced(result=nothing, places={}, flips=None))
