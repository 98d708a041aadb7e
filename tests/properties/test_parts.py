"""What every registered method, intervention and check promises, on texts drawn by Hypothesis."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.checks import checks
from heedful.checks.base import Check, NeedsAllTexts
from heedful.checks.interventions import Intervention, interventions
from heedful.core.batch import Batch, collate
from heedful.core.errors import NotApplicable
from heedful.core.rationales import WordAnnotations
from heedful.core.records import KEY_COLUMNS, Series
from heedful.core.values import Forward
from heedful.methods import Method, methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasFastDeletion, Subject
from support import measured_values, subjects

ROOMS = {"method": methods, "intervention": interventions, "check": checks}
PROTOCOLS = {"method": Method, "intervention": Intervention, "check": Check}
BY_BATCH = [name for name in checks if not checks.spec(name).retrains]  # others see all texts
PARTS = [
    pytest.param(room, name, id=f"{room}-{name}")
    for room, part in ROOMS.items()
    for name in (BY_BATCH if part is checks else part)
]
QUICK = {"adversarial": {"steps": 20}, "leverage": {"rounds": 5}}  # promises hold for these too
QUICK |= {"plausibility": {"share": 0.3}}  # audits take it from the data
QUICK |= {"influence": {"orders": 4}}  # audits take as many as a pilot finds
QUICK |= {"lime": {"samples": 64}, "kernel_shap": {"samples": 64}}  # so few that they are drawn
WHEN_ASKED = {  # of all texts, of methods that were asked for, of a transformer or language model
    "influence": (
        *("reliability", "dispersion", "top_set_gap", "share", "share_below", "order_gain"),
        "share_not_ranked",
    ),
    "permutation": ("median_tvd_all_keys", "median_tvd_random_rows"),
    "adversarial": ("nullspace_jsd", "tokens_per_dimension"),
    "mechanism": ("tau_unrolled",),
    "agreement": (
        *("tau_pair", "overlap_pair", "tau_references", "tau_attention_references", "word_mass"),
    ),
    "faithfulness": (
        *("off_distribution_infilled", "not_infilled", "log_perplexity_whole"),
        *(f"log_perplexity_{way}" for way in ("deletion", "masking", "infilled")),
    ),
}
SEARCHES = {("intervention", "adversarial"), ("check", "adversarial")}


class Bare:
    """A subject that offers the five verbs only: no short cut, and no linear decoder."""

    family, labels = "bare", ("no", "yes", "perhaps")

    def __init__(self, inner):
        self.network, self.encode, self.batch = inner.network, inner.encode, inner.batch
        self.embed = inner.embed

    def forward(self, batch, embedded=None):
        found = self.network(batch, self.embed(batch) if embedded is None else embedded)
        logits = self.decoder(batch, found)(found.attention)
        return Forward(logits, found.attention, found.states)

    def decoder(self, batch, forward):
        linear = self.network.decoder.prepare(forward.states)
        return lambda attention: 3.0 * linear(attention).tanh()


SUBJECTS = [
    subjects.subject(encoder, attention, classes=classes, seed=31)
    for encoder, attention, classes in (
        ("bilstm", "additive", 2),
        ("cnn", "additive", 3),
        ("average", "dot", 2),
        ("mlp", "uniform", 3),
        ("bilstm", "dot", 3),
    )
]
SUBJECTS.append(Bare(SUBJECTS[-1]))

every_part = pytest.mark.parametrize(("room", "name"), PARTS)


# Plain numbers only: beartype draws random numbers, which Hypothesis forbids in a strategy.
cases = st.fixed_dictionaries(
    {
        "subject": st.sampled_from(range(len(SUBJECTS))),
        "lengths": st.lists(st.integers(1, 9), min_size=1, max_size=4),
        "words": st.integers(0, 99),
        "first": st.integers(0, 1000),
        "padding": st.integers(0, 3),
        "budget": st.sampled_from((1, 7, 40)),
    }
)
some = {"lengths": [4, 1, 7], "words": 1, "first": 5, "padding": 2, "budget": 7}


def on_texts(test):
    """Run a test on three subjects that share little code, and on whatever Hypothesis draws."""
    test = given(case=cases)(test)
    for subject in (0, 1, -1):
        test = example(case={**some, "subject": subject})(test)
    return settings(max_examples=2)(test)


def made(case):
    """A subject and one to four texts of one to nine words, numbered from `first` on by threes."""
    subject = SUBJECTS[case["subject"]]
    encoded = subjects.encoded(subject, case["lengths"], seed=case["words"])
    return subject, [replace(one, index=case["first"] + 3 * one.index) for one in encoded]


def sat(subject, batch, **more):
    """A sitting on texts of which people said something."""
    people = {}
    for row, instance in enumerate(batch.instances):
        drawn = np.random.default_rng(instance)
        words = int(batch.mask[row].sum())
        marked = drawn.random(words) < 0.4
        marked[drawn.integers(words)] = True
        scores = drawn.normal(size=words)
        people[instance] = WordAnnotations(tuple(marked.tolist()), tuple(scores.tolist()))
    return BatchContext(subject, batch, rationales=people, **more)


def build(room, name):
    return ROOMS[room].build(name, **QUICK.get(name, {}))


def called(room, name, context):
    """What the part gives: its own kind of result, or None where it says it cannot serve."""
    part = build(room, name)
    try:
        if room == "method":
            classes = len(context.subject.labels)
            return part(context, torch.tensor(context.batch.instances) % classes)
        return part(context)
    except NotApplicable:
        return None


def answers(room, name, context):
    """By instance: all numbers the part gives of that text, without its padding."""
    found, present = called(room, name, context), context.batch.present
    if found is None:
        return dict.fromkeys(context.batch.instances)
    by_text = {}
    for row, instance in enumerate(context.batch.instances):
        if room == "method":
            by_text[instance] = found.scores[row][present[row]].numpy()
        elif room == "intervention":
            by_text[instance] = found[:, row][:, present[row]].numpy()
        else:
            values = [one.values[row] for one in found.measurements]
            by_text[instance] = np.array([*values, len(found.missing)])
    return by_text


def same(room, name, one, other):
    limit = 1e-6 if (room, name) in SEARCHES else 1e-9
    for instance, numbers in one.items():
        if numbers is None:
            assert other[instance] is None
        else:
            np.testing.assert_allclose(other[instance], numbers, rtol=0, atol=limit, equal_nan=True)


def padded(batch, extra):
    """The same texts with `extra` more columns of padding, every padding id another word."""
    whole = (batch.ids, batch.present, batch.mask)
    ids, present, mask = (torch.nn.functional.pad(part, (0, extra)) for part in whole)
    junk = 4 + torch.arange(ids.numel()).reshape(ids.shape) % 30
    return Batch(torch.where(present, ids, junk), present, mask, batch.instances)


def test_the_bare_subject_is_one_and_has_no_short_cut():
    assert isinstance(SUBJECTS[-1], Subject)
    assert not isinstance(SUBJECTS[-1], HasFastDeletion)


@every_part
@on_texts
def test_padding_never_matters(room, name, case):
    subject, encoded = made(case)
    batch = collate(encoded)
    plain = answers(room, name, sat(subject, batch))
    other = padded(batch, case["padding"])
    same(room, name, plain, answers(room, name, sat(subject, other)))


def test_leave_one_out_of_a_cnn_does_not_read_padding():
    subject = subjects.subject("cnn", "additive")
    batch = subjects.batch(subject, [2])
    found = subject.without_each(padded(batch, 1), max_batch_tokens=1000)[:, :4]
    torch.testing.assert_close(found, subject.without_each(batch, max_batch_tokens=1000))


@every_part
@on_texts
def test_order_and_company_never_matter(room, name, case):
    subject, encoded = made(case)
    together = answers(room, name, sat(subject, collate(encoded)))
    turned = answers(room, name, sat(subject, collate(encoded[::-1])))
    same(room, name, together, turned)
    for one in encoded:
        alone = answers(room, name, sat(subject, collate([one])))
        same(room, name, alone, together)


@every_part
@on_texts
def test_the_budget_of_a_batch_never_matters(room, name, case):
    subject, encoded = made(case)
    batch = collate(encoded)
    small = answers(room, name, sat(subject, batch, max_batch_tokens=case["budget"]))
    same(room, name, small, answers(room, name, sat(subject, batch)))


@every_part
@on_texts
def test_a_second_call_gives_the_same_and_the_model_stays_as_it_was(room, name, case):
    subject, encoded = made(case)
    before = {key: value.clone() for key, value in subject.network.state_dict().items()}
    context = sat(subject, collate(encoded))
    first, again = answers(room, name, context), answers(room, name, context)
    for instance, numbers in first.items():
        assert numbers is None or np.array_equal(numbers, again[instance], equal_nan=True)
    for key, value in subject.network.state_dict().items():
        assert torch.equal(value, before[key])
    assert not subject.network.training
    assert all(parameter.grad is None for parameter in subject.network.parameters())


@pytest.mark.parametrize("name", methods)
@on_texts
def test_scores_are_finite_and_lie_on_words_only(name, case):
    subject, encoded = made(case)
    batch = collate(encoded)
    found = called("method", name, sat(subject, batch))
    if found is None:  # it is for models of several layers, which these are not
        return
    assert found.method == name
    assert torch.equal(found.mask, batch.mask)
    assert found.scores.isfinite().all()
    assert not found.scores[~batch.mask].any()
    assert not found.scores.requires_grad
    assert methods[name].signed or (found.scores >= 0).all()


@pytest.mark.parametrize("name", interventions)
@on_texts
def test_interventions_give_distributions_over_the_words(name, case):
    subject, encoded = made(case)
    context = sat(subject, collate(encoded))
    found = called("intervention", name, context)
    if found is None:
        assert name in ("certified", "nullspace")  # the latter is for heads, which these lack
        assert name == "nullspace" or len(subject.labels) > 2
        return
    mask = context.batch.mask
    assert found.shape[1:] == mask.shape
    assert (found >= 0).all()
    assert not found[:, ~mask].any()
    mass = context.forward.attention.sum(-1).expand(found.shape[:2])
    torch.testing.assert_close(found.sum(-1), mass, atol=1e-12, rtol=0)
    assert not found.requires_grad


@pytest.mark.parametrize("name", BY_BATCH)
@on_texts
def test_checks_give_what_they_promise_or_say_why_not(name, case):
    subject, encoded = made(case)
    check = build("check", name)
    found = check(sat(subject, collate(encoded)))
    spec, columns = checks.spec(name), measured_values.columns(found)
    later = set()
    if isinstance(check, NeedsAllTexts):
        series = {Series(one.measure, one.method): one.values for one in found.measurements}
        later = set(check.measure_all(series))
    missing = {one.measure for one in found.missing}
    promised = {one.name for one in spec.measures if one.kind != "p" or not one.averaged}
    known = {*map(measured_values.plain, columns), *later, *missing}
    assert known <= measured_values.measures(spec)
    assert promised - known <= {*WHEN_ASKED.get(name, ()), *spec.differences}
    assert not missing & later
    refused = {(one.measure, one.method) for one in found.missing}
    for one in found.measurements:
        used = {key for key in KEY_COLUMNS if getattr(one, key) is not None}
        assert used <= set(spec.measure(one.measure).by)
        assert one.values.shape == (len(encoded),)
        assert one.values.dtype == np.float64
        assert not np.isinf(one.values).any()
        # what is missing throughout has no value, or no row
        assert (one.measure, one.method) not in refused or np.isnan(one.values).all()


@every_part
def test_equal_settings_are_equal_parts(room, name):
    part, registry = build(room, name), ROOMS[room]
    assert isinstance(part, PROTOCOLS[room])
    assert is_dataclass(part)
    assert part == build(room, name)
    assert hash(part) == hash(build(room, name))
    written = {field.name: getattr(part, field.name) for field in fields(part)}
    assert registry.build(name, **written) == part
    for key, value in written.items():
        assert type(part).__dataclass_params__.frozen
        if isinstance(value, int | float):
            most = value / 2 if isinstance(value, float) else value * 2  # shares end at 1
            other = not value if isinstance(value, bool) else most or type(value)(1)
            assert registry.build(name, **{**written, key: other}) != part


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("method", "random"),
        ("method", "lime"),
        ("method", "kernel_shap"),
        ("intervention", "permute"),
        ("intervention", "adversarial"),
        ("check", "erasure"),
        ("check", "faithfulness"),
        ("check", "plausibility"),
        ("check", "randomisation"),
    ],
)
def test_draws_belong_to_the_seed_and_the_text_and_not_to_its_row(room, name):
    subject = SUBJECTS[0]
    (encoded,) = subjects.encoded(subject, [7])
    one, again, other = (
        answers(room, name, sat(subject, collate([encoded]), seed=s)) for s in (0, 0, 1)
    )
    assert np.array_equal(one[0], again[0], equal_nan=True)
    assert not np.allclose(one[0], other[0], equal_nan=True)
    if name != "plausibility":  # what people marked belongs to the row
        moved = answers(room, name, sat(subject, collate([replace(encoded, index=8)])))
        assert np.array_equal(one[0], moved[8], equal_nan=True)
