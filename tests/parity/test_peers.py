"""Adapters of other libraries: what they say of models whose answer is known, word for word."""

import sys
import warnings

import pytest
import torch
from benchmarks.peers.__main__ import LIBRARIES, find_peers

from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.planted import score_methods
from heedful.planted.influence.kind import InfluenceSetting
from support import influence_kinds as tiny

CLASSIFIERS = (
    *("captum integrated_gradients", "captum input_x_gradient", "captum feature_ablation"),
    *("shap kernel", "shap partition", "lime text"),
)
TEXT = Example(0, "w50 w1 w77 w11 w50 w90", -1)  # w1 says +4, w11 +2, the others nothing
pytestmark = pytest.mark.filterwarnings("ignore")  # other libraries' own


@pytest.fixture(scope="module")
def adapters():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_peers()[0]


@pytest.fixture
def subject():
    return tiny.build_subject(InfluenceSetting("plain-wrong", 8, 0), sign=lambda words: 0.0)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_library_finds_the_words_that_say_something(name, subject, adapters):
    """Under nearly equal weights the log-odds are the mean of what the words say."""
    scores = adapters[name](subject, TEXT)
    assert len(scores) == 6
    order = torch.tensor(scores).abs().argsort(descending=True)
    assert order[:2].tolist() == [1, 3]


def test_integrated_gradients_of_captum_add_up_to_the_change(subject, adapters):
    given = adapters["captum integrated_gradients"](subject, TEXT)
    batch = subject.batch([subject.encode(TEXT)])
    after = subject.forward(batch).logits.softmax(-1)[0, 1]
    before = subject.forward(batch, torch.zeros(1, 6, 2).double()).logits.softmax(-1)[0, 1]
    assert sum(given) == pytest.approx(float(after - before), abs=1e-3)


def test_kernel_shap_adds_up_to_the_change(subject, adapters):
    given = adapters["shap kernel"](subject, TEXT)
    batch = subject.batch([subject.encode(TEXT)])
    after = float(subject.forward(batch).logits.softmax(-1)[0, 1])
    assert sum(given) == pytest.approx(after - 0.5, abs=1e-6)  # without words: ½


def test_the_same_word_at_two_places_has_two_scores(subject, adapters):
    twice = Example(0, "w1 w50 w1 w60", -1)
    for name in ("lime text", "shap kernel", "shap partition"):
        first, _, second, _ = adapters[name](subject, twice)
        assert min(first, second) > 0.02, name


def test_they_are_scored_beside_ours(monkeypatch, adapters):
    tiny.register(monkeypatch)
    others = {name: adapters[name] for name in ("captum feature_ablation", "lime text")}
    found = score_methods(["attention"], others=others, texts=2, kinds=["plain"])
    assert set(found.methods) == {"attention", *others}
    assert found.methods["captum feature_ablation"].all_texts.top_set.value == 1.0


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lime", None)
    monkeypatch.setitem(sys.modules, "lime.lime_text", None)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.lime_adapters", raising=False)
    found, libraries = find_peers()
    assert "lime text" not in found
    assert libraries["lime"].startswith("not there: ")
    assert list(libraries) == list(LIBRARIES)


def test_inseq_refuses_classifiers(subject, adapters):
    pytest.importorskip("inseq")
    with pytest.raises(NotApplicable, match="language models that generate"):
        adapters["inseq saliency"](subject, TEXT)


def test_inseq_explains_the_answer_of_a_language_model(adapters):
    """The gradient of the answer's probability among all tokens, up to a factor."""
    pytest.importorskip("inseq")
    transformers = pytest.importorskip("transformers")
    import heedful
    from support import tiny_tokenizers

    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 60, "initializer_range": 0.5}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.GPT2Config(vocab_size=tiny_tokenizers.V, **sizes, **ids)
    model = transformers.GPT2LMHeadModel(config).eval()
    subject = heedful.load(model, tiny_tokenizers.words("kept"), answers=["good", "bad"])
    example = Example(0, "the film is so very dull and fine", -1)
    scores = adapters["inseq saliency"](subject, example)
    given = torch.tensor(scores, dtype=torch.float64)
    batch = subject.batch([subject.encode(example)])
    vectors = subject.embed(batch).detach().requires_grad_()
    answer = subject.answers[int(subject.forward(batch).logits[0].argmax())]
    model(inputs_embeds=vectors).logits[0, -1].softmax(-1)[answer].backward()
    norms = vectors.grad[0].norm(dim=-1)
    torch.testing.assert_close(
        given / given.sum(), (norms / norms.sum()).double(), rtol=1e-3, atol=0
    )
