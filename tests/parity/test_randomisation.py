"""Randomisation by hand: copies built anew in the test, ranks compared by scipy."""

import copy
import gc
import math
import weakref
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from heedful.checks import checks, default_checks
from heedful.checks.sanity.randomisation.check import UNIFORM_HAS_NO_RANKS
from heedful.core.batch import collate
from heedful.core.errors import ConfigError, ModelError
from heedful.core.rng import generator
from heedful.core.values import Explanation
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed import randomised_weights as room
from heedful.models.perturbed.randomised_weights import randomisable_copy
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.transformer.from_pretrained import from_model
from heedful.planted.hand_built import draw_texts, hand_built_subjects
from support import measured_values, subjects, tiny_models
from support.reference_removal import grouped, members, subject, texts_of

SEED = 3
ASKED = ("gradient", "input_x_gradient", "leave_one_out")
NAMES = ("bilstm", "cnn", "bert", "xlnet")
PARTS = {"bilstm": ("decoder", "attention", "encoder", "embedding")}
PARTS |= {"cnn": PARTS["bilstm"]}
PARTS |= dict.fromkeys(("bert", "xlnet"), ("head", "layer 2", "layer 1", "embeddings"))


def module_of(one):
    return one.network if hasattr(one, "network") else one.model


def sat(name, **more):
    one, found = subject(name), texts_of(name)
    if name in ("bilstm", "cnn"):
        found = subjects.encoded(one, [9, 5, 1, 4], seed=4)
    return found, BatchContext(one, one.batch(found), seed=SEED, **more)


def fresh_weights(one):
    """As a model of this kind is drawn, by a stream of the seed's own."""
    number = int(generator(SEED, "weights drawn anew").integers(2**63))
    module = module_of(one)
    with torch.random.fork_rng():
        torch.manual_seed(number)
        if isinstance(module, AttentionClassifier):
            other = AttentionClassifier(module.shape)
        else:
            other = type(module)(copy.deepcopy(module.config))
    return {name: weight.detach() for name, weight in other.named_parameters()}


def inside(name, group, weight):
    """Whether a weight belongs to a group, by its name."""
    if name in ("bilstm", "cnn"):
        return weight.startswith(f"{group}.")
    layers = [f".layer.{number}." for number in (0, 1)]
    if group.startswith("layer"):
        return layers[int(group[-1]) - 1] in weight
    table = "emb" in weight
    return not any(one in weight for one in layers) and table == (group == "embeddings")


def copied(name, groups):
    one, drawn = subject(name), fresh_weights(subject(name))
    module = copy.deepcopy(module_of(one))
    with torch.no_grad():
        for weight, value in module.named_parameters():
            if any(inside(name, group, weight) for group in groups):
                value.copy_(drawn[weight])
    if name in ("bilstm", "cnn"):
        return replace(one, network=module)
    return from_model(module, one.subword_tokenizer.tokenizer)


def sizes(one, text, method, target):
    part = methods.build(method)
    context = BatchContext(one, one.batch([text]), seed=SEED)
    tokens = part(context, torch.tensor([target])).scores[0].double()
    groups = members(text, "words")
    if part.join == "norm":
        return [math.sqrt(sum(float(tokens[t]) ** 2 for t in word)) for word in groups]
    return [abs(sum(float(tokens[t]) for t in word)) for word in groups]


def rho(one, other):
    one, other = grouped(one), grouped(other)
    if len({*one}) < 2 or len({*other}) < 2:
        return math.nan
    return spearmanr(one, other).statistic


def row(method, setting):
    """The name of a row, as users write it."""
    return f"rank_correlation[{method}{f', {setting}' if setting else ''}]"


@pytest.mark.parametrize("name", NAMES)
def test_every_copy_by_hand(name):
    found, context = sat(name)
    check = checks.build("randomisation", methods=ASKED)
    got = measured_values.columns(check(context))
    parts = PARTS[name]
    copies = {None: parts}
    copies |= {f"cascade {n}: {parts[n - 1]}": parts[:n] for n in range(1, len(parts) + 1)}
    copies |= {f"only {part}": (part,) for part in parts}
    wanted = {row(method, setting) for method in ("attention", *ASKED) for setting in copies}
    assert set(got) == {*wanted, "rank_correlation[random]"}
    for setting, groups in copies.items():
        other = copied(name, groups)
        for place, text in enumerate(found):
            target = int(context.predicted[place])
            for method in ("attention", *ASKED):
                pair = (sizes(one, text, method, target) for one in (context.subject, other))
                value = got[row(method, setting)][place]
                assert value == pytest.approx(rho(*pair), abs=1e-9, nan_ok=True)


def test_the_controls():
    found, context = sat("bilstm")
    findings = checks.build("randomisation", ways=())(context)
    assert measured_values.missing(findings) == {"rank_correlation[uniform]": UNIFORM_HAS_NO_RANKS}
    got = measured_values.columns(findings)
    assert all(one.setting is None for one in findings.measurements)
    for row, text in enumerate(found):
        drawn = generator(SEED, "two orders of randomisation", text.content)
        orders = drawn.random((2, len(text.words)))
        value = got["rank_correlation[random]"][row]
        assert value == pytest.approx(rho(*map(list, orders)), nan_ok=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_subject_and_the_stream_of_torch_are_left_as_they_were(name):
    _, context = sat(name)
    before = {key: one.clone() for key, one in module_of(context.subject).state_dict().items()}
    stream = torch.random.get_rng_state()
    checks.build("randomisation", methods=("leave_one_out",))(context)
    assert torch.equal(torch.random.get_rng_state(), stream)
    after = module_of(context.subject).state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(one, after[key]) for key, one in before.items())


def test_the_copy_is_made_once_and_goes_with_its_subject():
    one = replace(subject("bilstm"))
    first = randomisable_copy(one, seed=SEED)
    assert randomisable_copy(one, seed=SEED) is first
    assert randomisable_copy(one, seed=SEED + 1) is not first
    assert len([kept for kept in room._copy_cache if kept is one]) == 1
    copied_one, gone = first.randomise(one, ("decoder",)), weakref.ref(one)
    assert copied_one.network is not one.network
    del one
    gc.collect()
    assert gone() is None


def test_what_a_subject_remembers_of_its_weights_is_not_taken_over():
    one = subject("bert")
    copies = randomisable_copy(one, seed=SEED)
    copied = (copies.randomise(one, groups) for groups in ((), ("embeddings",)))
    blanks = [copy.mask_embedding().vector for copy in copied]
    torch.testing.assert_close(blanks[0], one.mask_embedding().vector)
    assert not torch.allclose(*blanks)


@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_every_weight_of_every_family_is_in_one_group(name):
    model = tiny_models.model(name)
    one = from_model(model, tiny_models.tokenizer(name))
    groups = randomisable_copy(one, seed=SEED).groups
    every = [weight for group in groups.values() for weight in group]
    assert sorted(every) == sorted(weight for weight, _ in model.named_parameters())
    layers = [group for group in groups if "layer" in group]
    sides = 2 if tiny_models.FAMILIES[name].seq2seq else 1
    assert len(layers) == (1 if name == "albert" else 2 * sides)  # albert's share one
    assert list(groups) == [g for g in ("head", *layers, "embeddings") if g in groups]
    assert layers == sorted(layers, reverse=True) or sides == 2
    assert not any("classif" in weight or "score" in weight for weight in groups["embeddings"])


def test_subjects_whose_weights_nobody_can_draw_are_told_apart():
    one = hand_built_subjects["honest-peaked"](seed=0)
    encoded = [one.encode(example) for example in draw_texts(one, 3)]
    check = checks.build("randomisation")
    findings = check(BatchContext(one, collate(encoded)))
    assert not findings.measurements
    why = "the initialisation of planted-honest-peaked is unknown, so it cannot be randomised"
    names = (*check.names, "uniform", "random")
    assert measured_values.missing(findings) == {f"rank_correlation[{name}]": why for name in names}


def test_a_model_that_does_not_hear_its_weights_is_an_error():
    @dataclass(frozen=True, eq=False)
    class Deaf(type(subject("bilstm"))):
        def forward(self, batch, embedded=None):
            return subject("bilstm").forward(batch)

    own = subject("bilstm")
    deaf = Deaf(own.network, own.vocabulary, own.tokenizer, own.labels)
    encoded = subjects.encoded(own, [5])
    with pytest.raises(ModelError, match="does not compute with the parameters"):
        checks.build("randomisation", methods=("attention",))(BatchContext(deaf, collate(encoded)))


@dataclass(frozen=True)
class Early:
    """The earlier a word, the higher its score, whatever the model: what must be convicted."""

    kind: ClassVar[str] = "saliency"
    signed: ClassVar[bool] = False
    join: ClassVar[str] = "sum"

    def __call__(self, context, target):
        mask = context.batch.mask
        places = (1.0 / (1 + torch.arange(mask.shape[1]))).double().expand(mask.shape)
        return Explanation("early", places.masked_fill(~mask, 0.0), mask)


@pytest.fixture
def early():
    methods.register("early")(Early)
    yield Early()
    del methods._parts["early"]


def test_a_method_that_ignores_the_model_stays_the_same(early):
    one = subject("bilstm")
    encoded = subjects.encoded(one, [8, 12, 20], seed=2)
    check = checks.build("randomisation", methods=("early",))
    for row in check(BatchContext(one, collate(encoded))).measurements:
        if row.method == "early":
            np.testing.assert_allclose(row.values, 1.0)


def test_it_is_run_when_asked_for_and_bears_on_nothing():
    assert "randomisation" not in default_checks()
    assert checks.spec("randomisation").claim is None
    assert not checks.spec("randomisation").votes
    with pytest.raises(ConfigError, match="ways must be cascade or only"):
        checks.build("randomisation", ways=("every",))
