"""On how many threads torch computes: one by default, and what the user says where he says it."""

import json
import os
import subprocess
import sys

import pytest
import torch

import heedful
from heedful.core.process_pool import Worker
from heedful.models.recurrent.model_folder import save_model
from support import subjects

ROWS = [{"text": " ".join(subjects.WORDS[n : n + 4]), "label": f"class{n % 2}"} for n in range(4)]
SETTINGS = {"checks": ("permutation",), "resamples": 100, "instances_per_job": 2}
COUNT = "import torch; print(torch.get_num_threads())"


def said(*words, **setting):
    """What a new process prints, in an environment that says nothing of threads but this."""
    free = {key: one for key, one in os.environ.items() if not key.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**free, **setting},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    save_model(subjects.subject(), folder / "model")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder


@pytest.mark.parametrize("setting", [{}, {"OMP_NUM_THREADS": "3"}, {"MKL_NUM_THREADS": "2"}])
def test_a_command_computes_on_one_thread_unless_the_environment_says_how_many(
    setting, files, tmp_path
):
    words = ("audit", files / "model", files / "rows.jsonl", "--checks", "permutation", "--quick")
    said("-m", "heedful", *words, "--quiet", "--out", tmp_path / "run", **setting)
    found = json.loads((tmp_path / "run/manifest.json").read_text())["threads"]
    assert found == (int(said("-c", COUNT, **setting)) if setting else 1)


def test_importing_heedful_leaves_the_setting_alone():
    wanted = said("-c", COUNT)
    code = f"import heedful; heedful.load; heedful.audit; {COUNT}"
    assert said("-c", code) == wanted
    assert said("-c", f"import torch; torch.set_num_threads(3); {code}") == "3\n"


def test_a_command_called_from_python_computes_on_one_thread():
    code = "import torch; torch.set_num_threads(2)\nfrom heedful.cli.main import main\nimport sys\n"
    code += "sys.argv = ['heedful', 'list', 'checks']\ntry:\n    main()\nexcept SystemExit:\n    "
    assert said("-c", code + COUNT).splitlines()[-1] == "1"


def test_a_training_process_computes_on_one_thread(tmp_path, monkeypatch):
    (tmp_path / "counting_worker.py").write_text(
        "import torch\n"
        "def open_worker():\n"
        "    return lambda task, report_progress: str(torch.get_num_threads())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    worker = Worker("counting_worker", ())
    try:
        assert worker({}, print) == "1"
    finally:
        worker.end()


def test_the_manifest_says_on_how_many_threads_the_jobs_were_computed(tmp_path):
    """Also where the process that ends the run has another setting than those before."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run = heedful.audit(subjects.subject(), ROWS, out=tmp_path / "run", **SETTINGS)
        assert run.manifest["threads"] == 2
        last = sorted((tmp_path / "run/measurements").iterdir())[1]
        last.unlink()
        torch.set_num_threads(1)
        with pytest.warns(UserWarning, match="Missing or changed"):
            run = heedful.audit(subjects.subject(), ROWS, out=tmp_path / "run", **SETTINGS)
        assert run.manifest["threads"] == 2
    finally:
        torch.set_num_threads(before)
