"""Lessons on several processes: the same models, in whatever order, whoever is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from heedful.core.errors import ConfigError, ModelError, RunError
from heedful.core.process_pool import Worker, available_cores, run_tasks, run_tasks_here
from heedful.pipeline.retrain.worker import read_worker_input, write_worker_input
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.variants.variants import (
    AdversaryVariant,
    GuidedVariant,
    RetrainedVariant,
    variant_to_dict,
)
from support import processes
from support.retraining import variant_store

SHORT = EarlyStopping(2, 2)
SOURCE = AdversaryVariant(0.01, "base", pace=SHORT)
LESSONS = (
    RetrainedVariant(1, pace=SHORT),
    SOURCE,
    GuidedVariant(1, "adversary", SOURCE, pace=SHORT),
)


MODULE = "heedful.pipeline.retrain.worker"


def silent(*_):
    return None


def train_in_workers(variants, runners, progress):
    return run_tasks(variants, runners, progress, needs=lambda one: one.needs, title="retraining")


def train_in_process(variants, runner, progress):
    return run_tasks_here(variants, runner, progress, needs=lambda one: one.needs, title="here")


def contents(here):
    return {
        str(variant): {
            name: one.numpy().tobytes()
            for name, one in load_file(here.variant_folder(variant) / "model.safetensors").items()
        }
        for variant in LESSONS
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """All of them made in this process."""
    here = variant_store(tmp_path_factory.mktemp("alone"))

    def train_variant(variant, tell):
        here.train_variant(variant)

    assert train_in_workers(LESSONS, [train_variant], silent) == {}
    return contents(here)


def test_two_processes_make_the_same_models(alone, tmp_path):
    here, told, said = variant_store(tmp_path), [], []
    room = write_worker_input(here, model="", choices={})
    workers = [Worker(MODULE, [str(room)]) for _ in range(2)]

    def listened(worker):
        def train_variant(variant, tell):
            return worker(
                variant_to_dict(variant),
                lambda words: (said.append((str(variant), words)), tell(words)),
            )

        return train_variant

    try:
        found = train_in_workers(
            LESSONS, [listened(one) for one in workers], lambda *one: told.append(one)
        )
    finally:
        for worker in workers:
            worker.end()
    assert found == {}
    assert contents(here) == alone
    assert told[-1] == (3, 3, "retraining")
    # what is shown is looked at a few times a second: what was said is asked of the workers
    assert {variant for variant, words in said if "epoch" in words} == {str(one) for one in LESSONS}


def test_the_room_on_disk_is_the_room(tmp_path):
    here = variant_store(tmp_path)
    again = read_worker_input(write_worker_input(here, model="", choices={}))
    assert again.train.examples == here.train.examples
    assert again.dev.examples == here.dev.examples
    assert again.base.fingerprint() == here.base.fingerprint()
    assert [again.key(one) for one in LESSONS] == [here.key(one) for one in LESSONS]


def test_a_worker_that_is_killed_is_told_of_and_nothing_is_lost(tmp_path):
    here, whole = variant_store(tmp_path / "killed"), variant_store(tmp_path / "whole")
    variant = RetrainedVariant(1, pace=EarlyStopping(20, 20))
    worker = Worker(MODULE, [str(write_worker_input(here, model="", choices={}))])

    def tell(words):
        if words.startswith("epoch 3"):
            worker.process.kill()

    with pytest.raises(RunError, match="signal 9"):
        worker(variant_to_dict(variant), tell)
    worker.end()
    assert not here.done(variant)
    for one in (here, whole):
        one.train_variant(variant)
    assert here.trained(variant).record["sittings"] == 2
    mine, other = (
        load_file(one.variant_folder(variant) / "model.safetensors") for one in (here, whole)
    )
    assert all(mine[name].equal(other[name]) for name in other)


def test_a_worker_ends_with_its_parent(tmp_path):
    room = write_worker_input(variant_store(tmp_path), model="", choices={})
    code = (
        "import sys; from heedful.core.process_pool import Worker\n"
        f"worker = Worker({MODULE!r}, [sys.argv[1]]); print(worker.process.pid, flush=True)\n"
        "import time; time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(room)], stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert processes.gone(child), "the worker lives on"


def test_reasons_reach_all_that_need_the_lesson():
    def train_variant(variant, tell):
        return "it cannot be done" if variant == SOURCE else None

    assert train_in_workers(LESSONS, [train_variant], silent) == {
        SOURCE: "it cannot be done",
        LESSONS[2]: "it cannot be done",
    }


def test_what_was_made_before_counts_as_met():
    seen = []

    def train_variant(variant, tell):
        seen.append(variant)

    assert train_in_workers([LESSONS[2]], [train_variant], silent) == {}
    assert seen == [LESSONS[2]]


@pytest.mark.parametrize("error", [ConfigError("a lower rate"), KeyError("ours"), MemoryError()])
def test_an_error_in_one_ends_all_and_is_raised(error):
    def train_variant(variant, tell):
        if variant == SOURCE:
            raise error

    with pytest.raises(type(error)):
        train_in_workers([SOURCE, LESSONS[2]], [train_variant, train_variant], silent)


def test_a_failure_is_told_at_once_though_others_are_at_work():
    def train_variant(variant, tell):
        if variant == SOURCE:
            raise RunError("the worker is gone")
        time.sleep(3)

    began = time.monotonic()
    with pytest.raises(RunError, match="gone"):
        train_in_workers([SOURCE, LESSONS[0]], [train_variant, train_variant], silent)
    assert time.monotonic() - began < 2


def test_waiting_costs_nothing_whichever_thread_is_the_last_at_work():
    told = []

    def train_variant(variant, tell):
        if variant == LESSONS[0]:
            time.sleep(1.2)

    train_in_workers(
        [SOURCE, LESSONS[0]],
        [train_variant, train_variant, train_variant],
        lambda *one: told.append(one),
    )
    assert len(told) < 20


def test_here_an_interrupt_ends_the_teaching():
    seen = []

    def train_variant(variant, tell):
        seen.append(variant)
        tell("epoch 1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_in_process(LESSONS, train_variant, silent)
    assert seen == [LESSONS[0]]


def test_here_reasons_reach_all_that_need_the_lesson():
    def train_variant(variant, tell):
        return "it cannot be done" if variant == SOURCE else None

    found = train_in_process(LESSONS, train_variant, silent)
    assert found == {SOURCE: "it cannot be done", LESSONS[2]: "it cannot be done"}


def test_another_model_in_the_place_of_the_base_is_refused(tmp_path):
    from dataclasses import replace

    here = replace(variant_store(tmp_path), origin={"model": "another"})
    with pytest.raises(ModelError, match="another model"):
        read_worker_input(write_worker_input(here, model="", choices={}))


LOUD = """
import ctypes, os

def loud():
    os.write(1, b"straight to the descriptor\\n")
    print("from Python", flush=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"from C")
    libc.fflush(None)

loud()

def open_worker(word):
    def run(task, report):
        loud()
        report(word)
        return task["answer"]
    return run
"""


@pytest.mark.skipif(os.name != "posix", reason="loads the C library of the process")
def test_what_libraries_print_is_no_reply(tmp_path, monkeypatch):
    (tmp_path / "loud.py").write_text(LOUD)
    paths = str(tmp_path), os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    worker, heard = Worker("loud", ["epoch 1"], log=tmp_path / "log.txt"), []
    try:
        assert worker({"answer": None}, heard.append) is None
        assert worker({"answer": "it cannot be done"}, heard.append) == "it cannot be done"
    finally:
        worker.end()
    assert heard == ["epoch 1"] * 2
    log = (tmp_path / "log.txt").read_text()
    for words in ("straight to the descriptor", "from Python", "from C"):
        assert log.count(words) == 3  # at the import and in each task


@pytest.mark.parametrize("line", ["hello from C", "", "3", "{}", '["told"]', "\ufffd{"])
def test_a_line_that_is_no_reply_is_named(line):
    worker = object.__new__(Worker)
    code = f"input(); print(ascii({line!r})[1:-1], flush=True); input()"
    worker.process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        with pytest.raises(RunError, match=r"where its reply was expected.*--workers 1"):
            worker({}, silent)
    finally:
        worker.end()


def test_cores_are_counted():
    assert available_cores() >= 1
