"""`heedful explain` and its functions, for one text and for data, from the request to the file."""

import json
import logging
from dataclasses import replace

import pytest

import heedful
from heedful.core.errors import ConfigError, RunError
from heedful.methods import methods
from heedful.methods.base import PATENT_NOTICE, warn_patent
from heedful.models.recurrent.model_folder import save_model
from support import subjects
from support.hostile_input import SCRIPT, refused

TEXT = "w1 w2 w3 w4 w5"
HOSTILE = (SCRIPT, "שלום עולם w1", "👩‍👩‍👧‍👦 😀 w2", "x" * 5000 + " w3", "w1 \x1b[31m \u202e w2")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain") / "model"
    save_model(replace(subjects.subject(), max_words=50), folder)
    return folder


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"text": "w1 w2", "label": "class0"}) + "\n")
    return path


def test_json_has_the_promised_shape(run, model):
    code, out, err = run("explain", model, TEXT, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {"text", "target", "granularity", "tokens", "methods"} <= set(found)
    assert (found["text"], found["granularity"]) == (TEXT, "word")
    assert found["tokens"] == TEXT.split()
    assert found["target"] == found["predicted"]
    assert 0.5 <= found["probability"] <= 1
    for one in found["methods"].values():
        assert set(one) == {"kind", "signed", "of", "scores"}
        assert one["kind"] in {"attention", "sensitivity", "saliency"}
        assert len(one["scores"]) == 5
    asked = set(found["methods"]) | set(found["refused"])
    slow = {"flow", "lime", "kernel_shap", "shapley", "diffmask", "lrp", "relevance_rollout"}
    assert asked == set(methods) - slow - {"random", "uniform"}


def test_all_methods_are_all(run, model):
    found = json.loads(run("explain", model, TEXT, "--methods", "all", "--json")[1])
    assert set(found["methods"]) | set(found["refused"]) == set(methods)
    assert all(reason for reason in found["refused"].values())


def test_the_patent_is_told_on_stderr_once_and_json_stays_json(run, model, monkeypatch):
    warn_patent.cache_clear()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own
    for told in (PATENT_NOTICE, ""):
        code, out, err = run("explain", model, TEXT, "--methods", "lrp", "--json")
        assert (code, err.strip()) == (0, told)
        assert list(json.loads(out)["methods"]) == ["lrp"]


def test_of_and_settings_reach_the_methods(run, model):
    words = ("explain", model, TEXT, "--methods", "one_hot_gradient,gradient", "--json")
    plain = json.loads(run(*words)[1])["methods"]
    code, out, _ = run(*words, "--of", "logit", "--set", "one_hot_gradient.attention=free",
                       "--set", "gradient.norm=l1")  # fmt: skip
    found = json.loads(out)["methods"]
    assert code == 0
    assert found["one_hot_gradient"]["settings"] == {"attention": "free"}
    assert found["gradient"]["settings"] == {"norm": "l1"}
    assert found["gradient"]["of"] == "logit"
    assert plain["gradient"]["of"] == "probability"
    for name in plain:
        assert found[name]["scores"] != pytest.approx(plain[name]["scores"])
    mapped = {"one_hot_gradient": {"attention": "free"}, "gradient": {"norm": "l1"}}
    same = heedful.explain(str(model), TEXT, methods=mapped, of="logit").to_dict()["methods"]
    assert same == found


def test_words_are_printed_by_kind_without_colour(run, model):
    code, out, _ = run("explain", model, TEXT)
    assert code == 0
    assert out.index("ATTENTION") < out.index("SENSITIVITY") < out.index("SALIENCY")
    assert "\x1b" not in out
    assert out.count("strongest: ") == out.count(TEXT)
    numbers = run("explain", model, TEXT, "--numbers", "--methods", "attention")[1]
    assert [line.split()[0] for line in numbers.splitlines()[-5:]] == TEXT.split()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_only_words(run, model, tmp_path, text):
    page = tmp_path / "page.html"
    code, out, err = run("explain", model, text, "--methods", "attention,leave_one_out")
    assert (code, err) == (0, "")
    assert not set(out) & set("\x1b\u202e")
    assert run("explain", model, text, "--methods", "attention", "--html", page)[0] == 0
    written = page.read_text()
    assert "<img" not in written
    assert written.count("<script") == 1
    assert not set(written) & set("\x1b\u202e")
    found = json.loads(run("explain", model, text, "--json", "--methods", "attention")[1])
    assert found["text"] == text


def test_a_page_is_written_and_told(run, model, tmp_path):
    page = tmp_path / "deep" / "page.html"
    code, out, _ = run("explain", model, TEXT, "--html", page)
    assert code == 0
    assert out.startswith(f"{page} (")
    assert page.read_text().startswith("<!doctype html>")
    assert run("explain", model, TEXT, "--html", page, "--quiet")[1] == ""
    both = run("explain", model, TEXT, "--html", page, "--json", "--methods", "attention")[1]
    assert json.loads(both)["text"] == TEXT


def test_a_text_longer_than_the_model_reads_is_told(run, model):
    code, out, _ = run("explain", model, "w1 " * 60, "--methods", "attention")
    assert code == 0
    assert "only these 50 words were" in " ".join(out.split())


WRONG = {
    "neither": ([], "Give either a TEXT or --data; none of them was given."),
    "both": (
        ["w1", "--data", "DATA", "--out", "o.parquet"],
        "Give either a TEXT or --data; both were given.",
    ),
    "no out": (["--data", "DATA"], "--data needs --out FILE.parquet"),
    "out of a text": (["w1", "--out", "o.parquet"], "--out applies to --data only"),
    "split of a text": (["w1", "--split", "dev"], "--split applies to --data only"),
    "json of data": (["--data", "DATA", "--out", "o.parquet", "--json"], "--json applies to one"),
    "page of data": (["--data", "DATA", "--out", "o.parquet", "--html", "p"], "--html applies to"),
    "no parquet": (["--data", "DATA", "--out", "o.csv"], "out must name a file that ends in .parq"),
    "a folder": (["--data", "DATA", "--out", "folder.parquet"], "is a folder"),
    "no data": (["--data", "nowhere.csv", "--out", "o.parquet"], "nowhere.csv"),
    "half a sign": (["w1 \udcff"], "The text is not UTF-8"),
    "granularity": (["w1", "--granularity", "letter"], "granularity must be word or token"),
    "of": (["w1", "--of", "odds"], "of must be probability, log_odds or logit, not 'odds'."),
    "set": (["w1", "--set", "gradient"], "it must be METHOD.SETTING=VALUE"),
    "set nothing": (["w1", "--set", "gradient.norm="], "it must be METHOD.SETTING=VALUE"),
    "set nobody": (["w1", "--set", "gradien.norm=l1"], "Did you mean 'gradient'?"),
    "set what is not": (["w1", "--set", "gradient.nom=l1"], "Settings: norm, of"),
    "set wrongly": (
        ["w1", "--set", "gradient.norm=l3"],
        "gradient.norm must be l1 or l2, not 'l3'",
    ),
    "set of another": (
        ["w1", "--methods", "attention", "--set", "gradient.norm=l1"],
        "gradient is not among the methods: attention.",
    ),
    "refused alone": (["w1 w2", "--methods", "rollout"], "rollout combines"),
    "target of data": (
        ["--data", "DATA", "--out", "o.parquet", "--target", "great"],
        "No class is named 'great'",
    ),
    "page over a folder": (
        ["w1", "--html", "folder.parquet"],
        "folder.parquet is not a regular file",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_get_one_clear_line(run, model, data, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.parquet").mkdir()
    words, said = WRONG[case]
    assert said in refused(run("explain", model, *(str(data) if w == "DATA" else w for w in words)))
    assert {one.name for one in tmp_path.iterdir()} == {"folder.parquet", "data.jsonl"}


def test_a_notebook_shows_it_and_frames_hold_it(model, tmp_path, capsys, monkeypatch):
    found = heedful.explain(str(model), TEXT, methods=["attention", "leave_one_out"])
    assert found._repr_html_().startswith('<div class="explained in-notebook">')
    assert list(found.to_dataframe().columns) == ["token", "attention", "leave_one_out"]
    assert found.to_html(tmp_path / "p.html") == tmp_path / "p.html"
    assert str(model) in (tmp_path / "p.html").read_text()
    found.show()
    assert "ATTENTION" in capsys.readouterr().out
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(RunError, match="pip install pandas"):
        found.to_dataframe()


def test_one_method_or_several_not_both(model):
    with pytest.raises(ConfigError, match="Give method or methods, not both"):
        heedful.explain(str(model), TEXT, method="attention", methods=["gradient"])
