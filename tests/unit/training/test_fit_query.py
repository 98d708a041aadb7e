"""Training on texts with questions: as published for question answering, and seeded."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import heedful
from heedful import Recipe, fit
from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.core.rng import generator
from heedful.models.recurrent.classifier import QueryOutput
from heedful.models.recurrent.model_folder import load_model, save_model
from heedful.training.loop.predictions import require_dev, selection_score
from heedful.training.loop.trainables import SparseStep, build_recurrent_optimiser
from heedful.training.objectives import loss_for
from support import question_subjects

RECIPE = Recipe("cnn", "dot", epochs=4, hidden=16, embedding=16, batch=16, rate=0.02)
PEOPLE, PLACES = ("mary", "john", "sandra"), ("garden", "kitchen", "office")


def rows(count, seed, *, candidates=False):
    """Two or three people go to places; asked is where one of them is."""
    draw, made = generator(seed, "rows of a test"), []
    for _ in range(count):
        who = draw.permutation(PEOPLE)[: 2 + int(draw.integers(2))].tolist()
        where = draw.choice(PLACES, len(who)).tolist()
        asked = int(draw.integers(len(who)))
        told = [f"{one} {place} ." for one, place in zip(who, where, strict=True)]
        row = {"paragraph": told, "question": f"where is {who[asked]}", "label": where[asked]}
        made.append({**row, "candidates": sorted(set(where))} if candidates else row)
    return made


TRAIN, DEV = heedful.read(rows(500, 0)), heedful.read(rows(60, 1))


@pytest.fixture(scope="module")
def trained():
    return fit(TRAIN, DEV, RECIPE)


def test_answers_are_learnt_and_questions_are_read(trained):
    assert trained.family == "cnn-dot-query"
    assert max(trained.history["dev_scores"]) > 0.75  # without the question: 1 in 2
    assert "where" in trained.vocabulary.numbers  # of questions alone
    assert not trained.network.embedding.weight[0].any()


def test_the_same_seed_gives_the_same_weights():
    short = replace(RECIPE, epochs=1)
    one, again = (fit(TRAIN, DEV, short).network.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], again[name]) for name in one)


@pytest.mark.parametrize(("encoder", "attention"), [("bilstm", "additive"), ("average", "uniform")])
def test_every_kind_can_be_trained_kept_and_read(encoder, attention, tmp_path):
    recipe = replace(RECIPE, epochs=1, encoder=encoder, attention=attention)
    data = heedful.read(rows(40, 2, candidates=True))
    one = fit(data, heedful.read(rows(20, 3, candidates=True)), recipe)
    assert one.family == f"{encoder}-{attention}-query"
    save_model(one, tmp_path)
    back = load_model(tmp_path, dtype=torch.float32)
    texts = one.batch([one.encode(example) for example in data])
    assert texts.allowed is not None
    torch.testing.assert_close(
        back.forward(texts).logits, one.forward(texts).logits, rtol=0, atol=0
    )
    assert back.fingerprint() == one.fingerprint()
    assert isinstance(back.network.decoder, QueryOutput)


def test_a_step_is_that_of_plain_autograd():
    one = question_subjects.subject(seed=8)
    batch, gold = question_subjects.context(one).batch, torch.tensor([0, 1, 2, 3, 0])
    theirs = question_subjects.subject(seed=8).network.requires_grad_(True)
    network = one.network.requires_grad_(True)
    recipe = Recipe(rate=0.1, decay=0.01)
    step = SparseStep(network, build_recurrent_optimiser(network, recipe))
    adam = torch.optim.Adam(theirs.parameters(), lr=0.1, weight_decay=0.01, amsgrad=True)
    for _ in range(3):
        mine = step(batch, lambda forward: nn.functional.cross_entropy(forward.logits, gold))
        adam.zero_grad()
        loss = nn.functional.cross_entropy(theirs(batch, theirs.embed(batch.ids)).logits, gold)
        loss.backward()
        adam.step()
        assert float(mine) == pytest.approx(float(loss.detach()), abs=1e-12)
    for (name, own), other in zip(network.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-10, msg=name)


def test_every_text_weighs_the_same_and_answers_are_counted():
    logits, gold = torch.tensor([[2.0, 0.0], [0.5, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 1])
    chances = logits.log_softmax(-1)
    want = -(chances[0, 0] + chances[1, 0] + chances[2, 1]) / 3
    assert float(loss_for([0, 0, 1], 2, query=True)(logits, gold)) == pytest.approx(float(want))
    texts = [Encoded(n, label, (4,), (0,), ("a",), query=(4,)) for n, label in enumerate((0, 0, 1))]
    assert selection_score(logits.softmax(-1), texts) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )
    require_dev([texts[0]], 2)  # one class is no hindrance where answers are counted
    plain = [replace(one, query=None) for one in texts]
    assert (
        selection_score(logits.softmax(-1), plain)[0] == 0.0
    )  # ROC-AUC: the one of class 1 comes last


def test_rows_of_both_kinds_are_refused():
    mixed = heedful.read([*rows(30, 0), {"text": "fine", "label": "garden"}] * 2)
    with pytest.raises(
        DataError, match=r"rows have two texts and the others one; all or none must"
    ):
        fit(mixed, None, RECIPE)
