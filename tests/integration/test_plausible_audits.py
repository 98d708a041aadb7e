"""Plausibility in whole audits: what the data says is found, told and shown apart."""

import tomllib

import numpy as np
import pytest
from scipy.stats import kendalltau

import heedful
from heedful.checks.sanity.plausibility.spec import NOT_FAITHFULNESS
from heedful.planted.hand_built import draw_texts, hand_built_subjects
from heedful.planted.texts import CUE_WORDS
from support.sections import names_of, sections_of

WORDS = [f"w{number}" for number in range(CUE_WORDS)]


def rows(kind, count=60, **more):
    """Texts of a planted subject; people mark its decisive words, or any of the same names."""
    subject = hand_built_subjects[kind](seed=1)
    made = []
    for example in draw_texts(subject, count, seed=2):
        tokens = example.text.split()
        marked = [place for place, word in enumerate(tokens) if word in WORDS]
        row = {"text": example.text, "label": subject.labels[example.label]}
        made.append({**row, "rationale": marked, **{k: f(tokens) for k, f in more.items()}})
    return subject, made


def audited(subject, data, **settings):
    return heedful.audit(subject, data, checks=("plausibility",), resamples=200, **settings)


@pytest.fixture(scope="module")
def honest():
    return audited(*rows("honest-peaked"))


def test_attention_on_the_words_that_people_mark_is_plausible(honest):
    found = honest.verdict.checks["plausibility"]
    area = found.by_method("auprc")
    assert area["attention"].value == pytest.approx(1.0)
    assert found.of("top_k", method="attention").value == pytest.approx(1.0)
    assert area["attention"].low > area["random"].high
    assert "better than chance" in found.why


def test_attention_is_not_where_people_mark_words_that_have_nothing_to_do_with_it():
    subject, data = rows("honest-peaked")
    draw = np.random.default_rng(0)
    for one in data:
        one["rationale"] = np.flatnonzero(draw.random(len(one["text"].split())) < 0.1).tolist()
    found = audited(subject, data).verdict.checks["plausibility"]
    own = found.of("beyond_random", method="attention")
    assert own.low < 0 < own.high
    assert "about as chance does" in found.why
    (row,) = (one for one in found.rows("auprc", method="attention") if one.predicted is None)
    assert row.undefined == sum(not one["rationale"] for one in data) > 0


def test_it_decides_nothing_and_says_why(honest):
    found = honest.verdict.checks["plausibility"]
    assert found.answer == "no vote"
    assert found.why.endswith(NOT_FAITHFULNESS)
    assert honest.verdict.answer == "undecided"
    assert all("plausibility" not in claim.checks for claim in honest.verdict.claims.values())


def test_the_share_is_that_of_the_data_and_kept_in_the_plan(honest, tmp_path):
    _, data = rows("honest-peaked")
    mean = sum(len(one["rationale"]) / len(one["text"].split()) for one in data) / len(data)
    plan = tomllib.loads((honest.folder / "plan.toml").read_text())
    assert plan["settings"]["plausibility"]["share"] == pytest.approx(mean)
    subject, _ = rows("honest-peaked", 1)
    settings = {"plausibility": {"share": 0.5}}
    own = audited(subject, data[:5], settings=settings, out=tmp_path / "run")
    plan = tomllib.loads((own.folder / "plan.toml").read_text())
    assert plan["settings"]["plausibility"]["share"] == 0.5


def test_data_without_marks_is_no_error():
    subject, data = rows("honest-peaked", 8)
    bare = [{name: one[name] for name in ("text", "label")} for one in data]
    found = audited(subject, bare).verdict.checks["plausibility"]
    assert not found.measured
    reasons = {(one.measure, one.method): one.reason for one in found.missing}
    assert reasons["auprc", "attention"] == "no text has a rationale"
    assert reasons["rank_human", "attention"] == "no text has word_scores"
    assert "no text has" in found.why.lower()


def test_scores_of_single_words():
    def scores(tokens):
        return [float(word in WORDS) * (1 if int(word[1:]) % 2 else -1) for word in tokens]

    subject, data = rows("honest-peaked", 30, word_scores=scores)
    found = audited(subject, data).verdict.checks["plausibility"]
    taus = []
    for one in data:
        weights = [float(subject.table[int(word[1:]), 0]) for word in one["text"].split()]
        taus.append(kendalltau(weights, np.abs(one["word_scores"])).statistic)
    assert found.of("rank_human", method="attention").value == pytest.approx(np.mean(taus))
    assert found.of("sign_human", method="leave_one_out").value == pytest.approx(1.0)
    assert "scores that people gave words better than chance" in found.why


def test_the_page_shows_it_apart(honest):
    found = sections_of(honest.records)
    assert [one.name for one in found["descriptive"].parts] == ["check-plausibility"]
    section = found["check-plausibility"]
    (table,) = section.tables
    assert table.head[1:4] == ("AUPRC", "AUPRC beyond random", "words chosen, F1")
    assert table.head[4:-1] == ("spans chosen, F1", "among as many top words")
    assert names_of(table)[0] == "attention"
    assert [row[0].muted for row in table.rows][-2:] == [True, True]
    assert "Do people point at the same words?" in section.title
    assert any(NOT_FAITHFULNESS in one for one in section.words)
    html = honest.report(honest.folder / "page.html").read_text(encoding="utf-8")
    assert "people’s words ranked early by attention" not in html  # no second table of the same
    assert NOT_FAITHFULNESS.split(":")[0] in honest.markdown()
