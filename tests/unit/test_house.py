"""What CONTRIBUTING.md says of the house holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.checks import checks

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/heedful"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MOST_MODULES = 14  # in a folder; the command line has one for each command


def sources():
    return sorted(SRC.rglob("*.py"))


def test_no_folder_is_too_full_to_look_through():
    folders = {path.parent for path in sources()} - {SRC / "cli"}
    counts = {str(one.relative_to(SRC)): len(list(one.glob("*.py"))) for one in folders}
    assert {name: n for name, n in counts.items() if n > MOST_MODULES} == {}


def test_the_private_dialect_of_old_does_not_come_back():
    words = re.compile(r"\b(School|Pupil|Sitting|Hearing|Outlook|Beside|Bearing|told)\b")
    texts = [path for path in SRC.rglob("*") if path.suffix in {".py", ".j2", ".js", ".css"}]
    assert len(texts) > 100
    found = {path.name for path in texts if words.search(path.read_text(encoding="utf-8"))}
    assert found == set()


def test_files_that_the_guide_names_exist():
    paths = re.findall(
        r"`((?:src|tests|docs|models|training|report|data|checks)/[\w./]+)`", CONTRIBUTING
    )
    known = [path for path in paths if not re.search(r"\b(test_)?x\b", path)]
    assert known
    for path in known:
        assert (ROOT / path).exists() or (SRC / path).exists(), path


@pytest.mark.parametrize("spec", checks.specs(), ids=lambda spec: spec.name)
def test_a_check_is_one_folder(spec):
    """Its code and its description lie side by side, and nobody else has to name it."""
    module, _, _ = spec.implementation.partition(":")
    folder = SRC.joinpath(*module.split(".")[1:-1])
    assert {"check.py", "spec.py"} <= {one.name for one in folder.glob("*.py")}


def test_descriptions_of_checks_import_no_torch():
    code = (
        "import sys; from heedful.checks import checks; specs = checks.specs();"
        "sys.exit(not specs or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# names of checks that are no ordinary words; the degree is that of `agreement`, and the shown texts
# have the attention that `adversarial` found
NAMED = ("mechanism", "erasure", "plausibility", "randomisation", "identifiability", "necessity")
NAMED += ("deception", "roar", "off_manifold")


@pytest.mark.parametrize("room", ["report", "comparison", "cli", "api", "pipeline"])
def test_rooms_around_the_checks_know_none_by_name(room):
    assert set(NAMED) < {spec.name for spec in checks.specs()}
    literal = re.compile(rf"[\"']({'|'.join(NAMED)})[\"']")
    found = {
        str(path.relative_to(SRC)): names
        for path in (SRC / room).rglob("*.py")
        if (names := set(literal.findall(path.read_text(encoding="utf-8"))))
    }
    assert found == {}
