"""Models in several threads do not hear each other; threads on one model wait for each other."""

import threading

import pytest
import torch

import tiny
from seams import batch, last_key, made, subject, uniform, untouched


def in_threads(*tasks):
    """Run the tasks at the same time; what each gives, errors included."""
    found = [None] * len(tasks)

    def run(number):
        try:
            found[number] = tasks[number]()
        except Exception as error:  # noqa: BLE001 - raised again where the test sees it
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (("bert", "bert"), False),
        (("bert", "bert"), True),
        (("deberta", "deberta"), True),
        (("bert", "deberta"), False),
    ],
)
def test_two_models_in_two_threads_do_not_hear_each_other(names, shared):
    models = [tiny.build(name, seed=seed) for seed, name in enumerate(names)]
    if shared:  # one config for both, as an ensemble may be made
        models[1] = type(models[0])(models[0].config).double().eval()
        tiny.enlarge(models[1])
    both = [made(model, name) for model, name in zip(models, names, strict=True)]
    rows = [batch(one) for one in both]
    edits = [uniform(names[0], rows[0]), last_key]
    wanted = [one.run(r, edit)[0] for one, r, edit in zip(both, rows, edits, strict=True)]
    before = [model.config._attn_implementation for model in models]
    meet = threading.Barrier(2, timeout=20)
    # who shares a config waits for the other; all others are inside at the same time
    wait = (lambda: None) if shared else meet.wait

    def task(number):
        def edit(call):
            wait()
            return edits[number](call)

        logits, recorder = both[number].run(rows[number], edit)
        if number == 0:
            wait()  # the other leaves last
        else:
            with both[1].access.patched() as recorder:
                wait()
                both[1].logits(rows[1])
        return logits, recorder.count

    found = in_threads(lambda: task(0), lambda: task(1))
    for (logits, count), answer in zip(found, wanted, strict=True):
        torch.testing.assert_close(logits, answer)
        assert count == 2
    assert [model.config._attn_implementation for model in models] == before


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_two_threads_on_one_model_wait_for_each_other(name):
    one = subject(name)
    rows = batch(one)
    inside, log = threading.Event(), []
    edits = {"first": uniform(name, rows), "second": last_key}
    wanted = {who: one.run(rows, edit)[0] for who, edit in edits.items()}

    def first():
        with one.access.patched(edits["first"]) as recorder:
            inside.set()
            waiting.wait(timeout=0.3)  # time enough for the other to come in, if it could
            logits = one.logits(rows)
            log.append("first leaves")
        return logits, recorder.count

    def second():
        inside.wait(timeout=20)
        with one.access.patched(edits["second"]) as recorder:
            log.append("second enters")
            waiting.set()
            return one.logits(rows), recorder.count

    waiting = threading.Event()
    found = in_threads(first, second)
    assert log == ["first leaves", "second enters"]
    for (logits, count), answer in zip(found, wanted.values(), strict=True):
        torch.testing.assert_close(logits, answer)
        assert count == 2


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_a_thread_outside_the_block_gets_the_models_own_answer(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        wanted = untouched(one.model, one, rows)
    opened, done = threading.Event(), threading.Event()

    def inside():
        with one.access.patched(last_key) as recorder:
            opened.set()
            done.wait(timeout=20)
        return recorder.count

    def outside():
        opened.wait(timeout=20)
        try:
            return untouched(one.model, one, rows)
        finally:
            done.set()

    count, logits = in_threads(inside, outside)
    assert count == 0
    torch.testing.assert_close(logits, wanted, rtol=1e-6, atol=1e-6)
