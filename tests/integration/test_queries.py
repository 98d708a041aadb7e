"""Texts with questions from end to end: read, train, audit, explain, report."""

import json

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import heedful
from heedful import Recipe
from heedful.checks import checks
from heedful.cli.main import app
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.model_folder import save_model
from heedful.planted import Case
from heedful.report.pages.section_render import script_json
from heedful.report.sections.example_texts import build_example_texts
from heedful.results.run_folder import RunFolder
from support import question_subjects

PER_TEXT = [spec.name for spec in checks.specs() if not spec.retrains]
NOT_RUN = {"identifiability", "plausibility"}  # one attention; no rationales
QUICK = {"adversarial": {"steps": 5}, "faithfulness": {"draws": 0, "steps": 4}}
ROWS = [
    {"paragraph": one.text, "question": f"{one.pair} <b>?", "label": f"class{one.index % 4}"}
    for one in question_subjects.examples((6, 9, 4, 7, 12, 5))
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    one = question_subjects.subject()
    out = tmp_path_factory.mktemp("queries") / "run"
    return heedful.audit(one, ROWS, checks=PER_TEXT, settings=QUICK, out=out)


def test_every_check_answers_or_says_why_and_of_six_texts_none_decides(run):
    verdict = json.loads((run.folder / "verdict.json").read_text())
    assert verdict["answer"] == "undecided"
    for name, one in verdict["checks"].items():
        wanted = "undecided" if name in (*NOT_RUN, "influence") else "no vote"
        assert one["answer"] == wanted, name
        assert one["why"]
    told = verdict["checks"]["adversarial"]["estimates"]
    assert told["ascent_jsd"]["value"] <= told["bound_jsd"]["value"] + 1e-9
    assert "its power was not measured" in verdict["checks"]["adversarial"]["why"]


YES, NO = "supported", "refuted"


@pytest.mark.parametrize(
    ("kind", "answer", "claims"),
    [
        ("asked-peaked", "faithful", {"used": YES, "ranks": YES, "exclusive": YES}),
        ("asked-hidden", "unfaithful", {"used": YES, "ranks": NO}),
        ("asked-leaky", "unfaithful", {"used": NO, "exclusive": NO}),
        ("asked-alone", None, {"used": NO, "exclusive": NO}),
    ],
)
def test_subjects_with_a_question_and_a_known_truth_get_their_verdict(kind, answer, claims):
    case = Case(kind, "middle", 10, 20)
    assert all(
        case.truth[name] is None or case.truth[name] == (one == YES) for name, one in claims.items()
    )
    few = {"influence": {"methods": ["attention"], "costly_texts": 20}}
    names = ["influence", "adversarial", "permutation"]
    verdict = heedful.audit(case.subject, case.texts(60), checks=names, settings=few).verdict
    assert answer is None or verdict.answer == answer
    assert {name: verdict.claims[name].answer for name in claims} == claims


def test_the_question_is_kept_and_shown_with_its_text(run):
    rows = RunFolder(run.folder).texts().whole().to_pylist()
    assert [row["question"] for row in rows] == [row["question"] for row in ROWS]
    assert [row["words"] for row in rows] == [row["paragraph"].split() for row in ROWS]
    shown = script_json(build_example_texts(run.records).widget.data)
    assert ROWS[0]["question"].replace("<b>", "\\u003cb\\u003e") in shown
    assert "<b>" not in shown


def test_values_do_not_depend_on_the_batch(run):
    other = heedful.audit(
        question_subjects.subject(), ROWS, checks=PER_TEXT, settings=QUICK, max_batch_tokens=12
    )
    one, two = (run.to_dataframe() for run in (run, other))
    keys = ["instance", "check", "measure", "setting"]
    one, two = (frame.set_index(keys)["value"].sort_index() for frame in (one, two))
    assert one.index.equals(two.index)
    searched = one.index.get_level_values("measure").isin(
        ["epsilon_max_jsd", "of_bound", "output_tvd", "random_tvd"]
    )
    for chosen, near in ((~searched, 1e-6), (searched, 1e-3)):
        np.testing.assert_allclose(one[chosen].to_numpy(), two[chosen].to_numpy(), atol=near)


def test_checks_that_train_anew_serve_models_with_a_query(tmp_path):
    train, dev, test = (
        heedful.read("synthetic:questions", split=split, limit=count)
        for split, count in (("train", 60), ("dev", 24), ("test", 6))
    )
    recipe = Recipe("average", "additive", embedding=4, hidden=4, epochs=1, batch=16)
    save_model(heedful.fit(train, dev, recipe), tmp_path / "model")
    names = ["necessity", "guide"]
    fewer = {name: {"seeds": 2, "epochs": 1, "patience": 1} for name in names}
    run = heedful.audit(
        tmp_path / "model",
        test,
        checks=names,
        train=train,
        dev=dev,
        settings=fewer,
        retraining={"workers": 1},
    )
    verdict = json.loads((run.folder / "verdict.json").read_text())
    for name, measure in (("necessity", "gain"), ("guide", "score_base")):
        assert np.isfinite(verdict["checks"][name]["estimates"][measure]["value"])


def test_one_text_is_explained_with_its_question(tmp_path, capsys):
    save_model(question_subjects.subject(), tmp_path)
    words = ["explain", str(tmp_path), "w1 w2 w3", "--question", "w4 w5", "--methods", "attention"]
    app([*words, "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert (found["question"], found["tokens"]) == ("w4 w5", ["w1", "w2", "w3"])
    one = heedful.load(tmp_path)
    context = BatchContext(one, one.batch([one.encode(Example(0, "w1 w2 w3", 0, pair="w4 w5"))]))
    np.testing.assert_allclose(
        found["methods"]["attention"]["scores"], context.forward.attention[0, 1:-1], atol=1e-12
    )
    shown = heedful.explain(one, "w1 w2", question="<i>w4", method="attention")
    shown.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "beside the text: &lt;i&gt;w4" in page
    assert "<i>w4" not in page
    with pytest.raises(heedful.DataError, match="reads two texts"):
        heedful.explain(one, "w1 w2", method="attention")


def test_the_word_that_answers_is_known():
    for split in ("train", "dev", "test"):
        for one in heedful.read("synthetic:questions", split=split, limit=40):
            (place,) = one.rationale
            assert one.tokens[place - 1] == one.pair.split()[-1]
            labels = ("attic", "harbour", "library", "orchard")
            assert one.tokens[place] == labels[one.label]
            assert one.tokens.count(one.tokens[place]) == 1


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that is made inside."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            # a tensor that repeats its numbers without holding them takes no room
            if isinstance(one, torch.Tensor) and one.untyped_storage().nbytes() >= one.nbytes:
                self.numbers = max(self.numbers, one.numel())
        return made


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average"])
def test_no_tensor_grows_with_the_square_of_a_text(encoder):
    """A budget of two texts' tokens holds whatever is made while each word is left out."""
    one, length = question_subjects.subject(encoder), 300
    (text,) = question_subjects.examples((length,))
    batch = one.batch([one.encode(text)])
    with Largest() as largest:
        one.without_each(batch, max_batch_tokens=2 * length)
    width = one.network.encoder.width
    states = 2 * (length + 2) * (3 * width)  # of two variants: what attention and output read
    gates = length * 4 * 8  # of all variants at one step: what a bilstm computes a state from
    assert largest.numbers <= max(states, gates, length * 3 * width) < length * length


def test_a_clinical_note_of_2500_words_is_audited():
    (long,) = question_subjects.examples((2500,))
    row = {"paragraph": long.text, "question": long.pair, "label": "class0"}
    run = heedful.audit(
        question_subjects.subject("average"), [row], checks=["agreement"], max_batch_tokens=5000
    )
    kept = run.to_dataframe().set_index("measure")["value"]
    assert np.isfinite(kept["tau_leave_one_out"])
    assert run.manifest["truncated"] == 0
