"""What people import and script against, and what it costs to start."""

import subprocess
import sys
from types import ModuleType

import pytest

import heedful

START = 0.5  # CPU seconds


def test_surface_is_sorted_and_complete():
    names = [n for n in dir(heedful) if n[0] != "_"]
    public = [n for n in names if not isinstance(getattr(heedful, n), ModuleType)]
    assert heedful.__all__ == sorted(public, key=str.casefold)


def test_promised_names_are_there():
    promised = {
        "audit",
        "explain",
        "load",
        "read",
        "Plan",
        "Verdict",
        "Subject",
        "HeedfulError",
        "compare",
    }
    assert promised <= set(heedful.__all__)


def test_planted_benchmark_is_a_public_room_loaded_on_first_use():
    code = (
        "import sys, heedful; assert 'heedful.planted' not in sys.modules; "
        "heedful.planted.cases(0, 1); assert 'planted' in dir(heedful)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    planted = heedful.planted
    assert all(hasattr(planted, name) for name in planted.__all__)
    assert set(planted.truths()) == {*planted.KINDS, *planted.ASKED_KINDS, *planted.TRAINED_KINDS}


def test_audit_is_a_function_whatever_was_imported_before():
    code = (
        "import heedful, heedful.pipeline.plan.plan; heedful.Plan; assert callable(heedful.audit)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        heedful.nothing  # noqa: B018


@pytest.mark.parametrize(
    "work", ["import heedful", "from heedful.cli.main import app; app(['--help'])"]
)
def test_starting_costs_little_and_loads_no_torch(work):
    code = (
        f"import time, sys, atexit\n"
        f"try:\n    {work}\nexcept SystemExit: pass\n"
        f"print('CPU', time.process_time(), 'torch' in sys.modules)"
    )
    best = min(_start(code) for _ in range(3))  # other work on the machine only adds
    assert best < START


def _start(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    _, seconds, torch_loaded = done.stdout.splitlines()[-1].split()
    assert torch_loaded == "False"
    return float(seconds)
