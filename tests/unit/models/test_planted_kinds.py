"""The planted benchmark: deterministic, frozen, and every case a subject with its texts."""

from hashlib import sha256
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from benchmarks.planted_cases import section

import heedful
from heedful.core.errors import ConfigError, UnknownName
from heedful.core.values import Example
from heedful.models.protocols import HasFingerprint, Subject
from heedful.planted import ASKED_KINDS, KINDS, PLANTED_VERSION, Case, cases, truths
from heedful.planted import kinds as registry
from support.planted_cases import CELLS, TEXTS, cells_of, odds, seen

TRUTH = {  # committed before any rule was held against it: used, ranks, exclusive
    "honest-peaked": (True, True, True),
    "honest-graded": (True, True, None),
    "compiled-copy": (True, True, None),
    "compiled-graded": (True, True, None),
    "hidden": (True, False, None),
    "anti": (True, False, None),
    "running": (True, False, None),
    "frozen": (None, False, None),
    "inert-random": (False, False, False),
    "inert-proportional": (False, True, False),
    "leaky": (False, False, False),
    "routed": (False, False, False),
    "compiled-around": (False, False, False),
    "compiled-early": (False, False, False),
    "redundant": (None, None, None),
    "saturated": (None, None, None),
}

EVERYWHERE = [(kind, *cell) for kind in KINDS for cell in CELLS]
FROZEN = "30df9487216a4a8cdbd163031643479622b4618a69b08770826884264350e9db"
DOCS = Path(__file__).parents[3] / "docs" / "planted.md"


def test_the_truth_is_the_one_committed():
    assert tuple(TRUTH) == KINDS
    assert {*KINDS, *ASKED_KINDS} == set(registry)
    for kind, truth in TRUTH.items():
        given = Case(kind, "easy", 10, 0).truth
        assert dict(given) == dict(zip(("used", "ranks", "exclusive"), truth, strict=True))
        assert truths()[kind] == given
        with pytest.raises(TypeError):
            given["used"] = True


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_why_and_stands_in_the_docs(kind):
    why = registry[kind].__doc__
    scored = [name for name, truth in Case(kind, "easy", 10, 0).truth.items() if truth is not None]
    for name in scored:
        assert name in why.lower()
    assert scored or "Reported, not scored" in why
    said = " | ".join({True: "yes", False: "no", None: "·"}[one] for one in TRUTH[kind])
    assert f"| {kind} | {said} |" in DOCS.read_text(encoding="utf-8")


def test_the_page_is_the_one_its_script_prints():
    assert section() in DOCS.read_text(encoding="utf-8")


def test_this_version_does_not_change():
    """Where this fails, restore what was drawn before, or raise PLANTED_VERSION."""
    digest = sha256(str(PLANTED_VERSION).encode())
    for case in cases(0, 2 * len(KINDS)):
        rows = case.texts(3)
        encoded = [case.subject.encode(Example(0, row["text"], -1)) for row in rows]
        weights = case.subject.forward(case.subject.batch(encoded)).attention
        told = [(row["text"], row["label"]) for row in rows]
        digest.update(repr((case, told, (weights + 1e-12).mul(1e6).long().tolist())).encode())
    assert digest.hexdigest() == FROZEN


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_follows_from_its_seed_alone(kind):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    one, same, other = (Case(kind, "hard", 10, seed) for seed in (7, 7, 8))
    assert one == same
    assert one.subject is one.subject
    assert one.subject.fingerprint() == same.subject.fingerprint() != other.subject.fingerprint()
    assert one.texts(4) == same.texts(9)[:4]
    assert one.texts(4) != other.texts(4)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]


def test_cases_take_turns_and_cover_every_cell():
    made = cases(3, len(EVERYWHERE))
    assert {(one.kind, one.difficulty, one.length) for one in made} == set(EVERYWHERE)
    assert len({one.seed for one in made}) == len(made)
    assert cases(3, 5) == made[:5]
    assert cases(4, 5) != made[:5]
    alone = cases(3, 2, ["leaky"])
    assert alone == [one for one in made if one.kind == "leaky"][:2]


def test_what_is_not_in_the_benchmark_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'leaky'"):
        cases(0, 1, ["leeky"])
    with pytest.raises(ConfigError, match="No kinds were given"):
        cases(0, 1, [])
    with pytest.raises(ConfigError, match="got 'harder' and 10"):
        Case("leaky", "harder", 10, 0)
    with pytest.raises(ConfigError, match="got 'hard' and 11"):
        Case("leaky", "hard", 11, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_made_quickly(kind):
    Case(kind, "easy", 60, 0).subject  # noqa: B018 - libraries are loaded once
    start = perf_counter()
    Case(kind, "easy", 60, 1).subject  # noqa: B018
    assert perf_counter() - start < (1.0 if kind.startswith("compiled") else 0.1)


@cells_of(KINDS)
def test_texts_have_the_promised_words_and_labels(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    plant, labels = case.case.plant, set()
    assert isinstance(plant.subject, Subject)
    assert isinstance(plant.subject, HasFingerprint)
    for row, (ids, weights, z) in zip(case.rows, case.texts, strict=True):
        assert length // 2 <= len(ids) <= length + length // 2
        assert weights.sum() == pytest.approx(1.0)
        assert row["label"] == plant.subject.labels[int(z > 0)]
        labels.add(row["label"])
        assert abs(z) <= plant.bound
        if plant.cues:
            assert sum(ids < plant.cues) == plant.times
            assert len(set(ids[ids < plant.cues])) == 1
    assert len(labels) == 2 or len(case.rows) < TEXTS  # six may all be of one class


@cells_of(KINDS)
def test_padding_does_not_matter_and_the_decoder_is_the_subject_s_own(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    assert case.context.parity < 1e-9
    subject, together = case.case.subject, case.context.forward
    for row in range(0, len(case.rows), 6):
        batch = subject.batch([subject.encode(Example(0, case.rows[row]["text"], -1))])
        alone = subject.forward(batch)
        torch.testing.assert_close(alone.logits[0], together.logits[row], rtol=1e-9, atol=1e-9)
        own = together.attention[row][case.context.batch.mask[row]]
        torch.testing.assert_close(alone.attention[0][batch.mask[0]], own, rtol=1e-7, atol=1e-12)
        assert not together.attention[row][~case.context.batch.mask[row]].any()


@pytest.mark.parametrize("kind", KINDS)
def test_deletion_is_a_text_without_the_word(kind):
    case = seen(kind, "hard", 10)
    subject, words = case.case.subject, case.rows[0]["text"].split()
    z, moved = case.texts[0][2], case.moved[0]
    for place in range(len(words)):
        shorter = " ".join(words[:place] + words[place + 1 :])
        batch = subject.batch([subject.encode(Example(0, shorter, -1))])
        without = float(odds(subject.forward(batch).logits)[0])
        assert abs(without - z) == pytest.approx(moved[place], abs=1e-9)


def test_a_case_is_ready_for_an_audit():
    """That it runs, not what it says: no rule was looked at when the truth was written."""
    case = Case("routed", "easy", 10, 0)
    run = heedful.audit(case.subject, case.texts(8), checks=["permutation"])
    assert set(run.verdict.checks) == {"permutation"}
