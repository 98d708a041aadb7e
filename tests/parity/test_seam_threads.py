"""Models in several threads do not hear each other; threads on one model wait for each other."""

import sys
import threading
import time

import pytest
import torch

from support import tiny_models
from support.attention_families import TEXTS, batch, last_key, made, subject, uniform, untouched


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
    models = [tiny_models.build(name, seed=seed) for seed, name in enumerate(names)]
    if shared:  # one config for both, as an ensemble may be made
        models[1] = type(models[0])(models[0].config).double().eval()
        tiny_models.enlarge(models[1])
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


HOLDS_PADDING = ("[PAD] film [PAD]", "it was [PAD] the best of all [PAD]", "so [PAD]")
CALLS = 40


def often(call, rows):
    """Call it many times, on each in turn; what it gave each time."""
    return lambda: [call(rows[number % len(rows)]) for number in range(CALLS)]


def in_two_threads_as_in_one(call, first, second, close):
    """Two threads that call the same at the same time get what one alone gets."""
    wanted = [[call(one) for one in rows] for rows in (first, second)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change as often as they can
    try:
        found = in_threads(often(call, first), often(call, second))
    finally:
        sys.setswitchinterval(before)
    for given, alone, rows in zip(found, wanted, (first, second), strict=True):
        for number, logits in enumerate(given):
            torch.testing.assert_close(logits, alone[number % len(rows)], **close)


def no_grad(call):
    def without(rows):
        with torch.no_grad():
            return call(rows)

    return without


def embedded(one, rows):
    """Vectors that are not the model's own."""
    return one.embed(rows) * 1.5 + 0.25


def passes(one):
    """Every way in which the model of a subject is run."""
    return {
        "logits": one.logits,
        "outputs": one.run_logits,
        "outputs of vectors": lambda rows: one.run_logits(rows, embedded(one, rows)),
        "embed": one.embed,
        "run": lambda rows: one.run(rows)[0],
        "run of vectors": lambda rows: one.run(rows, embedded=embedded(one, rows))[0],
        "read_states": lambda rows: torch.cat([r.flatten() for r in one.read_states(rows)[1]]),
        "read_states, logits": lambda rows: one.read_states(rows)[0],
    }


def decoded(one, rows):
    forward = one.forward(rows)
    return one.decoder(rows, forward)(forward.rows.flip(-2))


@pytest.mark.parametrize("way", passes(subject("gpt2")))
@pytest.mark.parametrize("name", ["gpt2-classifier", "gpt2", "bert"])
def test_two_threads_on_one_model_get_what_one_gets(name, way):
    one, close = subject(name), tiny_models.FAMILIES[name].close
    own = one.model.config.pad_token_id
    call = no_grad(passes(one)[way])
    first = [batch(one, HOLDS_PADDING), batch(one, HOLDS_PADDING[:1])]
    second = [batch(one), batch(one, ("it was [PAD] so fine",))]
    try:
        in_two_threads_as_in_one(call, first, second, close)
        assert one.model.config.pad_token_id == own
    finally:
        one.model.config.pad_token_id = own  # other tests share the model


@pytest.mark.parametrize("name", ["gpt2", "bert"])
@pytest.mark.parametrize(
    "look",
    [
        lambda one, rows, forward: one.decoder(rows, forward)(forward.rows.flip(-2)),
        lambda one, rows, _: torch.stack(one.contribution_norms(rows)),
        lambda one, rows, _: torch.stack(one.value_zeroing(rows, max_batch_tokens=1_000)),
    ],
    ids=["decoder", "contribution_norms", "value_zeroing"],
)
def test_who_looks_into_the_layers_sees_no_other_threads_pass(name, look):
    one = subject(name)
    rows, others = batch(one), batch(one, TEXTS[::-1])
    opened, looks = threading.Event(), threading.Event()
    with torch.no_grad():
        forward = one.forward(rows)
        wanted = look(one, rows, forward)

    def first():
        with torch.no_grad(), one.access.patched():
            opened.set()
            looks.wait(timeout=20)
            time.sleep(0.2)  # time enough for the other to hook the model, if it could
            one.logits(others)

    def second():
        opened.wait(timeout=20)
        looks.set()
        with torch.no_grad():
            return look(one, rows, forward)

    torch.testing.assert_close(in_threads(first, second)[1], wanted)


def test_vectors_given_by_one_thread_are_not_those_of_another():
    """Both read the same text, so that its ids do not tell whose vectors are meant."""
    one = subject("gpt2")
    rows, own = batch(one), one.embed(batch(one))
    given = [own * factor for factor in (0.5, 1.5)]
    call = no_grad(lambda vectors: one.run_logits(rows, vectors))
    in_two_threads_as_in_one(call, given[:1], given[1:], tiny_models.FAMILIES["gpt2"].close)


@pytest.mark.parametrize("way", ["logits", "outputs of vectors", "decoder"])
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_thread_that_runs_the_model_itself_in_the_midst_of_a_pass_gets_its_own_answer(name, way):
    """Hooks on the shared modules, and layers passed over, are for the thread that set them."""
    one = subject(name)
    rows, here, found = batch(one), threading.get_ident(), []
    ways = {**passes(one), "decoder": lambda rows: decoded(one, rows)}
    call = no_grad(ways[way])
    model = no_grad(lambda rows: untouched(one.model, one, rows))
    wanted, alone = model(rows), call(rows)

    def other(*_):
        if threading.get_ident() == here:
            found.extend(in_threads(lambda: model(rows)))

    handle = one.embedding.register_forward_hook(other)
    try:
        torch.testing.assert_close(call(rows), alone)
    finally:
        handle.remove()
    assert found
    for logits in found:
        torch.testing.assert_close(logits, wanted, rtol=1e-6, atol=1e-6)
