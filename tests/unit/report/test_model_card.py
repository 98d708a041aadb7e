"""A model card's section and its block: plain words, valid YAML, and no text that turns markup."""

import doctest
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.errors import ShapeError
from heedful.core.records import CLAIMS, ClaimResult, Estimate
from heedful.report.pages import model_card
from heedful.report.pages.model_card import CARD_MARK, front_matter, render_model_card
from support.records import MEASURES, NASTY, better, manifest, verdict

yaml = pytest.importorskip("yaml")
names = st.sampled_from(("name", "model-index", "args", "low_2", "N"))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def card(told=None, **changes):
    return render_model_card(verdict(("neg", "pos"), **changes), told or manifest())


def block(text):
    start, middle, _ = text.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(middle)


def result(text):
    (model,) = block(text)["model-index"]
    (found,) = model["results"]
    return model["name"], found


@given(st.dictionaries(names, values, min_size=1, max_size=3))
def test_what_is_written_reads_back_the_same(told):
    assert block(front_matter(told)) == told


@given(st.text())
def test_no_text_leaves_its_line(text):
    made = front_matter({"name": text})
    assert len(made.splitlines()) == 3
    assert made.count("\n---") == 1


def test_numbers_that_do_not_exist_are_null_and_strange_things_refused():
    assert block(front_matter({"a": nan, "b": inf})) == {"a": None, "b": None}
    for wrong in ({"a b": 1}, {"a": object()}, {"a": [{1: 2}.keys()]}):
        with pytest.raises(ShapeError):
            front_matter(wrong)


def test_the_block_has_task_data_and_every_leading_figure_with_its_interval():
    name, found = result(card())
    assert name == "runs/demo/model"
    assert found["task"]["type"] == "text-classification"
    assert found["dataset"] == {
        "type": "sample:movies",
        "name": "sample:movies",
        "split": "test",
        "args": {"sha256": "cd" * 32, "texts": 105},
    }
    metrics = {one["type"]: one for one in found["metrics"]}
    assert len(metrics) == len(found["metrics"])
    assert metrics["heedful_answer"]["value"] == "unfaithful"
    assert metrics["heedful_claim_ranks"]["value"] == "not tested"
    for kind in ("heedful_degree", "heedful_agreement_tau_leave_one_out"):
        one = metrics[kind]
        assert one["value"] == 0.41
        assert one["args"] == {"low": 0.36, "high": 0.47, "level": 0.9, "n": 90}
    assert metrics["heedful_answer"]["args"] == {"version": "0.1.0"}


def test_the_hub_reads_the_block():
    hub = pytest.importorskip("huggingface_hub")
    found = hub.ModelCard(card()).data
    assert found.model_name == "runs/demo/model"
    degree = next(one for one in found.eval_results if one.metric_type == "heedful_degree")
    assert (degree.metric_value, degree.metric_args["low"]) == (0.41, 0.36)
    assert (degree.task_type, degree.dataset_split) == ("text-classification", "test")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hf:glue@sst2", {"type": "glue", "name": "hf:glue@sst2", "config": "sst2"}),
        ("hf:imdb", {"type": "imdb", "name": "hf:imdb"}),
    ],
)
def test_data_of_the_hub_are_named_as_the_hub_does(name, told):
    data = manifest()["data"] | {"name": name}
    found = result(card(manifest(data=data)))[1]["dataset"]
    assert found == told | {"split": "test", "args": found["args"]}


def test_language_models_have_another_task_and_paths_stay_at_home():
    told = manifest(labels=[str(i) for i in range(5000)], model={"name": "/home/me/secret/mine"})
    text = card(told)
    assert result(text)[0] == "mine"
    assert result(text)[1]["task"]["type"] == "text-generation"
    assert "secret" not in text


def test_the_section_tells_the_answer_in_plain_words():
    text = card()
    for part in (
        "## Attention as explanation",
        "**No.** Attention does not explain this model. Attention ranks words nearer to chance.",
        r"the gradient (1): 0.410 \[0.360, 0.470\] (90 % interval, n = 90 texts).",
        r"one\_hot\_gradient ranks words better: order 0.876",
        "| ranks | not tested | attention orders words by influence | – |",
        f"sha256 `{'cd' * 32}`",
        "- Texts: 100 audited, 5 too short and left out, 2 cut to what the model reads",
        "- Not tested at all: used, needed, ranks, exclusive, robust.",
    ):
        assert part in text
    assert text.index("---\n\n") < text.index(CARD_MARK) < text.index("## ")


@pytest.mark.parametrize(
    ("answer", "instead", "told"),
    [
        ("faithful", None, "Attention may be shown as a ranking of words"),
        ("undecided", None, "Do not rely on attention"),
        ("unfaithful", None, "Do not present attention as the reason for a prediction"),
        ("unfaithful", better("lime", 0.7), "lime ranks words better"),
    ],
)
def test_what_to_use_follows_from_the_answer(answer, instead, told):
    assert told in card(answer=answer, instead=instead)


@pytest.mark.parametrize("degree", [None, Estimate(nan, nan, nan, 0)])
def test_a_run_without_a_degree_says_so(degree):
    text = card(degree=degree, checks=("permutation",))
    assert "**Degree.** Not measured" in text
    assert "heedful_degree" not in text
    assert "nan" not in text


def test_claims_rest_on_their_leading_figures():
    claims = {name: ClaimResult("supported", "", ("agreement", "gone")) for name in CLAIMS}
    text = card(claims=claims)
    assert r"agreement: attention and leave-one-out, τ 0.410 \[0.360, 0.470\]" in text


@pytest.mark.parametrize("text", [*NASTY, "---\nx: 1", "a\n# b", "`code` ![x](https://evil)"])
def test_other_peoples_text_stays_text(text):
    data = manifest()["data"] | {"name": text, "split": text, "sha256": text, "bad_rows": text}
    model = {"name": text, "family": text, "sha256": text}
    told = manifest(data=data, model=model, versions={"heedful": text})
    changed = {"why": text, "instead": better(text, 0.5)}
    made = card(told, **changed)
    plain = {"why": "x", "instead": better("x", 0.5)}
    want = card(
        manifest(
            data=data | dict.fromkeys(data, "x") | {"texts": 105}, model=dict.fromkeys(model, "x")
        ),
        **plain,
    )
    assert len(made.splitlines()) == len(want.splitlines())
    assert [one["type"] for one in result(made)[1]["metrics"]] == [
        one["type"] for one in result(want)[1]["metrics"]
    ]
    section = made.partition(CARD_MARK)[2]
    for sign in "<[!`"[:2]:
        assert section.replace(f"\\{sign}", "").count(sign) == 0
    assert "\x00" not in made


@pytest.mark.parametrize("name", MEASURES)
def test_every_check_alone_has_a_card(name):
    assert f"heedful_{name}_" in card(checks=(name,))


def test_examples_in_documentation():
    assert not doctest.testmod(model_card).failed
