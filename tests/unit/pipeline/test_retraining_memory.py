"""How many retrained models an audit has in memory: few at a time, each read when it is used."""

import gc
import weakref

import heedful
from heedful.training.variants import variant_store
from support.retraining import base

FEW = {"seeds": 2, "epochs": 1, "patience": 1}
SETTINGS = {
    "necessity": FEW,
    "seeds": FEW,
    "labels": {**FEW, "methods": ["attention"]},
    "roar": {**FEW, "methods": ["attention"], "shares": [0.3]},
}


def test_an_audit_reads_models_one_after_the_other_and_lets_them_go(monkeypatch, tmp_path):
    load, kept, alive = variant_store._load_variant, [], []

    def counted(*words):
        gc.collect()
        alive.append(sum(one() is not None for one in kept))
        found = load(*words)
        kept.append(weakref.ref(found.subject))
        return found

    monkeypatch.setattr(variant_store, "_load_variant", counted)
    run = heedful.audit(
        base(),
        "synthetic:needle",
        out=tmp_path / "run",
        checks=list(SETTINGS),
        settings=SETTINGS,
        limit=10,
        resamples=100,
        retraining={"workers": 1, "limit": 160},
    )
    made = run.manifest["retrained"]
    assert len(made) == 11  # own and uniform attention, an adversary, two arms and shuffled labels
    assert len({one["key"] for one in made}) == len(made)
    assert len(kept) >= len(made)
    assert max(alive) < variant_store.MODELS_IN_MEMORY  # before each is read
    gc.collect()
    assert not any(one() is not None for one in kept)  # the audit is over
