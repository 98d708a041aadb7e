"""How far off whole texts others lie, against plain loops, and where the answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.checks import checks
from heedful.checks.faithfulness.off_distribution import ReferenceSample
from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.rng import generator
from heedful.core.values import Example, MaskEmbedding
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from heedful.numerics.tensor.erasure_metrics import nearest_distance, share_nearer
from support import measured_values, subjects
from support.reference_removal import members, subject

BINS, SEED = (0.2, 0.5), 5
PIECED = ("unbelievable", "film", "was", "good", "the", "unly", "bad", "so", "a")


def examples(name, count=24):
    draw = np.random.default_rng(7)
    words = subjects.WORDS if name == "bilstm" else PIECED
    texts = [" ".join(draw.choice(words, draw.integers(1, 7))) for _ in range(count)]
    return [Example(100 + 3 * place, text, 0) for place, text in enumerate(texts)]


def sitting_on(name, rows, **more):
    one = subject(name)
    reference = ReferenceSample(one, lambda: examples(name))
    texts = [one.encode(examples(name)[row]) for row in rows]
    return BatchContext(one, one.batch(texts), seed=SEED, reference=reference, **more), texts


def check(**settings):
    given = {
        "methods": (),
        "bins": BINS,
        "draws": 0,
        "steps": 1,
        "orders": 2,
        "perturbations": 0,
    } | settings
    return checks.build("faithfulness", **given)


def rows_of(findings):
    return {
        name: values
        for name, values in measured_values.columns(findings).items()
        if name.startswith("off_distribution")
    }


def state(one, text, *, gone=(), way="deletion"):
    """Σ αₜhₜ of a text alone, in plain numbers."""
    left, x = text, None
    if way == "deletion":
        kept = [t for t in range(len(text.ids)) if t not in gone]
        types = None if text.types is None else tuple(text.types[t] for t in kept)
        ids, word = (tuple(part[t] for t in kept) for part in (text.ids, text.word))
        left = Encoded(text.index, 0, ids, word, text.words, types=types)
    batch = one.batch([left])
    if way == "masking":
        x = one.embed(batch).clone()
        for t in gone:
            x[0, t] = get_mask_embedding(BatchContext(one, batch)).vector
    with torch.no_grad():
        forward = one.forward(batch, x)
    weights = forward.attention[0] * batch.mask[0]
    return (weights[:, None] * forward.states[0]).sum(0).double().tolist()


def share(point, whole, mine):
    """Of all whole texts those that have a nearer neighbour, ties half."""
    numbers = [*whole]
    own = min(math.dist(point, whole[n]) for n in numbers if n != mine)
    usual = [min(math.dist(whole[n], whole[m]) for m in numbers if m != n) for n in numbers]
    near = 1e-6 * max(usual)
    return np.mean([0.5 if abs(own - d) <= near else float(d < own) for d in usual])


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_every_share_is_that_of_a_plain_loop(name):
    context, texts = sitting_on(name, (0, 4, 9, 11))
    one = context.subject
    found = rows_of(check()(context))
    whole = {text.index: text for text in map(one.encode, examples(name))}
    whole = {number: state(one, text) for number, text in whole.items()}
    for row, text in enumerate(texts):
        plain = share(whole[text.index], whole, text.index)
        assert found["off_distribution_whole"][row] == pytest.approx(plain, abs=1e-9)
        words = members(text, "words")
        chance = generator(SEED, "orders of faithfulness", text.content).random((2, len(words)))
        weights = one.forward(one.batch([text])).attention[0].detach().double()
        weights = np.array([sum(float(weights[t]) for t in word) for word in words])
        orders = {"": (-weights).argsort(), "[random]": (-chance[0]).argsort()}
        for way in ("deletion", "masking"):
            for setting, order in orders.items():
                far = []
                for part in BINS:
                    size = max(1, math.ceil(round(part * len(words), 9)))
                    gone = [t for word in order[:size] for t in words[word]]
                    far.append(share(state(one, text, gone=gone, way=way), whole, text.index))
                hand = pytest.approx(np.mean(far), abs=1e-9)
                assert found[f"off_distribution_{way}{setting}"][row] == hand, (way, setting)


def test_whole_texts_lie_at_one_half_by_construction():
    context, _ = sitting_on("bilstm", range(24))
    assert rows_of(check()(context))["off_distribution_whole"].mean() == pytest.approx(0.5)


def test_points_far_off_are_strange_and_points_in_the_middle_are_not():
    draw = torch.Generator().manual_seed(0)
    reference = torch.randn(200, 3, generator=draw).double()
    every = torch.ones(1, 200).bool()
    usual = nearest_distance(reference, reference, ~torch.eye(200).bool())
    for point, low, high in ((9.0, 1.0, 1.0), (0.0, 0.0, 0.5)):
        far = nearest_distance(torch.full((1, 3), point).double(), reference, every)
        assert low <= float(share_nearer(far, usual)) <= high
    new = torch.randn(400, 3, generator=draw).double()  # drawn alike: as far as whole ones
    shares = share_nearer(nearest_distance(new, reference, torch.ones(400, 200).bool()), usual)
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.06)
    assert share_nearer(torch.tensor([math.nan]).double(), usual).isnan().all()


def test_a_vector_the_model_never_saw_makes_masked_texts_strange():
    """The blank of this model lies far from all its words; the way that uses it is told."""
    one = subjects.subject("average", seed=3)

    class Blanked:
        def __init__(self, inner):
            self.inner = inner
            self.family, self.labels = inner.family, inner.labels
            self.encode, self.batch, self.embed = inner.encode, inner.batch, inner.embed
            self.forward, self.decoder = inner.forward, inner.decoder

        def mask_embedding(self):
            width = self.inner.network.shape.embedding
            return MaskEmbedding("far", torch.full((width,), 50.0).double())

    blanked = Blanked(one)
    reference = ReferenceSample(blanked, lambda: examples("bilstm"))
    texts = [one.encode(example) for example in examples("bilstm") if " " in example.text]
    found = rows_of(check()(BatchContext(blanked, one.batch(texts), reference=reference)))
    assert found["off_distribution_masking"].mean() > 0.8
    assert found["off_distribution_masking"].mean() > 0.2 + (
        found["off_distribution_deletion"].mean()
    )


def test_company_and_budget_never_matter():
    rows = (2, 5, 8, 13)
    together = rows_of(check()(sitting_on("bilstm", rows)[0]))
    for place, row in enumerate(rows):
        alone = rows_of(check()(sitting_on("bilstm", (row,), max_batch_tokens=7)[0]))
        for key, values in alone.items():
            assert values[0] == pytest.approx(together[key][place], abs=1e-9), key


def test_without_whole_texts_it_says_why():
    one = subject("bilstm")
    batch = subjects.batch(one, [3, 4])
    findings = check()(BatchContext(one, batch))
    assert rows_of(findings) == {}
    names = {f"off_distribution_{what}" for what in ("whole", "deletion", "masking")}
    assert names <= measured_values.measures(checks.spec("faithfulness"))
    missing = measured_values.missing(findings)
    assert all("no whole texts of the data" in missing[name] for name in names)
    few = ReferenceSample(one, lambda: examples("bilstm")[:7])
    found = check()(BatchContext(one, batch, reference=few))
    assert "the data has 7 texts" in measured_values.missing(found)["off_distribution_whole"]
    with pytest.raises(NotApplicable, match="takes at least 20"):
        few.states  # noqa: B018
    short = replace(few, examples=lambda: examples("bilstm"), min_words=6)
    with pytest.raises(NotApplicable, match=r"the data has \d texts"):
        short.states  # noqa: B018


def test_an_audit_holds_texts_against_its_own_data():
    words = subjects.WORDS
    draw = np.random.default_rng(1)
    rows = [
        {"text": " ".join(draw.choice(words, draw.integers(2, 8))), "label": f"class{n % 2}"}
        for n in range(30)
    ]
    settings = {"faithfulness": {"methods": [], "draws": 0, "steps": 2, "orders": 1}}
    runs = [
        heedful.audit(
            subjects.subject(), rows, checks=["faithfulness"], settings=settings, **more
        ).verdict.checks["faithfulness"]
        for more in ({}, {"instances_per_job": 7, "max_batch_tokens": 30})
    ]
    whole = runs[0].estimates["off_distribution_whole"]
    assert whole.value == pytest.approx(0.5)
    assert whole.n == 30
    assert "where 50% is usual" in runs[0].why
    for name, one in runs[0].estimates.items():
        assert runs[1].estimates[name].value == pytest.approx(one.value, abs=1e-6, nan_ok=True)
