"""The training of gates: resumed to the same bytes, within its bounds, the model untouched."""

import json

import pytest
import torch

import heedful
from heedful.core.errors import ConfigError, DataError, RunError
from heedful.core.rng import generator
from heedful.models.diffmask import GateNetwork
from heedful.models.transformer.from_pretrained import from_model
from heedful.training import fit_diffmask as module
from heedful.training.fit_diffmask import (
    MAX_MULTIPLIER,
    DiffMaskTrainer,
    LagrangianGates,
    Masking,
    build_diffmask_optimiser,
    fit_diffmask,
)
from heedful.training.loop.epochs import CHECKPOINT_FILE, TrainingState
from support import subjects, tiny_models

SMALL = Masking(epochs=2, batch=4, rate=1e-2)


def texts(words, count=24):
    draw = generator(0, "texts of a test")
    rows = [" ".join(draw.choice(words, draw.integers(3, 9))) for _ in range(count)]
    return heedful.read([{"text": one} for one in rows], split="train", labelled=False)


TRAIN, DEV = texts(subjects.WORDS), texts(subjects.WORDS[:9], 8)


def weights(folder):
    return (folder / "explainer.safetensors").read_bytes()


def interrupted_at(step):
    def progress(done, total, words):
        if done == step:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("step", [2, 9])  # in the first epoch, in the second
def test_a_training_cut_off_goes_on_to_the_same_bytes(step, tmp_path):
    subject = subjects.subject()
    whole = fit_diffmask(subject, TRAIN, SMALL, out=tmp_path / "whole", dev=DEV)
    with pytest.raises(KeyboardInterrupt):
        fit_diffmask(
            subject, TRAIN, SMALL, out=tmp_path / "cut", dev=DEV, progress=interrupted_at(step)
        )
    assert not (tmp_path / "cut/explainer.json").exists()
    assert (tmp_path / "cut" / CHECKPOINT_FILE).exists() == (step > 6)
    torch.manual_seed(99)  # nothing is drawn from torch's own stream
    again = fit_diffmask(subject, TRAIN, SMALL, out=tmp_path / "cut", dev=DEV)
    assert weights(tmp_path / "whole") == weights(tmp_path / "cut")
    told = [{**one.history, "cpu_seconds": 0, "sittings": 0} for one in (whole, again)]
    assert told[0] == told[1]
    assert not (tmp_path / "cut" / CHECKPOINT_FILE).exists()


def test_another_seed_is_another_training_and_its_checkpoint_is_not_taken_up(tmp_path):
    subject = subjects.subject()
    with pytest.raises(KeyboardInterrupt):
        fit_diffmask(subject, TRAIN, SMALL, out=tmp_path, dev=DEV, progress=interrupted_at(9))
    other = Masking(epochs=2, batch=4, rate=1e-2, seed=1)
    with pytest.raises(RunError, match="belongs to another training run: it differs in seed"):
        fit_diffmask(subject, TRAIN, other, out=tmp_path, dev=DEV)


def hooks(net):
    return [(len(one._forward_hooks), len(one._forward_pre_hooks)) for one in net.modules()]


@pytest.mark.parametrize("family", ["own", "bert"])
def test_the_model_stays_as_it_was(family, tmp_path):
    own = family == "own"
    subject = (
        subjects.subject()
        if own
        else from_model(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    )
    net = subject.network if own else subject.model
    before = {name: one.clone() for name, one in net.state_dict().items()}
    state, hooked = torch.random.get_rng_state(), hooks(net)
    words = subjects.WORDS if own else ("so", "fine", "a", "dull", "film", "not")
    made = fit_diffmask(subject, texts(words), SMALL, out=tmp_path)
    assert all(torch.equal(one, before[name]) for name, one in net.state_dict().items())
    assert all(one.grad is None for one in net.parameters())
    assert not net.training
    assert hooks(net) == hooked
    assert torch.equal(torch.random.get_rng_state(), state)
    assert len(made.history["kl"]) == len(made.gates.widths) == (2 if own else 3)
    assert made.history["dev"]["source"] == "a tenth of train, by hash"


def course(recipe, subject=None):
    lists = (list(TRAIN), list(DEV))
    made = module._start_training(subject or subjects.subject(), lists, recipe)
    return made, TrainingState(made.lagrangian, build_diffmask_optimiser(made.lagrangian, recipe))


@pytest.mark.parametrize(("epsilon", "bound"), [(1e-9, MAX_MULTIPLIER), (1e9, 0.0)])
def test_multipliers_stay_within_their_bounds(epsilon, bound):
    made, state = course(Masking(batch=4, multiplier_rate=500.0, epsilon=epsilon, warmup=1))
    seen = []
    for number in range(12):
        made._step(made.subject.batch(made.train_texts[:4]), number, state.optimiser)
        seen.append(made.lagrangian.multipliers.detach().clone())
    assert all(bool(((one >= 0) & (one <= MAX_MULTIPLIER)).all()) for one in seen)
    assert bool((seen[-1] == bound).all())


def test_a_step_goes_down_the_lagrangian_and_up_its_multiplier():
    """By a plain loop: α (KL − ε) + mean over texts of mean over words of log P(open)."""
    made, _ = course(Masking(batch=4, epsilon=0.02, aim=0.5))
    batch = made.subject.batch(made.train_texts[:4])
    grads = {}

    class Kept(torch.optim.SGD):
        def step(self, closure=None):
            for name, one in made.lagrangian.named_parameters():
                grads[name] = None if one.grad is None else one.grad.clone()

    number = next(n for n in range(99) if generator(0, "diffmask", n).integers(2) == 1)
    optimiser = Kept([{"params": list(made.lagrangian.parameters()), "full": 0.0}], lr=0.0)
    made._step(batch, number, optimiser)
    draw = generator(0, "diffmask", number)
    assert draw.integers(2) == 1
    noise = draw.uniform(1e-6, 1 - 1e-6, (2, *batch.ids.shape))
    embedded = made.subject.embed(batch)
    states = [embedded, made.subject.forward(batch, embedded).states]
    loss = torch.zeros(())
    moved = torch.zeros(())
    own = made.subject.forward(batch).logits.softmax(-1)
    dim, gates = embedded.clone(), made.lagrangian.gates
    for row in range(4):
        words = batch.mask[row].nonzero().squeeze(-1).tolist()
        for t in words:
            gate, log = torch.ones(()), torch.zeros(())
            for layer in range(2):
                seen = torch.cat([states[0][row, t], states[layer][row, t]])
                logit = 5 + 10 * gates.probes[layer](seen)[0].tanh()
                u = torch.tensor(noise[layer, row, t]).float()
                soft = torch.sigmoid((torch.log(u / (1 - u)) + logit) / 0.2)
                gate = gate * (1.2 * soft - 0.2).clamp(0, 1)
                log = log + torch.sigmoid(logit - 0.2 * torch.tensor(0.2).log()).log()
            dim[row, t] = gate * embedded[row, t] + (1 - gate) * gates.blank
            loss = loss + log / len(words) / 4
    other = made.subject.forward(batch, dim).logits.softmax(-1)
    moved = (own * (own / other).log()).sum(-1).mean()
    loss = loss + made.lagrangian.multipliers[1] * (moved - 0.01)
    made.lagrangian.zero_grad()
    loss.backward()
    for name, one in made.lagrangian.named_parameters():
        torch.testing.assert_close(grads[name], one.grad, atol=1e-5, rtol=1e-3)
    assert float(grads["multipliers"][1]) == pytest.approx(float(moved.detach()) - 0.01, abs=1e-5)


def test_what_is_measured_does_not_depend_on_the_batch(monkeypatch):
    made, _ = course(SMALL)
    first = made.evaluate_gates_by_layer()
    monkeypatch.setattr(type(made.subject), "max_batch_tokens", 1, raising=False)
    torch.testing.assert_close(first, made.evaluate_gates_by_layer(), atol=1e-6, rtol=1e-5)


def test_the_epoch_kept_is_within_the_budget_if_one_is(monkeypatch, tmp_path):
    told = iter([([0.0, 0.05], [0.9, 0.8]), ([0.0, 0.4], [0.1, 0.1]), ([0.0, 0.09], [0.5, 0.2])])
    kept = []

    def measured(self):
        kept.append(self.lagrangian.gates.probes[0][0].bias.clone())
        return next(told, ([0.0], [0.0]))

    monkeypatch.setattr(DiffMaskTrainer, "evaluate_gates_by_layer", measured)
    recipe = Masking(epochs=3, batch=8)
    made = fit_diffmask(subjects.subject(), TRAIN, recipe, out=tmp_path, dev=DEV)
    assert made.history["best_epoch"] == 3
    assert torch.equal(made.gates.probes[0][0].bias.float(), kept[2])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"epochs": 0}, "at least 1"),
        ({"warmup": 0}, "at least 1"),
        ({"epsilon": 0.0}, "epsilon must be a number above 0, not 0.0"),
        ({"epsilon": float("nan")}, "epsilon must be a number above 0"),
        ({"rate": -1.0}, "rate must be a number of at least 0"),
        ({"aim": 0.0}, "aim must be a number above 0 and of at most 1"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(wrong, told):
    with pytest.raises(ConfigError, match=told):
        Masking(**wrong)


def test_texts_without_words_are_refused(tmp_path):
    subject = from_model(tiny_models.model("gpt2"), tiny_models.tokenizer("gpt2"))
    data = heedful.read([{"text": "fine"}] * 3, split="train", labelled=False)
    with pytest.raises(DataError, match="No text has a word to hide"):
        fit_diffmask(subject, data, SMALL, out=tmp_path, dev=data)


def test_the_folder_says_how_it_came_about(tmp_path):
    made = fit_diffmask(subjects.subject(), TRAIN, SMALL, out=tmp_path, dev=DEV)
    told = json.loads((tmp_path / "explainer.json").read_text())
    assert told["history"] == made.history
    assert told["history"]["recipe"]["epsilon"] == 0.1
    assert told["history"]["kl_all_hidden"] > 0
    names = {one.name for one in tmp_path.iterdir()} - {".lock"}
    assert names == {"explainer.json", "explainer.safetensors"}


@pytest.mark.parametrize(
    ("layers", "begin", "rate"), [(2, 1.0, 0.5), (3, 1.0, 0.5), (7, 12.5, 1.75)]
)
def test_many_layers_begin_with_their_budget_in_force(layers, begin, rate):
    """With many layers multipliers are told too seldom to rise before every gate is closed."""
    recipe = Masking(epsilon=0.1, aim=0.8, multiplier_rate=0.5)
    assert recipe.initial_multiplier(layers) == pytest.approx(begin)
    assert recipe.multiplier_rate_for(layers) == rate
    assert Masking(epsilon=1e-4).initial_multiplier(layers) <= MAX_MULTIPLIER
    lagrangian = LagrangianGates(
        GateNetwork([2] * layers, torch.zeros(2)), recipe.initial_multiplier(layers)
    )
    assert lagrangian.multipliers.tolist() == pytest.approx([begin] * layers)
    assert [one["full"] for one in build_diffmask_optimiser(lagrangian, recipe).param_groups][
        -1
    ] == rate


def test_a_training_begins_where_its_layers_ask_it_to(monkeypatch):
    recipe = Masking(batch=4, epsilon=0.1, aim=0.8)
    assert course(recipe)[0].lagrangian.multipliers.tolist() == [1.0, 1.0]
    monkeypatch.setattr("heedful.training.fit_diffmask.FEW_LAYERS", 1)  # then two layers are many
    assert course(recipe)[0].lagrangian.multipliers.tolist() == pytest.approx([12.5, 12.5])
