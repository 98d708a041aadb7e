"""What the documentation shows must run as shown."""

import re
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


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_check_and_measure_is_documented():
    from heedful.checks import checks

    text = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    for name in checks:
        assert f"`{name}`" in text
        one = checks.build(name)
        for measure in (*one.measures, *one.of_heads):
            assert f"`{measure}`" in text or measure.endswith("_bh")


def test_the_readme_names_commands_and_options_that_exist():
    import subprocess
    import sys

    lines = [
        line.removeprefix("$ heedful ").split("#")[0].split()
        for block in blocks("README.md", "console")
        for line in block.splitlines()
        if line.startswith("$ heedful ")
    ]
    assert len(lines) >= 4
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
