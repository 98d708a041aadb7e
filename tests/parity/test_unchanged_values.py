"""Models kept at commit e24f016 still predict the same logits, and checks find the same values.

How the kept files came about is described in tests/fixtures/e24f016/README.md. Only public names
are used here, but for the key of random draws, and both sides are read as data frames, so that the
tests outlive the names of modules and of columns.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.core.batch import Batch

KEPT = Path(__file__).parents[1] / "fixtures" / "e24f016"
MODELS = {  # the data of each model, and how it is loaded in float64
    "recurrent": ("data.jsonl", {}),
    "recurrent-query": ("queries.jsonl", {}),
    "transformer": ("data.jsonl", {"dtype": "float64"}),
}
RUNS = {  # the model of each run, and the settings of its checks where they are not the default
    "run-recurrent": (
        "recurrent",
        {
            "agreement": {
                "methods": [
                    *("gradient", "input_x_gradient", "integrated_gradients", "smoothgrad", "lrp"),
                    *("occlusion", "random"),
                ]
            }
        },
    ),
    "run-query": (
        "recurrent-query",
        {
            "agreement": {"methods": ["gradient", "input_x_gradient"]},
            "adversarial": {"steps": 50},
        },
    ),
    "run-transformer": (
        "transformer",
        {
            "agreement": {
                "methods": [
                    *("rollout", "gradient_rollout", "effective_attention"),
                    *("gradient", "input_x_gradient"),
                ]
            },
            "adversarial": {"steps": 50},
        },
    ),
}
DEFAULT = {"agreement", "permutation", "adversarial", "mechanism", "erasure"}
ROWS = {  # how many rows each kept run has, by check
    "run-recurrent": {
        **{"agreement": 2260, "permutation": 80, "adversarial": 120, "mechanism": 60},
        **{"erasure": 200},
    },
    "run-query": {
        **{"agreement": 304, "permutation": 32, "adversarial": 48, "mechanism": 8, "erasure": 72},
    },
    "run-transformer": {
        **{"agreement": 1780, "permutation": 120, "adversarial": 100, "mechanism": 200},
        **{"erasure": 180, "faithfulness": 3420, "plausibility": 940, "randomisation": 560},
        **{"identifiability": 600},
    },
    "run-head": {"agreement": 520, "mechanism": 200, "faithfulness": 1900},
    "run-retrained": {
        **{"necessity": 180, "seeds": 180, "guide": 300, "adversary": 360, "deception": 240},
        **{"labels": 420, "roar": 720, "off_manifold": 1160},
    },
}
FOUND = ("value", "predicted", "label")  # every other column is part of the key
NEAR = 1e-12


@pytest.mark.parametrize("name", MODELS)
def test_a_kept_model_predicts_the_kept_logits(name):
    data, choices = MODELS[name]
    subject = heedful.load(KEPT / name, **choices)
    rows = list(heedful.read(KEPT / data, labels=subject.labels))
    found = subject.forward(subject.batch([subject.encode(one) for one in rows])).logits
    kept = json.loads((KEPT / "logits.json").read_text(encoding="utf-8"))[name]
    assert len(kept) == len(rows) > 0
    np.testing.assert_allclose(found.detach().numpy(), kept, rtol=0, atol=NEAR)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_kept_run_is_read_and_none_is_doubled(name):
    frame = heedful.Run(KEPT / name).to_dataframe()
    assert frame["check"].value_counts().to_dict() == ROWS[name]
    by_key(frame, [one for one in frame.columns if one not in FOUND])


@pytest.mark.parametrize("name", RUNS)
def test_every_default_check_finds_the_kept_values(name, tmp_path, monkeypatch):
    """Draws were keyed by the number of the row then, and are keyed by the text's content now."""
    monkeypatch.setattr(Batch, "content", property(lambda batch: [*map(str, batch.instances)]))
    model, settings = RUNS[name]
    data, choices = MODELS[model]
    run = heedful.audit(
        KEPT / model,
        KEPT / data,
        out=tmp_path / "run",
        resamples=200,
        subject=choices,
        settings=settings,
    )
    now, kept = (frame_of(one) for one in (run, heedful.Run(KEPT / name)))
    assert set(now["check"]) == set(kept["check"]) == DEFAULT
    assert_equal_rows(now, kept)


def frame_of(run):
    """The rows of the default checks; a run may hold further ones."""
    frame = run.to_dataframe()
    return frame[frame["check"].isin(DEFAULT)]


def assert_equal_rows(now, kept):
    """The same keys, each once, with the same values, predicted classes and labels."""
    shared = [one for one in now.columns if one in kept.columns]
    keys = [one for one in shared if one not in FOUND]
    assert {"instance", "check", "measure"} <= set(keys)
    assert set(FOUND) <= set(shared)
    now, kept = (by_key(frame, keys) for frame in (now, kept))
    assert sorted(now.keys() ^ kept.keys(), key=str) == []
    wrong = {key: (now[key], kept[key]) for key in kept if not equal_found(now[key], kept[key])}
    assert wrong == {}


def by_key(frame, keys):
    """What was found under each key, in the order of `FOUND`; null is None, in keys too."""
    plain = frame.astype(object).where(frame.notna(), None)
    rows = plain[keys].itertuples(index=False, name=None)
    found = dict(zip(rows, plain[list(FOUND)].itertuples(index=False, name=None), strict=True))
    assert len(found) == len(frame), "two rows share a key"
    return found


def equal_found(one, other):
    """Whether two values are as near as they must be, or both undefined, of the same classes."""
    (value, *classes), (kept, *known) = one, other
    if None in (value, kept):
        return value is kept and classes == known
    return abs(value - kept) <= NEAR and classes == known
