"""Studies and published numbers as they are shipped: complete, and of things that exist."""

import csv
from dataclasses import fields, replace

import numpy as np
import pytest

from heedful.checks import checks
from heedful.core.errors import ConfigError, UnknownName
from heedful.core.records import MeasureKey
from heedful.data.cleaning.presets import CLEANINGS
from heedful.data.readers import readers
from heedful.pipeline.plan.plan import Plan
from heedful.results.tables import PartitionedTable, gather_columns
from heedful.studies import study as studying
from heedful.studies.cell_results import derive_measure
from heedful.studies.estimates import STATISTICS, WEIGHT_BINS
from heedful.studies.published_numbers import PUBLISHED_FOLDER, SOURCES, NumberKey, PublishedNumbers
from heedful.studies.study import Study, list_studies
from heedful.training.recipe import Recipe
from support.records import by_layer

NAMES = ("jain-wallace-2019", "serrano-smith-2019", "wiegreffe-pinter-2019")


def test_all_three_are_there():
    assert list_studies() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_study_asks_for_what_exists(name):
    study = Study.read(name)
    known = {one.name for one in fields(Recipe)}
    for texts in study.sets:
        assert {*study.recipe, *texts.recipe} <= known
    for settings in (study.settings, {**study.settings, **study.quick.settings}):
        Plan("m", "d", checks=study.checks, settings=settings)
    assert study.main[0] in study.encoders
    assert study.main[1] in study.attentions


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_about_sets_models_and_measures_of_the_study(name):
    study = Study.read(name)
    sets = {one.name for one in study.sets}
    promised = {
        f"{check}.{one.name}" for check in study.checks for one in checks.spec(check).measures
    }
    for claim in study.claims:
        assert {*claim.only, *claim.except_} <= sets
        assert {claim.measure, claim.than or claim.measure} <= promised
        for model in (claim.model, claim.than_model):
            assert model is None or (model[0] in study.encoders and model[1] in study.attentions)


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers_have_a_source_and_a_statistic_we_know(name):
    sets = {one.name for one in Study.read(name).sets}
    known = {*STATISTICS, "value", "significant", *(f"median {one}" for one in WEIGHT_BINS)}
    with (PUBLISHED_FOLDER / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(PublishedNumbers.of(name).figures)  # none stands there twice
    for row in rows:
        assert row["set"] in sets
        assert row["source"] in SOURCES
        assert row["statistic"] in known


def test_published_numbers_of_the_main_table():
    known = PublishedNumbers.of("jain-wallace-2019")
    model = ("bilstm", "additive")
    for texts, measure, value in (
        ("sst", "tau_leave_one_out", 0.291),
        ("sst", "tau_gradient_leave_one_out", 0.656),
        ("snli", "tau_gradient", 0.314),
        ("babi2", "tau_leave_one_out", -0.014),
    ):
        key = NumberKey(texts, model, f"agreement.{measure}", "mean")
        assert known.figures[key].value == value
        assert known.figures[key].source == "repo"
    asked = ("snli", model, "agreement.tau_gradient")
    classes = {
        key.of_class for key in known.figures if (key.texts, key.model, key.measure) == asked
    }
    assert classes == {"all", "0", "1", "2"}


def test_an_unknown_study_or_set_is_said_with_what_there_is():
    with pytest.raises(UnknownName, match="Did you mean 'jain-wallace-2019'"):
        Study.read("jain-wallace")
    with pytest.raises(UnknownName, match="has no set 'sts'"):
        Study.read(NAMES[0]).select(sets=["sts"])


def test_a_key_nobody_knows_is_an_error(tmp_path, monkeypatch):
    text = (studying.STUDIES_FOLDER / f"{NAMES[0]}.toml").read_text()
    (tmp_path / "mine.toml").write_text(f"colour = 3\n{text}")
    monkeypatch.setattr(studying, "STUDIES_FOLDER", tmp_path)
    with pytest.raises(ConfigError, match="has no 'colour'"):
        Study.read("mine")


def test_flips_are_parted_into_four_that_make_up_all():
    found = gather_columns(PartitionedTable.of(by_layer(5, 1, 1)))
    flips = {"flip_top": (1, 1, 0, 0, float("nan")), "flip_random": (1, 0, 1, 0, 1)}
    columns = {MeasureKey("erasure", name): np.array(one, float) for name, one in flips.items()}
    found = replace(found, values=columns)
    parts = [
        derive_measure(found, "erasure", f"flip_{one}")
        for one in ("both", "only_top", "only_random", "neither")
    ]
    assert [one.tolist()[:4] for one in parts] == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]


@pytest.mark.parametrize("name", NAMES)
def test_readers_and_cleanings_exist(name):
    for texts in Study.read(name).sets:
        assert not texts.reader or texts.reader in readers
        assert not texts.cleaning or texts.cleaning in CLEANINGS
