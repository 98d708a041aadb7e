"""How far explanations move with the vectors: captum, plain loops, and where it is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.metrics import sensitivity_max

from heedful.checks import checks
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.perturbed_embeddings import IGNORES_EMBEDDINGS, PerturbedSubject
from support import measured_values, subjects
from support.reference_removal import linear, members, subject, texts_of

SEED, DRAWS, RADIUS = 2, 3, 0.1
METHODS = ("input_x_gradient", "one_hot_gradient", "gradient", "integrated_gradients", "occlusion")


def found_by(context, asked=METHODS, **settings):
    given = {"methods": asked, "draws": 0, "steps": 1, "orders": 1, "bins": (0.5,)}
    given |= {"ways": ("masking",), "perturbations": DRAWS, "radius": RADIUS}
    findings = checks.build("faithfulness", **given | settings)(context)
    rows, missing = measured_values.columns(findings), measured_values.missing(findings)
    return of_sensitivity(rows), of_sensitivity(missing)


def of_sensitivity(rows):
    return {name: one for name, one in rows.items() if name.startswith("sensitivity[")}


def noises(text, vectors):
    """The draws of one text, in ± the radius, zero on its special tokens."""
    tokens = [t for word in members(text, "words") for t in word]
    typical = math.sqrt(float(vectors[tokens].double().square().mean()))
    for draw in range(DRAWS):
        stream = generator(SEED, f"sensitivity, draw {draw}", text.content)
        drawn = torch.from_numpy(stream.random((1, len(tokens) * vectors.shape[1])))
        noise = torch.zeros_like(vectors)
        noise[tokens] = ((2 * drawn - 1) * RADIUS * typical).reshape(len(tokens), -1).to(vectors)
        yield noise


def scores(one, text, vectors, name, target):
    """A method's scores of the words, on these vectors."""
    batch = one.batch([text])
    context = BatchContext(one, batch, seed=SEED)
    context.__dict__["embedded"] = vectors[None].detach().clone().requires_grad_()
    part = methods.build(name)
    tokens = part(context, torch.tensor([target])).scores[0].double()
    if part.join == "norm":
        return [math.sqrt(sum(float(tokens[t]) ** 2 for t in w)) for w in members(text, "words")]
    return [sum(float(tokens[t]) for t in w) for w in members(text, "words")]


@pytest.mark.parametrize("name", ["bilstm", "cnn", "bert", "xlnet"])
def test_it_is_captums_sensitivity_max(name):
    one = subject(name)
    texts = [replace(text, index=5 + n) for n, text in enumerate(texts_of(name))]
    context = BatchContext(one, one.batch(texts), seed=SEED)
    found, missing = found_by(context)
    assert not missing
    for row, text in enumerate(texts):
        alone = one.embed(one.batch([text]))[0].detach()
        target, drawn = int(context.predicted[row]), [*noises(text, alone)]
        for method in ("attention", *METHODS):

            def explain(many, text=text, method=method, target=target):
                many = many[0] if isinstance(many, tuple) else many
                each = [scores(one, text, vectors, method, target) for vectors in many]
                return (torch.tensor(each, dtype=torch.float64),)

            want = sensitivity_max(
                explain,
                alone[None].clone(),
                perturb_func=lambda many, _, drawn=drawn: many + torch.stack(drawn),
                n_perturb_samples=DRAWS,
                max_examples_per_batch=DRAWS,
            )
            mine = found[f"sensitivity[{method}]"][row]
            assert mine == pytest.approx(float(want), rel=1e-5, abs=1e-9), method


def test_a_linear_model_moves_its_gradient_nowhere_and_its_products_with_the_noise():
    context, _ = linear([4, 9], seed=2)
    one = {"gradient": {"of": "logit"}, "input_x_gradient": {"of": "logit"}}
    asked = tuple(methods.build(name, **own) for name, own in one.items())
    found, _ = found_by(context, asked)
    spoken = context.predicted.numpy() == 1  # the first class's logit is constant
    assert spoken.any()
    assert found["sensitivity[gradient]"][spoken] == pytest.approx(0.0, abs=1e-9)
    assert (found["sensitivity[input_x_gradient]"][spoken] > 0.001).all()
    assert (found["sensitivity[attention]"] == 0).all()  # even, whatever the vectors
    with pytest.raises(NotApplicable, match="cannot be recomputed"):
        PerturbedSubject(context.subject, context.batch, context.embedded).embed(
            replace(context.batch, ids=context.batch.ids + 1)
        )


def test_larger_steps_move_scores_farther_and_tiny_ones_hardly():
    context = BatchContext(
        subject("bilstm"), subject("bilstm").batch(texts_of("bilstm")), seed=SEED
    )
    small, large = (
        found_by(context, ("input_x_gradient",), radius=radius)[0] for radius in (1e-6, 0.3)
    )
    name = "sensitivity[input_x_gradient]"
    assert (small[name] < 1e-4).all()
    assert (large[name] > small[name]).all()


def test_passes_without_attention_read_the_perturbed_vectors_too():
    one = subject("bert")
    batch = one.batch(texts_of("bert"))
    vectors = 1.5 * one.embed(batch).detach()
    moved = PerturbedSubject(one, batch, vectors)
    found, wanted = moved.run_logits(batch), one.run_logits(batch, vectors)
    torch.testing.assert_close(found, wanted)
    assert not torch.equal(found, one.run_logits(batch))
    shorter = batch.delete_tokens(torch.tensor([0]), torch.tensor([1]))
    with pytest.raises(NotApplicable, match=IGNORES_EMBEDDINGS):
        moved.run_logits(shorter)


def test_what_reads_the_words_says_that_it_cannot():
    context = BatchContext(
        subject("bilstm"), subject("bilstm").batch(texts_of("bilstm")), seed=SEED
    )
    found, missing = found_by(context, ("leave_one_out", "rollout"))
    assert missing["sensitivity[leave_one_out]"] == IGNORES_EMBEDDINGS
    assert "several layers" in missing["sensitivity[rollout]"]
    assert np.isnan(found["sensitivity[leave_one_out]"]).all()
    assert np.isfinite(found["sensitivity[attention]"]).all()
    one = subject("bert")
    bert = BatchContext(one, one.batch(texts_of("bert")), seed=SEED)
    record = ("rollout", "alti", "globenc", "decompx")
    asked = ("leave_one_out", "attention_norm", "value_zeroing")
    found, missing = found_by(bert, (*asked, *record))
    deaf = {name for name, why in missing.items() if why == IGNORES_EMBEDDINGS}
    assert deaf == {f"sensitivity[{name}]" for name in asked}
    for name in record:
        assert np.isfinite(found[f"sensitivity[{name}]"]).all()
        assert (found[f"sensitivity[{name}]"] > 0).any()


def test_a_method_that_takes_short_texts_is_computed_for_those_whatever_their_company():
    one = subject("bilstm")
    texts = subjects.encoded(one, [4, 20, 6], seed=3)
    context = BatchContext(one, one.batch(texts), seed=SEED)
    together, _ = found_by(context, ("shapley",))
    name = "sensitivity[shapley]"
    assert np.isnan(together[name]).tolist() == [False, True, False]
    for row, text in enumerate(texts):
        alone, _ = found_by(BatchContext(one, one.batch([text]), seed=SEED), ("shapley",))
        assert alone[name][0] == pytest.approx(together[name][row], abs=1e-9, nan_ok=True)


def test_it_can_be_left_out_and_wrong_numbers_are_refused():
    one = subject("bilstm")
    context = BatchContext(one, one.batch(texts_of("bilstm")))
    found, missing = found_by(context, perturbations=0)
    assert not found
    assert not missing
    with pytest.raises(ConfigError, match="perturbations must be a whole number of at least 0"):
        checks.build("faithfulness", perturbations=-1)
    with pytest.raises(ConfigError, match="radius must be a number above 0"):
        checks.build("faithfulness", radius=0.0)
