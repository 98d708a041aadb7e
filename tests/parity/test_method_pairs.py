"""Every method against every other, worked out again text by text, each text alone."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from test_checks import kendall, ranks, same

from heedful.checks import checks
from heedful.checks.faithfulness.item_scores import with_attention
from heedful.checks.requested_methods import (
    ALWAYS_COMPUTED,
    method_name,
    rankable_methods,
    registry_order,
)
from heedful.core.batch import collate
from heedful.core.errors import ConfigError, NotApplicable, UnknownName
from heedful.core.values import Example
from heedful.methods import methods
from heedful.methods.base import ready_methods, warn_left_out
from heedful.methods.diffmask import NO_EXPLAINER, DiffMask
from heedful.methods.erasure.additive import KernelShap, Lime
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.models.batch_context import BatchContext
from heedful.pipeline.audit.job import run_job
from support import measured_values, subjects

ERASURE_METHODS = ("leave_one_out", "occlusion", "lime", "kernel_shap", "shapley")

LENGTHS = [1, 2, 3, 7, 12, 13, 20]
FEW = (Lime(samples=16), KernelShap(samples=16))
ASKED = ("all", Lime(samples=32), KernelShap(samples=32))
REFUSED = (  # for models of several layers
    *("rollout", "flow", "gradient_rollout", "relevance_rollout", "value_zeroing"),
    *("alti", "globenc", "decompx"),
)


def pairs(findings, measure):
    found = [one for one in findings.measurements if one.measure == measure]
    return {(one.method, one.setting): one.values for one in found}


def plain(findings):
    return {
        name: one for name, one in measured_values.columns(findings).items() if "_pair[" not in name
    }


def parts(check):
    """The methods of the matrix, as it has them: leave-one-out by the whole output."""
    asked = {(one if isinstance(one, str) else methods.name_of(one)): one for one in check.methods}
    named = {
        name: asked.get(name, name) for name in methods if name in asked or name in ALWAYS_COMPUTED
    }
    made = {k: methods.build(one) if isinstance(one, str) else one for k, one in named.items()}
    return made | {"leave_one_out": LeaveOneOut(of="output")}


def sizes_alone(check, subject, encoded):
    """Absolute scores of the words of one text by its own; nothing from a method that refuses."""
    context = BatchContext(subject, collate([encoded]))
    found = {}
    for name, part in parts(check).items():
        try:
            scores = part(context, context.predicted).scores
            found[name] = scores[0][context.batch.mask[0]].abs().double().numpy()
        except NotApplicable:
            found[name] = None
    return found


def top_places(scores, k):
    """Each word's share of k places, dealt from the top; ties for the last share what is left."""
    place, given, level = [0.0] * len(scores), 0, ranks(scores)
    for rank in sorted(set(level), reverse=True):
        group = [t for t, one in enumerate(level) if one == rank]
        for t in group:
            place[t] = min(1.0, max(0.0, (k - given) / len(group)))
        given += len(group)
    return place


def overlap(a, b, top):
    k = min(top, len(a) // 2)
    if not k or math.isnan(kendall(a, b)[0]):
        return math.nan
    return sum(map(min, top_places(a, k), top_places(b, k))) / k


@pytest.mark.parametrize("kind", [("bilstm", "additive", 2), ("average", "dot", 3)], ids=str)
def test_every_pair_is_that_of_scipy_and_of_a_plain_loop(kind):
    encoder, attention, classes = kind
    subject = subjects.subject(encoder, attention, classes=classes, seed=12)
    encoded = subjects.encoded(subject, LENGTHS, seed=13)
    check = checks.build("agreement", shuffles=2, methods=ASKED, top=4)
    found = check(BatchContext(subject, collate(encoded)))
    taus, overlaps = pairs(found, "tau_pair"), pairs(found, "overlap_pair")
    names = [name for name in ready_methods() if name != "uniform"]
    assert list(taus) == list(overlaps) == list(combinations(names, 2))
    for row, one in enumerate(encoded):
        sizes = sizes_alone(check, subject, one)
        assert [name for name in names if sizes[name] is None] == [
            name for name in names if name in REFUSED or (name == "shapley" and LENGTHS[row] > 12)
        ]
        for a, b in combinations(names, 2):
            missing = sizes[a] is None or sizes[b] is None
            tau = math.nan if missing else kendall(sizes[a], sizes[b])[0]
            same(taus[a, b][row], tau, err_msg=f"{a} ~ {b}")
            share = math.nan if missing else overlap(sizes[a], sizes[b], 4)
            same(overlaps[a, b][row], share, err_msg=f"{a} ~ {b}")


def test_references_are_sorts_of_saliency_against_each_other():
    subject = subjects.subject(seed=12)
    context = BatchContext(subject, subjects.batch(subject, LENGTHS, seed=13))
    found = checks.build("agreement", methods=ASKED)(context)
    taus, columns = pairs(found, "tau_pair"), plain(found)
    saliency = [
        name for name in ready_methods() if getattr(methods[name], "kind", "") == "saliency"
    ]
    others = [name for name in saliency if name not in ERASURE_METHODS]
    assert {"input_x_gradient", "integrated_gradients", "one_hot_gradient"} <= set(others)
    assert set(ERASURE_METHODS) <= set(saliency)

    def tau(a, b, row):
        return taus.get((a, b), taus.get((b, a)))[row]

    for row in range(1, len(LENGTHS)):
        across = [tau(a, b, row) for a in ERASURE_METHODS for b in others]
        same(columns["tau_references"][row], np.nanmean(across))
        both = [[tau("attention", b, row) for b in some] for some in (ERASURE_METHODS, others)]
        same(columns["tau_attention_references"][row], np.mean([np.nanmean(one) for one in both]))
    assert np.isnan(columns["tau_references"][0])  # one word


def test_what_was_asked_for_changes_nothing_of_what_was_published():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, LENGTHS))
    bare = checks.build("agreement")
    more = checks.build("agreement", methods=("gradient", "random"))
    usual, found = plain(bare(context)), plain(more(context))
    assert not pairs(bare(context), "tau_pair")
    for name, values in usual.items():  # among them tau_gradient_…, which is the one-hot gradient
        np.testing.assert_array_equal(found[name], values)
    taus = pairs(more(context), "tau_pair")
    np.testing.assert_array_equal(
        found["tau_leave_one_out[gradient]"], taus["gradient", "leave_one_out"]
    )
    added = {"tau_leave_one_out[gradient]", "tau_leave_one_out[random]"}
    assert set(found) - set(usual) == added | {"tau_references", "tau_attention_references"}


def test_the_size_of_batches_never_matters():
    subject = subjects.subject()
    draw = np.random.default_rng(4)
    texts = [" ".join(draw.choice(subjects.WORDS, length)) for length in (3, 14, 6, 1, 5, 6, 18)]
    examples = [Example(index, text, 0) for index, text in enumerate(texts)]
    check = checks.build("agreement", shuffles=2, methods=("all", *FEW))
    usual, *others = (
        run_job(subject, examples, {"agreement": check}, seed=0, max_batch_tokens=size)
        for size in (20_000, 20)
    )
    for found in others:
        assert found.summary.missing == usual.summary.missing
        for one, other in zip(found.columns, usual.columns, strict=True):
            assert one.key == other.key
            same(one.values, other.values)
    shapley = next(
        one
        for one in usual.columns
        if (one.key.measure, one.key.method) == ("tau_leave_one_out", "shapley")
    )
    assert np.isnan(shapley.values).tolist() == [False, True, False, True, False, False, True]


def test_a_method_that_refuses_is_no_zero_and_says_why():
    subject = subjects.subject()
    found = checks.build("agreement", methods=("rollout", "random"))(
        BatchContext(subject, subjects.batch(subject, [4, 7]))
    )
    ((name, why),) = measured_values.missing(found).items()
    assert name == "tau_leave_one_out[rollout]"
    assert "several layers" in why
    assert np.isnan(plain(found)[name]).all()
    assert np.isnan(pairs(found, "overlap_pair")["attention", "rollout"]).all()


def test_a_text_too_long_for_a_method_does_not_take_it_from_others():
    subject = subjects.subject()
    check = checks.build("agreement", methods=("shapley",))
    found = check(BatchContext(subject, subjects.batch(subject, [5, 13])))
    assert np.isnan(plain(found)["tau_leave_one_out[shapley]"]).tolist() == [False, True]
    (missing,) = found.missing
    assert (missing.measure, missing.method) == ("tau_leave_one_out", "shapley")
    assert "13 tokens would take 8,192 passes" in missing.reason
    assert not check(BatchContext(subject, subjects.batch(subject, [5, 12]))).missing


def test_methods_of_one_check_share_their_passes():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [5, 6]))
    asked = (Lime(samples=64), KernelShap(samples=64))
    with torch.no_grad():
        checks.build("agreement", methods=asked)(context)
    assert sum(type(key).__name__ == "Coalitions" for key in context.cache) == 1


def test_all_are_all_but_those_of_the_check_and_the_one_that_ranks_nothing():
    check = checks.build("agreement", methods=("all",))
    every = set(methods) - {*ALWAYS_COMPUTED, "uniform", "diffmask"}
    assert set(check.methods) == set(rankable_methods()) == every
    assert "random" in check.methods
    assert check == checks.build("agreement", methods=tuple(reversed(check.methods)))
    assert registry_order((Lime(), "random", Lime(samples=8), "all"))[-1] == "random"
    assert Lime(samples=8) in registry_order(("all", Lime(samples=8)))
    assert registry_order((Lime(),)) == ("lime",)  # equal settings are equal parts


def test_a_method_without_what_must_be_made_for_it_is_left_out_and_told_once(caplog):
    warn_left_out.cache_clear()
    made = DiffMask("a folder")
    assert made in registry_order(("all", made))
    assert made in with_attention((made, "all"))
    assert "diffmask" in registry_order(("diffmask", "all"))
    assert not caplog.records  # it was named
    assert "diffmask" not in {
        *map(method_name, registry_order(("all",))),
        *with_attention(("all",)),
    }
    (told,) = caplog.records
    assert told.getMessage().startswith("diffmask is left out of all methods. diffmask needs an")
    assert told.name == "heedful"


def test_a_method_that_is_named_says_what_it_lacks():
    subject = subjects.subject()
    found = checks.build("agreement", methods=("diffmask",))(
        BatchContext(subject, subjects.batch(subject, [4]))
    )
    assert measured_values.missing(found) == {"tau_leave_one_out[diffmask]": NO_EXPLAINER}


@pytest.mark.parametrize("asked", [("rolout",), ("lime", "rolout")])
def test_an_unknown_method_is_told(asked):
    with pytest.raises(UnknownName, match=r"No method is named 'rolout'\. Did you mean 'rollout'"):
        checks.build("agreement", methods=asked)


def test_the_top_has_at_least_one_word():
    with pytest.raises(ConfigError, match="top must be at least 1, not 0"):
        checks.build("agreement", top=0)
