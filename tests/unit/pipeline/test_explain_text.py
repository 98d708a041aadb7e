"""One text: words from pieces as each method joins them, and what cannot be said is told."""

import pytest
import torch

from heedful.core.errors import ConfigError, DataError, NotApplicable
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.pipeline.explain.explain_text import explain_text
from heedful.pipeline.explain.request import ExplainRequest
from support import subjects
from support.known_methods import pieced, registered

TEXT = "w1-w2 w3 w4-w5-w6"


@pytest.fixture
def made_up(monkeypatch):
    registered(monkeypatch)


def explain(text=TEXT, subject=None, names=("counting", "norms"), **settings):
    request = ExplainRequest({name: {} for name in names}, **settings)
    return explain_text(subject or pieced(), text, request)


def test_words_have_the_sum_or_the_norm_of_their_pieces(made_up):
    found = explain()
    assert found.tokens == ("w1-w2", "w3", "w4-w5-w6")
    assert found.methods["counting"].scores == (1 + 2, 3, 4 + 5 + 6)
    assert found.methods["norms"].scores == pytest.approx((5**0.5, 3, 77**0.5))


def test_pieces_are_shown_as_the_subject_spells_them(made_up):
    found = explain(granularity="token")
    assert found.tokens == ("_w1", "_w2", "_w3", "_w4", "_w5", "_w6")
    for one in found.methods.values():
        assert one.scores == (1, 2, 3, 4, 5, 6)


def test_without_pieces_tokens_are_words(made_up):
    assert explain("w1 w2", subjects.subject(), granularity="token").tokens == ("w1", "w2")


@pytest.mark.parametrize(
    ("most", "words", "scores"),
    [
        (4, ("w1-w2", "w3", "w4-w5-w6"), (3, 3, 4)),
        (3, ("w1-w2", "w3"), (3, 3)),
        (1, ("w1-w2",), (1,)),
    ],
)
def test_words_that_were_cut_off_are_not_shown_with_a_score_of_0(made_up, most, words, scores):
    found = explain(subject=pieced(most))
    assert (found.tokens, found.methods["counting"].scores) == (words, scores)
    assert found.truncated
    assert not explain().truncated


@pytest.mark.parametrize("name", ["attention", "leave_one_out", "one_hot_gradient"])
def test_scores_are_those_of_the_method(name):
    subject = pieced()
    batch = subject.batch([subject.encode(Example(0, TEXT, 0))])
    context = BatchContext(subject, batch)
    with torch.no_grad():
        want = methods.build(name)(context, context.predicted).scores[0][batch.mask[0]]
    found = explain(subject=subject, names=(name,), granularity="token").methods[name]
    assert found.scores == pytest.approx(want.tolist())


def test_target_and_probability_are_the_model_s(made_up):
    subject = subjects.subject(classes=3)
    forward = subject.forward(subject.batch([subject.encode(Example(0, "w1 w2 w3", 0))]))
    for target in (None, *subject.labels):
        found = explain("w1 w2 w3", subject, target=target)
        assert found.predicted == subject.labels[int(forward.predicted)]
        assert found.target == (target or found.predicted)
        number = subject.labels.index(found.target)
        assert found.probability == pytest.approx(float(forward.probabilities[0, number]))


def test_refusals_are_told_beside_the_others(made_up):
    found = explain(names=("never", "counting", "short"))
    assert list(found.methods) == ["counting"]
    assert found.refused == {
        "never": "never serves nobody.",
        "short": "short reads three tokens at most, not 6.",
    }


def test_all_of_several_may_be_refused(made_up):
    found = explain(names=("never", "short"))
    assert (len(found.methods), len(found.refused)) == (0, 2)


def test_one_method_alone_that_is_refused_is_an_error(made_up):
    with pytest.raises(NotApplicable, match=r"^never serves nobody\.$"):
        explain(names=("never",))
    with pytest.raises(NotApplicable, match=r"^of must be probability or logit, not"):
        explain(names=("counting",), of="log_odds")


def test_what_was_set_goes_with_the_scores(made_up):
    request = ExplainRequest({"counting": {"scale": 2.0}, "short": {}}, of="logit")
    found = explain_text(pieced(), "w1 w2", request)
    one = found.methods["counting"]
    assert (one.scores, one.of, one.settings) == ((2.0, 4.0), "logit", {"scale": 2.0})
    assert (one.kind, one.signed) == ("saliency", True)
    assert (found.methods["short"].of, found.methods["short"].settings) == (None, {})


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_a_text_without_a_word_is_refused(made_up, text):
    with pytest.raises(DataError, match="no word to explain"):
        explain(text, subjects.subject())


def test_an_unknown_target_is_told_with_some_that_exist(made_up):
    with pytest.raises(ConfigError) as caught:
        explain(target="great")
    assert str(caught.value) == "No class is named 'great'. Classes: class0, class1."
    with pytest.raises(ConfigError, match=r"class19, …\.$"):
        explain("w1", subjects.subject(classes=30), target="great")
