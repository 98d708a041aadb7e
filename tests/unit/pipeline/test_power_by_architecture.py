"""Which row of the table of powers a subject is looked up in: a measured kind, or none."""

import pytest

import heedful
from heedful.pipeline.audit.run_audit import power_architecture
from heedful.pipeline.verdict.check_power import (
    ANY,
    ARCHITECTURES,
    UNKNOWN,
    AuditSetting,
    powers_for,
    read_bundled_powers,
)
from heedful.planted import ASKED_KINDS, KINDS, Case
from heedful.planted.hand_built import hand_built_subjects
from support import question_subjects, subjects, tiny_models


def test_the_kinds_that_were_measured_are_those_of_the_table():
    measured = {row["architecture"] for row in read_bundled_powers()["rows"]}
    assert measured == {*ARCHITECTURES, ANY}
    assert UNKNOWN not in ARCHITECTURES


@pytest.mark.parametrize("kind", KINDS)
def test_planted_subjects_are_of_a_measured_kind(kind):
    found = power_architecture(Case(kind, "easy", 10, 0).subject)
    assert found == ("transformer" if kind.startswith("compiled") else "recurrent")


@pytest.mark.parametrize("kind", ASKED_KINDS)
def test_planted_subjects_with_a_question_are_too(kind):
    assert power_architecture(Case(kind, "easy", 10, 0).subject) == "recurrent with a question"


def test_models_of_the_package_are_of_a_measured_kind():
    assert power_architecture(subjects.subject()) == "recurrent"
    assert power_architecture(question_subjects.subject()) == "recurrent with a question"
    loaded = heedful.load(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    assert power_architecture(loaded) == "transformer"
    assert power_architecture(hand_built_subjects.build("honest-graded")) == "recurrent"


def test_any_other_is_unknown_and_has_no_power():
    own = subjects.Adapter(subjects.subject())
    assert power_architecture(own) == UNKNOWN
    own.reads_question, own.attention_path = True, "interface"  # which say nothing of its kind
    assert power_architecture(own) == UNKNOWN
    own.architecture = "perceptron"
    assert power_architecture(own) == UNKNOWN
    known = powers_for(AuditSetting(UNKNOWN, 20.0, 100))
    assert known.of("used", "permutation") is None
    assert not known.where.measured
