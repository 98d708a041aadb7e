"""Lessons on several processes: the same models, in whatever order, whoever is killed."""

import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

import processes
from heedful.core.errors import ConfigError, ModelError, RunError
from heedful.pipeline.retrain.process_pool import Worker, cores, teach_all, teach_here
from heedful.pipeline.retrain.worker_input import open_room, write_room
from heedful.training.variants.variants import Adversary, Guided, Pace, Retrained
from schooling import school

SHORT = Pace(2, 2)
SOURCE = Adversary(0.01, "base", pace=SHORT)
LESSONS = (Retrained(1, pace=SHORT), SOURCE, Guided(1, "adversary", SOURCE, pace=SHORT))


def silent(*_):
    return None


def contents(here):
    return {
        str(lesson): {
            name: one.numpy().tobytes()
            for name, one in load_file(here.place(lesson) / "model.safetensors").items()
        }
        for lesson in LESSONS
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """All of them made in this process."""
    here = school(tmp_path_factory.mktemp("alone"))

    def teach(lesson, tell):
        here.teach(lesson)

    assert teach_all(LESSONS, [teach], silent) == {}
    return contents(here)


def test_two_processes_make_the_same_models(alone, tmp_path):
    here, told, said = school(tmp_path), [], []
    room = write_room(here, model="", choices={})
    workers = [Worker(room) for _ in range(2)]

    def listened(worker):
        def teach(lesson, tell):
            return worker(lesson, lambda words: (said.append((str(lesson), words)), tell(words)))

        return teach

    try:
        found = teach_all(
            LESSONS, [listened(one) for one in workers], lambda *one: told.append(one)
        )
    finally:
        for worker in workers:
            worker.end()
    assert found == {}
    assert contents(here) == alone
    assert told[-1] == (3, 3, "retraining")
    # what is shown is looked at a few times a second: what was said is asked of the workers
    assert {lesson for lesson, words in said if "epoch" in words} == {str(one) for one in LESSONS}


def test_the_room_on_disk_is_the_room(tmp_path):
    here = school(tmp_path)
    again = open_room(write_room(here, model="", choices={}))
    assert again.train.examples == here.train.examples
    assert again.dev.examples == here.dev.examples
    assert again.base.fingerprint() == here.base.fingerprint()
    assert [again.key(one) for one in LESSONS] == [here.key(one) for one in LESSONS]


def test_a_worker_that_is_killed_is_told_of_and_nothing_is_lost(tmp_path):
    here, whole = school(tmp_path / "killed"), school(tmp_path / "whole")
    lesson = Retrained(1, pace=Pace(20, 20))
    worker = Worker(write_room(here, model="", choices={}))

    def tell(words):
        if words.startswith("epoch 3"):
            worker.process.kill()

    with pytest.raises(RunError, match="signal 9"):
        worker(lesson, tell)
    worker.end()
    assert not here.done(lesson)
    for one in (here, whole):
        one.teach(lesson)
    assert here.taught(lesson).told["sittings"] == 2
    mine, other = (load_file(one.place(lesson) / "model.safetensors") for one in (here, whole))
    assert all(mine[name].equal(other[name]) for name in other)


def test_a_worker_ends_with_its_parent(tmp_path):
    room = write_room(school(tmp_path), model="", choices={})
    code = (
        "import sys; from pathlib import Path\n"
        "from heedful.pipeline.retrain.process_pool import Worker\n"
        "worker = Worker(Path(sys.argv[1])); print(worker.process.pid, flush=True)\n"
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
    def teach(lesson, tell):
        return "it cannot be done" if lesson == SOURCE else None

    assert teach_all(LESSONS, [teach], silent) == {
        SOURCE: "it cannot be done",
        LESSONS[2]: "it cannot be done",
    }


def test_what_was_made_before_counts_as_met():
    seen = []

    def teach(lesson, tell):
        seen.append(lesson)

    assert teach_all([LESSONS[2]], [teach], silent) == {}
    assert seen == [LESSONS[2]]


@pytest.mark.parametrize("error", [ConfigError("a lower rate"), KeyError("ours"), MemoryError()])
def test_an_error_in_one_ends_all_and_is_raised(error):
    def teach(lesson, tell):
        if lesson == SOURCE:
            raise error

    with pytest.raises(type(error)):
        teach_all([SOURCE, LESSONS[2]], [teach, teach], silent)


def test_a_failure_is_told_at_once_though_others_are_at_work():
    def teach(lesson, tell):
        if lesson == SOURCE:
            raise RunError("the worker is gone")
        time.sleep(3)

    began = time.monotonic()
    with pytest.raises(RunError, match="gone"):
        teach_all([SOURCE, LESSONS[0]], [teach, teach], silent)
    assert time.monotonic() - began < 2


def test_waiting_costs_nothing_whichever_thread_is_the_last_at_work():
    told = []

    def teach(lesson, tell):
        if lesson == LESSONS[0]:
            time.sleep(1.2)

    teach_all([SOURCE, LESSONS[0]], [teach, teach, teach], lambda *one: told.append(one))
    assert len(told) < 20


def test_here_an_interrupt_ends_the_teaching():
    seen = []

    def teach(lesson, tell):
        seen.append(lesson)
        tell("epoch 1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teach_here(LESSONS, teach, silent)
    assert seen == [LESSONS[0]]


def test_here_reasons_reach_all_that_need_the_lesson():
    def teach(lesson, tell):
        return "it cannot be done" if lesson == SOURCE else None

    found = teach_here(LESSONS, teach, silent)
    assert found == {SOURCE: "it cannot be done", LESSONS[2]: "it cannot be done"}


def test_another_model_in_the_place_of_the_base_is_refused(tmp_path):
    from dataclasses import replace

    here = replace(school(tmp_path), origin={"model": "another"})
    with pytest.raises(ModelError, match="another model"):
        open_room(write_room(here, model="", choices={}))


def test_cores_are_counted():
    assert cores() >= 1
