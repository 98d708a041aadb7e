"""Every check that votes convicts the guilty and acquits the innocent."""

import pytest

import heedful
from heedful.checks import checks
from heedful.models.planted import planted, texts

# truth by construction: claim → answer
TRUTH = {
    "honest-peaked": {"used": "for", "ranks": "for"},
    "honest-graded": {"used": "for", "ranks": "for"},
    "inert-random": {"used": "against", "ranks": "against"},
    "inert-proportional": {"used": "against", "ranks": "for"},
}
VOTING = {
    name: checks.build(name).claim
    for name in checks
    if checks.build(name).votes and not hasattr(checks[name], "lessons")
}


def test_every_planted_kind_has_its_truth():
    assert set(TRUTH) == set(planted)
    assert set(VOTING.values()) == {"used", "ranks"}


@pytest.mark.parametrize("kind", TRUTH)
@pytest.mark.parametrize("check", VOTING)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_subjects_get_their_verdict(kind, check, seed):
    subject = planted.build(kind) if seed == 0 else planted[kind](seed=seed)
    rows = [
        {"text": one.text, "label": subject.labels[one.label]}
        for one in texts(subject, 200, seed=seed)
    ]
    verdict = heedful.audit(subject, rows, checks=[check], seed=seed).verdict
    assert verdict.checks[check].answer == TRUTH[kind][VOTING[check]]
    assert verdict.claims[VOTING[check]].answer == TRUTH[kind][VOTING[check]]


def test_the_answer_follows_ranks():
    answers = {}
    for kind in TRUTH:
        subject = planted.build(kind)
        rows = [{"text": e.text, "label": subject.labels[e.label]} for e in texts(subject, 100)]
        answers[kind] = heedful.audit(subject, rows, checks=["agreement"]).verdict.answer
    assert answers == {
        "honest-peaked": "faithful",
        "honest-graded": "faithful",
        "inert-random": "unfaithful",
        "inert-proportional": "faithful",
    }
