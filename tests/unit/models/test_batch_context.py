"""One batch before one subject: computed once, proved to be heard, and the same by any path."""

from contextlib import suppress

import pytest
import torch

from heedful.checks import checks, default_checks
from heedful.core.errors import AttentionUnavailable, NotApplicable
from heedful.core.timing import Clock
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasFastDeletion
from support import subjects


class FiveVerbs:
    """A subject that shows only what every subject must, and counts what it is asked."""

    def __init__(self, inner, decoder=None):
        self.inner, self.decode, self.asked = inner, decoder or inner.decoder, []
        self.family, self.labels = inner.family, inner.labels
        self.encode, self.batch = inner.encode, inner.batch

    def embed(self, batch):
        self.asked.append(("embed", len(batch)))
        return self.inner.embed(batch)

    def forward(self, batch, embedded=None):
        self.asked.append(("forward", len(batch)))
        return self.inner.forward(batch, embedded)

    def decoder(self, batch, forward):
        return self.decode(batch, forward)


class Quick(FiveVerbs):
    """The same with its own way to delete."""

    def without_each(self, batch, *, max_batch_tokens):
        self.asked.append(("without_each", len(batch)))
        return self.inner.without_each(batch, max_batch_tokens=max_batch_tokens)


def context(subject, lengths=(4, 1, 7), **settings):
    return BatchContext(
        subject, subjects.batch(getattr(subject, "inner", subject), list(lengths)), **settings
    )


def test_the_faithful_decoder_is_accepted():
    one = context(subjects.subject())
    assert one.parity < 1e-12
    torch.testing.assert_close(one.decode(one.forward.attention), one.forward.logits)


def test_a_decoder_with_other_logits_is_refused():
    model = subjects.subject()

    def twice(batch, forward):
        return lambda attention: 2 * model.decoder(batch, forward)(attention)

    one = context(FiveVerbs(model, twice))
    gap = float(one.forward.logits.abs().max())
    for ask in ("decode", "parity"):
        with pytest.raises(AttentionUnavailable) as caught:
            getattr(one, ask)
        assert str(caught.value) == (
            "Decoding bilstm-additive under its own attention gives other logits than its forward "
            f"pass (largest difference {gap:.2g}); decoder() must use the attention it is given "
            "and return the logits of forward()."
        )


def test_a_decoder_that_decodes_under_another_attention_is_refused():
    model = subjects.subject()

    def deaf(batch, forward):
        even = batch.mask / batch.mask.sum(-1, keepdim=True).double()
        return lambda attention: model.decoder(batch, forward)(even.expand_as(attention))

    with pytest.raises(AttentionUnavailable, match="must use the attention it is given"):
        _ = context(FiveVerbs(model, deaf)).decode


def test_a_decoder_that_repeats_the_forward_pass_is_refused():
    def deaf(batch, forward):
        return lambda attention: forward.logits.expand(*attention.shape[:-1], -1)

    with pytest.raises(AttentionUnavailable, match="must use the attention it is given"):
        _ = context(FiveVerbs(subjects.subject(), deaf)).decode


def test_small_differences_of_rounding_are_not_refused():
    model = subjects.subject()

    def rounded(batch, forward):
        return lambda attention: model.decoder(batch, forward)(attention).float().double()

    one = context(FiveVerbs(model, rounded))
    assert 0 < one.parity < 1e-6


SETTINGS = {"permutation": {"draws": 3}, "adversarial": {"steps": 2}, "agreement": {"shuffles": 2}}
# all that need no pass of their own; rollout and value_zeroing refuse a model of one attention
SHARING = ("attention", "attention_x_gradient", "attention_norm", "rollout", "value_zeroing")
SHARING += (
    "gradient",
    "input_x_gradient",
    "one_hot_gradient",
    "leave_one_out",
    "random",
    "effective_attention",
)


def ask_everything(one):
    for name in default_checks():
        if name == "influence":  # it runs sets of words
            continue
        with torch.no_grad():
            checks.build(name, **SETTINGS.get(name, {}))(one)
    for name in SHARING:
        with torch.no_grad(), suppress(NotApplicable):
            methods.build(name)(one, one.predicted)


def test_all_checks_and_methods_share_one_forward_pass():
    subject = Quick(subjects.subject())
    ask_everything(context(subject))
    assert sorted(subject.asked) == [("embed", 3), ("forward", 3), ("without_each", 3)]


def test_without_the_quick_way_each_deletion_is_run_once():
    subject = FiveVerbs(subjects.subject())
    assert not isinstance(subject, HasFastDeletion)
    ask_everything(context(subject, max_batch_tokens=30))
    passes = [count for kind, count in subject.asked if kind == "forward"]
    assert passes[0] == 3
    assert sum(passes[1:]) == 4 + 1 + 7
    assert max(passes[1:]) * 9 <= 30


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "mlp"])
@pytest.mark.parametrize("budget", [1, 40, 20_000])
def test_the_generic_path_equals_the_quick_one(encoder, budget):
    model = subjects.subject(encoder, classes=3)
    quick = context(model, max_batch_tokens=budget).without_each
    generic = context(FiveVerbs(model), max_batch_tokens=budget).without_each
    torch.testing.assert_close(generic, quick, rtol=1e-12, atol=1e-12)
    assert quick.abs().max() > 0.01


def test_the_pass_that_is_kept_has_no_graph():
    one = context(subjects.subject())
    for value in (one.forward.logits, one.forward.attention, one.forward.states):
        assert not value.requires_grad
    torch.testing.assert_close(one.forward.logits, one.forward_with_graph.logits)
    assert one.forward_with_graph.logits.requires_grad


@pytest.mark.parametrize("held", [True, False])
def test_the_gradient_is_the_slope_of_the_output(held):
    model, step = subjects.subject(classes=3), 1e-6
    one = context(model, (3, 5))
    target = torch.tensor([2, 0])
    own = one.forward.attention
    found = one.gradient(target, attention=own if held else None)

    def chance(embedded):
        forward = model.forward(one.batch, embedded)
        logits = model.decoder(one.batch, forward)(own) if held else forward.logits
        return logits.softmax(-1).gather(-1, target[:, None])[:, 0]

    x = one.embedded.detach()
    for row, token, axis in [(0, 1, 0), (0, 3, 4), (1, 2, 5), (1, 5, 1), (1, 0, 2)]:
        moved = torch.zeros_like(x)
        moved[row, token, axis] = step
        slope = (chance(x + moved) - chance(x - moved))[row] / (2 * step)
        assert float(found[row, token, axis]) == pytest.approx(float(slope), abs=1e-8)


def test_holding_the_attention_changes_the_gradient():
    one = context(subjects.subject())
    held = one.gradient(one.predicted, attention=one.forward.attention)
    free = one.gradient(one.predicted, attention=None)
    assert (held - free).abs().max() > 1e-3


def test_the_model_is_left_as_it_was():
    model = subjects.subject()
    before = model.fingerprint()
    ask_everything(context(model))
    assert model.fingerprint() == before
    assert all(one.grad is None for one in model.network.parameters())


def test_shared_work_is_charged_to_its_own_name():
    clock = Clock()
    one = context(subjects.subject(), clock=clock)
    ask_everything(one)
    assert {"forward", "leave_one_out", "gradient", "ranking"} == clock.seconds().keys()
