"""What `heedful check` says of a model: "ok" of nothing that has nothing to measure."""

from types import SimpleNamespace

import pytest

from heedful.checks.attention.identifiability.check import NO_LAYERS
from heedful.checks.base import Findings, missing_of
from heedful.checks.influence.cost import expected_passes
from heedful.models.batch_context import BatchContext
from heedful.pipeline.audit import capabilities as room
from heedful.pipeline.audit.capabilities import inspect_subject
from support import attention_families, subjects

FIVE = ("encode", "batch", "embed", "forward", "decoder")


def bare(inner):
    """No more of a subject than the protocol asks for."""
    verbs = {name: getattr(inner, name) for name in FIVE}
    return SimpleNamespace(family="bare", labels=inner.labels, **verbs)


def shown(subject, check):
    """What is said of one check: the others would take their time."""
    context = BatchContext(subject, attention_families.batch(subject))
    return room._ok_or_reason(room._check(check, context))


@pytest.mark.parametrize("made", [subjects.subject, lambda: bare(subjects.subject())])
def test_a_check_that_measures_nothing_says_why(made):
    found = inspect_subject(made())["checks"]
    assert found["identifiability"] == NO_LAYERS
    assert found["agreement"] == found["mechanism"] == "ok"


def test_a_check_with_part_of_its_measures_serves():
    assert shown(attention_families.subject("bert"), "identifiability") == "ok"
    tapped = attention_families.subject("deberta")  # its states are seen, what its heads mix is not
    assert tapped.attention_path == "tap"
    assert shown(tapped, "identifiability") == "ok"


def test_every_reason_is_given_once(monkeypatch):
    monkeypatch.setattr(room, "checks", SimpleNamespace(build=lambda _: lambda _: reasons))
    reasons = Findings((), missing_of({"one": "So.", "two": "So.", "three": "Thus."}))
    assert shown(subjects.subject(), "any") == "So. Thus."
    reasons = Findings(())
    assert shown(subjects.subject(), "any") == "It measures nothing here."


def test_weights_that_cannot_be_drawn_anew_are_no_success():
    why = shown(bare(subjects.subject()), "randomisation")
    assert "it cannot be randomised" in why


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (subjects.subject, "shared states"),
        (lambda: bare(subjects.subject()), "whole passes"),
        (lambda: attention_families.subject("bert"), "own attention, last layer for one position"),
        (lambda: attention_families.subject("gpt2"), "own attention"),
    ],
)
def test_how_texts_without_words_are_run_is_said(made, wanted):
    assert room._describe_variants(made()) == wanted


def test_the_passes_of_influence_count_the_special_tokens_of_the_model():
    subject = subjects.subject()
    found = room._influence_passes(subject)
    assert found["budget"] == round(expected_passes(20, special=2)["budget"], 1) < 60
    assert found["methods"] > 0
    assert "further_orders" not in found
