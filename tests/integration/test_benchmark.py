"""`heedful benchmark`: the table, the JSON, and the one clear line when the request is wrong."""

import json
import re
from pathlib import Path

import pytest

from support import influence_kinds as tiny


@pytest.fixture(autouse=True)
def tiny_kinds(monkeypatch):
    tiny.register(monkeypatch)


def test_the_table_has_a_line_for_each_method_best_first(run):
    code, out, err = run("benchmark", "attention", "random", "effective_attention", "rollout")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "3 planted kinds × 20 texts, seed 0"
    assert [line.split()[0] for line in lines[2:5]] == [
        "effective_attention",
        "attention",
        "random",
    ]
    assert lines[3].split()[-1] == "3/3"
    assert "no method and no deletion is the yardstick" in " ".join(out.split())
    assert "rollout refused 60 texts, 3 whole kinds: rollout combines" in " ".join(out.split())


def test_json_goes_to_stdout_alone(run):
    code, out, err = run(
        *("benchmark", "attention", "--json", "--texts", "3", "--seed", "7", "--kinds", "plain")
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["seed"], found["texts_per_kind"]) == (7, 3)
    assert list(found["kinds"]) == ["plain-right", "plain-wrong"]
    attention = found["methods"]["attention"]
    assert attention["attention_right"]["top_set"]["value"] == 1.0
    assert attention["served"] == {"kinds": 2, "texts": 6}
    assert attention["cost"]["passes"] > 0


def test_quiet_prints_nothing(run):
    assert run("benchmark", "attention", "--texts", "1", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("atention",), "No method is named 'atention'. Did you mean 'attention'?"),
        (("--kinds", "mixd"), "No planted kind or family is named 'mixd'. Did you mean 'mixed'?"),
        (("--kinds", ""), "No kinds were given; leave kinds out to use all of them."),
        (("--texts", "0"), "Invalid value for '--texts'"),
    ],
)
def test_wrong_requests_get_one_line_and_exit_2(run, words, message):
    code, out, err = run("benchmark", *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_a_narrow_terminal_shows_every_figure():
    from io import StringIO

    from rich.console import Console

    from heedful.planted import score_methods
    from heedful.planted.scoring.table import print_benchmark

    shown = StringIO()
    console = Console(file=shown, width=80, force_terminal=True, color_system=None)
    print_benchmark(score_methods(["attention"], texts=2), console=console)
    lines = shown.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in shown.getvalue()
    assert any(line.startswith("attention") and "3/3" in line for line in lines)


def test_the_page_is_written_from_the_json(run, tmp_path, capfd, monkeypatch):
    from benchmarks import benchmark_page

    _, out, _ = run("benchmark", "attention", "random", "rollout", "--json")
    ours, peers = tmp_path / "ours.json", tmp_path / "peers.json"
    ours.write_text(out)
    peers.write_text(json.dumps({"libraries": {"inseq": "not there: why"}, **json.loads(out)}))
    monkeypatch.setattr("sys.argv", ["benchmark_page", str(ours), str(peers)])
    benchmark_page.main()
    page = capfd.readouterr().out
    lines = page.splitlines()
    head = next(line for line in lines if line.startswith("| method"))
    row = next(line for line in lines if line.startswith("| `attention`"))
    assert head.count("|") == row.count("|")
    assert (
        "3 kinds of version 3 (1 where attention ranks words rightly, 1 wrongly, 1 mixed)" in page
    )
    assert lines[lines.index("| method | plain | mixed |") + 2].startswith("| `attention` | 0.5")
    assert "- `rollout`: 60 texts. rollout combines" in page
    assert "- inseq: not there: why" in page


@pytest.mark.parametrize(
    ("page", "count", "printed"),
    [("docs/benchmark.md", 2, "last word"), ("docs/planted.md", 1, "plain-right")],
)
def test_the_examples_of_the_pages_run(page, count, printed, capfd):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    chosen = [one for one in blocks if "score_methods" in one or "influence_cases" in one]
    assert len(chosen) == count
    space = {}
    for block in chosen:
        exec(compile(block, page, "exec"), space)
    assert printed in capfd.readouterr().out
