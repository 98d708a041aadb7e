"""What a day of attacks found, each with the smallest command that failed before it was mended."""

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from attacks import run_folders
from attacks.guarded import guarded, refusal
from attacks.model_folders import Folder
from heedful.core.errors import ConfigError, DataError, HeedfulError
from heedful.core.files.folder_lock import lock_folder
from heedful.models.recurrent.model_folder import save_model
from heedful.pipeline.plan.plan import Plan
from support import subjects, tiny_models
from support.hostile_input import as_in_use, refused

as_in_use = pytest.fixture(autouse=True)(as_in_use)
ROOT = Path(__file__).parents[2]
ROWS = [
    {"text": " ".join(subjects.WORDS[n % 11 : n % 11 + 2 + n % 7]), "label": f"class{n % 2}"}
    for n in range(24)
]
SETTINGS = {"instances_per_job": 8, "resamples": 100}
TEXT = "a fine film"


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A model folder of ours."""
    folder = tmp_path_factory.mktemp("own") / "model"
    save_model(subjects.subject(), folder)
    return folder


@pytest.fixture(scope="module")
def sound_bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "model"
    tiny_models.build("bert").float().save_pretrained(folder)
    tiny_models.tokenizer("bert").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sound_gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2") / "model"
    tiny_models.build("gpt2").float().save_pretrained(folder)
    tiny_models.tokenizer("gpt2").save_pretrained(folder)
    return folder


@pytest.fixture
def bert(sound_bert, tmp_path):
    """A transformers folder, to be spoiled."""
    shutil.copytree(sound_bert, tmp_path / "model")
    return Folder(tmp_path / "model", tmp_path / "marker")


@pytest.fixture
def gpt2(sound_gpt2, tmp_path):
    shutil.copytree(sound_gpt2, tmp_path / "model")
    return Folder(tmp_path / "model", tmp_path / "marker")


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(ROWS))
    return path


def explain(model, *more, seconds=60.0):
    return guarded("explain", model.path, TEXT, "--methods", "attention", *more, seconds=seconds)


# 1. Kept files are known by content


@pytest.fixture(scope="module")
def finished(own, tmp_path_factory):
    """A finished run of three jobs, and the command that made it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "rows.jsonl").write_text(lines(ROWS))
    (folder / "plan.toml").write_text(
        'instances_per_job = 8\nresamples = 100\nchecks = ["permutation"]\n'
    )
    words = ("audit", own, folder / "rows.jsonl", "--plan", folder / "plan.toml", "--quiet")
    plan = Plan.from_toml(
        f'model = "{own}"\ndata = "{folder / "rows.jsonl"}"\n' + (folder / "plan.toml").read_text()
    )
    heedful.audit(str(own), str(folder / "rows.jsonl"), plan=plan, out=folder / "run")
    return folder / "run", words


@pytest.fixture
def damaged(finished, tmp_path):
    """A copy of the run."""
    shutil.copytree(finished[0], tmp_path / "run")
    return tmp_path / "run"


def first(run, kind):
    return sorted((run / kind).glob("*.parquet"))[0]


def drop_value(_, path):
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["value"]), path)


def alter_value(_, path):
    table = pq.ParquetFile(path).read()
    name = next(one for one in ("value", "words", "content") if one in table.column_names)
    place, kind = table.column_names.index(name), table.schema.field(name)
    cells = table[name].to_pylist()
    cells[0] = {"value": 0.123, "words": ["another"], "content": "another"}[name]
    pq.write_table(table.set_column(place, kind, pa.array(cells, kind.type)), path)


DAMAGE = {
    "text removed": ("texts", run_folders.remove),
    "text shortened": ("texts", run_folders.shorten),
    "text doubled": ("texts", run_folders.double_rows),
    "text altered": ("texts", alter_value),
    "text cut": ("texts", run_folders.truncate),
    "ids removed": ("text_ids", run_folders.remove),
    "ids shortened": ("text_ids", run_folders.shorten),
    "ids altered": ("text_ids", alter_value),
    "measurement removed": ("measurements", run_folders.remove),
    "measurement shortened": ("measurements", run_folders.shorten),
    "measurement altered": ("measurements", alter_value),
    "measurement without values": ("measurements", drop_value),
    "measurements swapped": ("measurements", run_folders.swap),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_is_damaged_is_measured_again_or_refused(run, finished, damaged, case):
    kind, spoil = DAMAGE[case]
    spoil(random.Random(1), first(damaged, kind))
    answer = run(*finished[1], "--out", damaged)
    if answer[0] == 0:
        assert run_folders.differs(damaged, run_folders.content(finished[0])) == ""
    else:
        refused(answer)


def test_the_errors_own_advice_leaves_no_hole(run, finished, damaged):
    path = first(damaged, "texts")
    os.truncate(path, path.stat().st_size // 2)
    (damaged / "verdict.json").unlink()
    answer = run(*finished[1], "--out", damaged)
    if answer[0]:
        assert "Remove that file" in refused(answer)
        path.unlink()
        assert run(*finished[1], "--out", damaged)[0] == 0
    assert run_folders.differs(damaged, run_folders.content(finished[0])) == ""


def test_verify_passes_a_sound_run(run, damaged):
    assert run("verify", damaged)[0] == 0


@pytest.mark.parametrize("case", DAMAGE)
def test_verify_names_what_is_damaged(run, damaged, case):
    kind, spoil = DAMAGE[case]
    path = first(damaged, kind)
    spoil(random.Random(1), path)
    code, out, err = run("verify", damaged)
    assert code == 1
    assert path.name in out + err


@pytest.mark.parametrize("name", ["verdict.json", "manifest.json", "plan.toml"])
def test_verify_names_changed_documents(run, damaged, name):
    text = (damaged / name).read_text()
    (damaged / name).write_text(re.sub(r"\d", lambda found: str(9 - int(found[0])), text, count=1))
    code, out, err = run("verify", damaged)
    assert code == 1
    assert name in out + err
    (damaged / name).unlink()
    code, out, err = run("verify", damaged)
    assert code == 1
    assert name in out + err


DOCUMENTS = {
    "plan that is no text": ("audit", "plan.toml", b"\xff\xfe"),
    "plan that is a folder": ("audit", "plan.toml", None),
    "summary too deep": ("audit", "measurements", b"[" * 100_000),
    "rows of a verdict that are no rows": ("report", "verdict.json", ("checks", 7)),
    "claims that are none": ("report", "verdict.json", ("claims", [])),
    "labels that are none": ("report", "manifest.json", ("labels", 7)),
    "checks that are none": ("report", "manifest.json", ("checks", "x")),
    "seconds that are none": ("report", "manifest.json", ("seconds", [[]])),
    "data without a name": ("compare", "manifest.json", ("data", {})),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_damaged_documents_end_in_one_line(run, finished, damaged, case):
    command, name, odd = DOCUMENTS[case]
    path = damaged / name
    if name == "measurements":
        path = first(damaged, name)
        table = pq.ParquetFile(path).read()
        pq.write_table(table.replace_schema_metadata({b"heedful": odd}), path)
    elif odd is None:
        path.unlink()
        path.mkdir()
    elif isinstance(odd, tuple):
        path.write_text(json.dumps(json.loads(path.read_text()) | dict([odd])))
    else:
        path.write_bytes(odd)
    words = {"audit": (*finished[1], "--out", damaged), "report": ("report", damaged, "--details")}
    words["compare"] = ("compare", finished[0], damaged, "--quiet")
    answer = run(*words[command])
    assert answer[0] == 0 or refused((answer[0], "", answer[2]))


# 2. No pickle, no escape


@pytest.mark.parametrize("name", ["w.bin", "../outside.safetensors", "sub/../model.bin"])
def test_an_index_names_plain_safetensors_of_the_folder_only(bert, name):
    weights = load_file(bert.path / "model.safetensors")
    (bert.path / "model.safetensors").rename(bert.path.parent / "outside.safetensors")
    torch.save(bert.payload(), bert.path / "w.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    bert.write("model.safetensors.index.json", json.dumps(index))
    assert re.search(r"w\.bin|outside|model\.bin", refusal(explain(bert)))
    assert not bert.marker.exists()


# 3. A model folder cannot stop the machine

SIZES = {
    "layers": {"num_hidden_layers": 10**9},
    "labels": {"num_labels": 10**7},
    "names of labels": {"id2label": {str(n): f"c{n}" for n in range(10**6)}},
    "no heads": {"num_attention_heads": 0},
    "negative heads": {"num_attention_heads": -4},
    "words": {"vocab_size": 10**9},
    "width": {"hidden_size": 2**40},
    "width as text": {"hidden_size": "32"},
    "width as a fraction": {"hidden_size": 32.5},
}


@pytest.mark.parametrize("case", SIZES)
def test_a_config_is_held_against_the_weights_first(bert, case):
    bert.set("config.json", **SIZES[case])
    assert "memory" not in refusal(explain(bert, seconds=30)).lower()


def test_an_own_network_is_held_against_its_weights_first(run, own, tmp_path):
    shutil.copytree(own, tmp_path / "model")
    settings = json.loads((tmp_path / "model/heedful.json").read_text())
    settings["shape"]["classes"] = 10**12
    (tmp_path / "model/heedful.json").write_text(json.dumps(settings))
    refused(run("explain", tmp_path / "model", "w1"))


def test_a_vocabulary_is_as_large_as_its_vectors(run, own, tmp_path):
    shutil.copytree(own, tmp_path / "model")
    words = json.loads((tmp_path / "model/vocabulary.json").read_text())
    words += [f"more{n}" for n in range(100_000)]
    (tmp_path / "model/vocabulary.json").write_text(json.dumps(words))
    refused(run("explain", tmp_path / "model", "w1"))


@pytest.mark.parametrize("kind", ["doubles", "prepends", "never ends", "vocabulary"])
def test_a_tokenizer_is_bounded(bert, kind):
    known = bert.json("tokenizer.json")
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    regex = {"type": "Replace", "pattern": {"Regex": "([a-z ]+)+!"}, "content": "x"}
    if kind == "doubles":
        known["normalizer"] = {"type": "Sequence", "normalizers": [double] * 36}
    elif kind == "prepends":
        known["normalizer"] = {"type": "Prepend", "prepend": "a" * 3 * 10**7}
    elif kind == "never ends":
        known["normalizer"] = regex
    else:
        known["model"]["vocab"] |= {f"x{number}": 99 + number for number in range(2_000_000)}
    bert.write("tokenizer.json", json.dumps(known))
    refusal(explain(bert, seconds=30))


TEMPLATES = {
    "loop": "{% for i in range(10**9) %}x{% endfor %}",
    "loops in loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    ),
    "long": "{{ 'a' * 10**10 }}",
    "padded": "{{ '%999999999s' % 'a' }}",
    "huge power": "{{ (10 ** 10 ** 9) % 7 }}",
    "looks around": "{{ messages.__class__.__mro__ }}",
    "unknown": "{{ nobody.has.this }}",
    "divides": "{{ 1 // 0 }}",
    "unfinished": "{% for m in messages %}",
    "several lines": "{{ raise_exception('a\nb') }}",
    "no text": 7,
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_a_chat_template_is_bounded_and_its_faults_are_one_line(gpt2, case):
    gpt2.set("tokenizer_config.json", chat_template=TEMPLATES[case])
    chat = json.dumps([{"role": "user", "content": TEXT}])
    words = ("--subject", "chat=true", "--methods", "attention")
    refusal(guarded("explain", gpt2.path, chat, *words, seconds=30))


# 4. One net around loading


@pytest.mark.parametrize(("kind", "said"), [("nan", "NaN|finite"), ("complex", "complex")])
def test_weights_that_are_no_numbers_are_named(bert, kind, said):
    weights = load_file(bert.path / "model.safetensors")
    name = "bert.encoder.layer.0.output.dense.weight"
    one = weights[name]
    weights[name] = one * float("nan") if kind == "nan" else one.to(torch.complex64)
    save_file(weights, bert.path / "model.safetensors", metadata={"format": "pt"})
    told = refusal(explain(bert))
    assert re.search(said, told)
    assert name in told


NAMES = {
    "the same": ({"id2label": {"0": "same", "1": "same"}, "label2id": {"same": 0}}, "same"),
    "null": ({"id2label": None}, "id2label"),
    "a gap": ({"id2label": {"0": "a", "2": "b"}, "label2id": {"a": 0, "b": 2}}, "id2label|class"),
    "a list": ({"id2label": ["a", "b"]}, "id2label"),
    "no number": ({"id2label": {"0": "a", "x": "b"}}, "id2label"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_classes_that_are_none(bert, case):
    values, said = NAMES[case]
    bert.set("config.json", **values)
    assert re.search(said, refusal(explain(bert)))


FOREIGN = {
    "TypeError": ("config.json", {"max_position_embeddings": []}),
    "AttributeError": ("config.json", {"id2label": "ab"}),
    "an activation": ("config.json", {"hidden_act": 7}),
    "a chain of lines": ("config.json", {"layer_norm_eps": "x"}),
    "a special token": ("tokenizer_config.json", {"unk_token": {"a": 1}}),
    "no name of a class": ("tokenizer_config.json", {"tokenizer_class": 7}),
    "the longest text": ("tokenizer_config.json", {"model_max_length": "x"}),
    "no longest text": ("tokenizer_config.json", {"model_max_length": None}),
    "a surrogate": ("tokenizer.json", {"version": "\ud800"}),
    "no model": ("tokenizer.json", {"model": None}),
    "tokens": ("tokenizer_config.json", {"added_tokens_decoder": {"x": 7}}),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_errors_of_other_libraries_become_one_line(bert, case):
    name, values = FOREIGN[case]
    bert.set(name, **values)
    answer = explain(bert)
    assert answer.code == 0 or refusal(answer)


def test_memory_that_runs_out_is_told_as_such(run, own, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(torch.nn.Module, "load_state_dict", full)
    assert "memory" in refused(run("explain", own, "w1"))


# 5. `train` takes the run folder's lock


def test_a_second_training_into_a_folder_is_refused(run, rows, tmp_path):
    words = ("train", rows, "--encoder", "average", "--epochs", 1, "--quiet")
    with lock_folder(tmp_path / "model"):
        assert "is in use" in refused(run(*words, "--out", tmp_path / "model"))
    assert run(*words, "--out", tmp_path / "model")[0] == 0


# 6. Bounds on data


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/null", "sparse"])
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_only_regular_files_are_data(own, tmp_path, kind, ending):
    path = tmp_path / f"rows{ending}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**40)
    else:
        path.symlink_to(kind)
    words = ("--out", tmp_path / "scores.parquet", "--methods", "attention")
    answer = guarded("explain", own, "--data", path, *words, seconds=15)
    assert "not a regular file" in refusal(answer)


def test_a_header_of_200_000_columns(own, tmp_path):
    names = ",".join(["text", "label", *(f"c{n}" for n in range(200_000))])
    (tmp_path / "rows.csv").write_text(f"{names}\nw1,class0\n")
    words = ("--data", tmp_path / "rows.csv", "--out", tmp_path / "scores.parquet")
    assert "column" in refusal(guarded("explain", own, *words, seconds=15))


def test_a_line_of_600_megabytes_in_600_kilobytes(own, tmp_path):
    many = gzip.compress(b"a" * 10**7, 6) * 60  # members follow each other
    whole = gzip.compress(b'{"text": "') + many + gzip.compress(b'", "label": "class0"}\n')
    (tmp_path / "rows.jsonl.gz").write_bytes(whole)
    words = ("--data", tmp_path / "rows.jsonl.gz", "--out", tmp_path / "scores.parquet")
    assert "line" in refusal(guarded("explain", own, *words, seconds=30))


def test_a_dictionary_of_one_text_that_all_rows_share(own, tmp_path):
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["w" * 10**7]))
    pq.write_table(pa.table({"text": text, "label": ["class0"] * 2000}), tmp_path / "rows.parquet")
    words = ("--data", tmp_path / "rows.parquet", "--out", tmp_path / "scores.parquet")
    refusal(guarded("explain", own, *words, "--methods", "attention", seconds=30))


@pytest.mark.parametrize("number", [2**64, 10**30, 10**400])
def test_scores_beyond_64_bits_are_one_bad_row(number):
    odd = {"text": "w1", "label": "class0", "word_scores": [number]}
    data = heedful.read([*ROWS * 10, odd])
    assert data.bad.total == 1
    assert "word_scores" in str(data.bad)


def test_bad_rows_are_too_many_before_all_are_read(tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}\n" + '{"text": 7, "label": 1}\n' * 30_000)
    with pytest.raises(DataError) as caught:
        heedful.read(tmp_path / "rows.jsonl")
    assert "30001" not in str(caught.value)


def test_keys_that_are_there_twice_are_reported(tmp_path):
    twice = '{"text": "w1", "text": "w2", "label": "class0"}\n'
    (tmp_path / "rows.jsonl").write_text(lines(ROWS * 10) + twice)
    assert re.search(
        r"1 [^(]*(key|twice|doubl|duplic)", str(heedful.read(tmp_path / "rows.jsonl").bad)
    )


def test_equal_splits_are_reported(run, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "dev", "test"):
        (data / f"{split}.jsonl").write_text(lines(ROWS))
    words = ("train", data, "--encoder", "average", "--epochs", 1, "--out", tmp_path / "model")
    code, out, err = run(*words)
    assert code in (0, 2)
    told = (out + err).replace(str(tmp_path), "")  # whose name says what it is of
    assert re.search(r"(dev|train).*(same|equal)|(same|equal).*(dev|train)", told)


SIZES_OF_PLANS = {
    "resamples": {"resamples": 10**12},
    "draws": {"checks": ("permutation",), "settings": {"permutation": {"draws": 10**12}}},
    "shuffles": {"checks": ("agreement",), "settings": {"agreement": {"shuffles": 10**12}}},
    "steps": {"checks": ("adversarial",), "settings": {"adversarial": {"steps": 10**12}}},
    "candidates": {"checks": ("adversarial",), "settings": {"adversarial": {"candidates": 10**12}}},
    "samples": {
        "checks": ("agreement",),
        "settings": {"agreement": {"methods": ("lime",)}},
        "methods": {"lime": {"samples": 10**12}},
    },
}


@pytest.mark.parametrize("case", SIZES_OF_PLANS)
def test_plans_that_no_machine_ends(case):
    with pytest.raises(ConfigError, match=rf"{case}.*\d"):
        Plan("m", "d", **SIZES_OF_PLANS[case])


def test_a_key_of_ten_thousand_parts(own, rows, tmp_path):
    (tmp_path / "plan.toml").write_text(f"[{'.'.join(['settings'] * 100_000)}]\nx = 1")
    words = ("--plan", tmp_path / "plan.toml", "--out", tmp_path / "run")
    refusal(guarded("audit", own, rows, *words, seconds=15))


# 7. Outputs


@pytest.mark.parametrize("name", ["verdict.json", "manifest.json", "plan.toml", "measurements/x"])
@pytest.mark.parametrize("option", ["--html", "--markdown", "--card"])
def test_a_report_never_goes_over_the_runs_own_records(run, finished, damaged, name, option):
    target = damaged / name if "/" not in name else first(damaged, "measurements")
    before = target.read_bytes()
    refused(run("report", damaged, option, target))
    assert target.read_bytes() == before


@pytest.mark.parametrize("option", ["--html", "--csv", "--markdown"])
def test_a_comparison_never_goes_over_the_records_of_a_run(run, finished, damaged, option):
    before = (damaged / "verdict.json").read_bytes()
    refused(run("compare", finished[0], damaged, "--quiet", option, damaged / "verdict.json"))
    assert (damaged / "verdict.json").read_bytes() == before


def test_a_page_never_goes_over_what_is_not_ours(run, own, rows, tmp_path):
    refused(run("explain", own, "w1", "--methods", "attention", "--html", rows))
    assert rows.read_text() == lines(ROWS)
    os.mkfifo(tmp_path / "pipe.html")
    words = ("explain", own, "w1", "--methods", "attention", "--html", tmp_path / "pipe.html")
    assert "regular file" in refused(run(*words))


def test_explanations_never_go_over_their_own_data(own, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    before = path.read_bytes()
    with pytest.raises(HeedfulError, match=r"rows\.parquet"):
        heedful.explain_all(str(own), path, out=path, methods="attention", overwrite=True)
    assert path.read_bytes() == before


def test_a_home_is_expanded_for_outputs_too(run, own, rows, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    shutil.copy(rows, tmp_path / "home/rows.jsonl")
    words = ("explain", own, "--data", "~/rows.jsonl", "--methods", "attention", "--quiet")
    assert run(*words, "--out", "~/scores.parquet")[0] == 0
    assert (tmp_path / "home/scores.parquet").is_file()
    assert not (tmp_path / "~").exists()


def test_a_home_is_expanded_once(tmp_path, monkeypatch):
    """A folder whose name is a tilde is a folder like any other."""
    (tmp_path / "~").mkdir()
    (tmp_path / "~/rows.jsonl").write_text(lines(ROWS))
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    assert len(heedful.read("./~/rows.jsonl")) == len(ROWS)
    assert len(heedful.read(Path("./~/rows.jsonl"))) == len(ROWS)


KILLED_BEFORE_THE_NAME = """
import os, signal, sys
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from heedful.cli.main import main
main()
"""


def test_the_draft_of_a_killed_explain_goes(run, own, rows, tmp_path):
    (tmp_path / "out").mkdir()
    words = ("explain", own, "--data", rows, "--out", tmp_path / "out/scores.parquet")
    words = tuple(map(str, (*words, "--methods", "attention", "--quiet")))
    call = [sys.executable, "-c", KILLED_BEFORE_THE_NAME, *words]
    own_path = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(call, check=False, env=own_path).returncode == -signal.SIGKILL
    assert list((tmp_path / "out").iterdir())
    assert run(*words)[0] == 0
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["scores.parquet"]


# 8. Random draws are keyed by the text's content

FEW = {
    "permutation": {"permutation": {"draws": 5}},
    "adversarial": {"adversarial": {"steps": 20}},
    "influence": {"influence": {"methods": ("attention",), "costly_texts": 1000}},
    "erasure": {},
}
DRAWN = ROWS[:8]


def measured(rows, check):
    """The values of each text under every key of a check; of copies, those of the first."""
    settings = {**SETTINGS, "settings": FEW[check]} if FEW[check] else SETTINGS
    found = heedful.audit(subjects.subject(), rows, checks=(check,), **settings).to_dataframe()
    keys = ["measure", "method", "layer", "head", "seed", "setting"]
    found = found[(found["instance"] >= 0) & found["value"].notna()]
    values = {}
    for row in found.to_dict("records"):
        key = tuple(None if row[one] != row[one] else row[one] for one in keys)
        values.setdefault(rows[row["instance"]]["text"], {}).setdefault(key, []).append(
            row["value"]
        )
    return values


@pytest.mark.parametrize("check", FEW)
@pytest.mark.parametrize("change", ["order", "subset"])
def test_a_text_draws_the_same_wherever_it_stands(check, change):
    texts = {row["text"]: row for row in DRAWN}
    plain = list(texts.values())
    other = plain[::-1] if change == "order" else plain[3:6]
    here, there = measured(plain, check), measured(other, check)
    close = 1e-3 if check == "adversarial" else 1e-6
    assert there
    for text, values in there.items():
        assert values.keys() == here[text].keys()
        for key, one in values.items():
            assert one == pytest.approx(here[text][key], abs=close, nan_ok=True), (text, key)


@pytest.mark.parametrize("check", FEW)
def test_copies_draw_alike(check):
    copies = [DRAWN[0], DRAWN[3], DRAWN[0], DRAWN[5], DRAWN[0]]
    close = 1e-3 if check == "adversarial" else 1e-6
    for key, values in measured(copies, check)[DRAWN[0]["text"]].items():
        assert np.ptp(values) <= close, key


METHODS = ("random", "lime", "kernel_shap", "smoothgrad")
LONG = [
    {"text": " ".join(subjects.WORDS[n : n + 14 + n]), "label": f"class{n % 2}"} for n in range(6)
]  # so long that methods draw coalitions of words, and do not take all


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_draw_do_so_by_content(method, tmp_path):
    def scores(rows, name):
        out = tmp_path / f"{name}.parquet"
        heedful.explain_all(subjects.subject(), rows, out=out, methods=method)
        table = pq.ParquetFile(out).read().to_pylist()
        return {rows[one["instance"]]["text"]: one["scores"] for one in table}

    here, there = scores(LONG, "here"), scores(LONG[::-1], "there")
    for text, values in here.items():
        assert there[text] == pytest.approx(values, abs=1e-6)


# 9. What is promised


def test_a_page_says_what_is_promised_and_how_to_report():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for word in ("run folder", "model", "pickle", "report", "not promised|no promise|does not"):
        assert re.search(word, text, re.IGNORECASE), word
