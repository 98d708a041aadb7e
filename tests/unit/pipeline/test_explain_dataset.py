"""A data set: the same scores in any batch, and every text told."""

import pytest

from heedful.core.errors import ConfigError
from heedful.core.values import Example
from heedful.methods.base import default_methods
from heedful.pipeline.audit.job import retry_in_halves
from heedful.pipeline.explain import explain_dataset
from heedful.pipeline.explain.explain_dataset import ExplainCounts, explain_batches
from heedful.pipeline.explain.explain_text import explain_text
from heedful.pipeline.explain.request import ExplainRequest
from support import subjects
from support.known_methods import forgetful, pieced, registered

LENGTHS = (5, 1, 3, 0, 8, 2, 3, 1)
TEXTS = [
    Example(number, " ".join(subjects.WORDS[number : number + length]), number % 3 - 1)
    for number, length in enumerate(LENGTHS)
]


@pytest.fixture
def made_up(monkeypatch):
    registered(monkeypatch)


def explain(subject, names, *, budget=20_000, texts=TEXTS, **settings):
    request = ExplainRequest({name: {} for name in names}, **settings)
    rows, total = [], ExplainCounts()
    for some, counts in explain_batches(subject, texts, request, max_batch_tokens=budget):
        rows += some
        total += counts
    return rows, total


def by_place(rows):
    return {(one["instance"], one["method"]): one for one in rows}


def test_values_do_not_depend_on_the_company_in_a_batch():
    subject, names = subjects.subject(classes=3), (*default_methods(), "random")
    alone, counts = explain(subject, names, budget=1)
    together, same = explain(subject, names)
    assert counts == same
    assert len(alone) == len(together) == counts.rows > 7 * 4
    others = by_place(together)
    for one in alone:
        again = others[one["instance"], one["method"]]
        assert again["scores"] == pytest.approx(one["scores"], rel=1e-6, abs=1e-9)
        assert (again["tokens"], again["target"]) == (one["tokens"], one["target"])


def test_each_text_is_explained_as_it_would_be_alone():
    subject, names = pieced(), ("attention", "leave_one_out")
    rows, _ = explain(subject, names, target="class1")
    request = ExplainRequest({name: {} for name in names}, target="class1")
    for row in rows:
        want = explain_text(subject, TEXTS[row["instance"]].text, request)
        assert (row["predicted"], row["target"], row["tokens"]) == (
            want.predicted,
            "class1",
            want.tokens,
        )
        assert row["scores"] == pytest.approx(want.methods[row["method"]].scores)


def test_labels_are_the_data_s_and_none_where_it_has_none(made_up):
    rows, _ = explain(subjects.subject(), ("counting",))
    assert {one["instance"]: one["label"] for one in rows} == {
        number: (None, "class0", "class1")[number % 3] for number in range(8) if number != 3
    }


@pytest.mark.parametrize("budget", [1, 20, 20_000])
def test_a_refusal_belongs_to_its_text_and_is_counted(made_up, budget):
    rows, counts = explain(subjects.subject(), ("short", "counting", "never"), budget=budget)
    served = {one["instance"] for one in rows if one["method"] == "short"}
    assert served == {number for number, length in enumerate(LENGTHS) if 0 < length <= 3}
    assert {name: count for name, (count, _) in counts.refused.items()} == {"short": 2, "never": 7}
    assert counts.refused["short"][1] == "short reads three tokens at most, not 5."
    assert (counts.texts, counts.no_words, counts.rows) == (7, 1, len(rows))


def test_of_that_does_not_suit_is_counted_as_a_refusal(made_up):
    rows, counts = explain(subjects.subject(), ("counting", "short"), of="log_odds")
    assert {one["method"] for one in rows} == {"short"}
    assert counts.refused["counting"] == (
        7,
        "of must be probability or logit, not 'log_odds'.",
    )


def test_cut_texts_are_counted(made_up):
    _, counts = explain(pieced(2), ("counting",))
    assert counts.truncated == 4


def test_only_some_texts_are_held_at_once(made_up, monkeypatch):
    monkeypatch.setattr(explain_dataset, "TEXTS_PER_CHUNK", 3)
    read = []

    def texts():
        for one in TEXTS:
            read.append(one.index)
            yield one

    found = explain_batches(
        subjects.subject(), texts(), ExplainRequest({"counting": {}}), max_batch_tokens=20_000
    )
    next(found)
    assert read == [0, 1, 2]
    instances = {row["instance"] for rows, _ in found for row in rows}
    assert instances == {0, 1, 2, 4, 5, 6, 7}


def test_a_batch_too_large_for_memory_is_halved_and_told(made_up):
    whole, calm = explain(subjects.subject(), ("counting",), texts=TEXTS[:3])
    rows, counts = explain(forgetful(subjects.subject(), 1), ("counting",), texts=TEXTS[:3])
    assert (calm.halved, counts.halved) == (0, 2)
    assert by_place(rows) == by_place(whole)


def test_an_unknown_target_is_told_before_anything_is_read(made_up):
    with pytest.raises(ConfigError, match="No class is named 'great'"):
        explain(subjects.subject(), ("counting",), texts=(1 / 0 for _ in (1,)), target="great")


def test_counts_add_up_and_keep_the_first_reason():
    one = ExplainCounts(1, 2, 3, 4, 5, {"a": (1, "first")})
    other = ExplainCounts(10, 20, 30, 40, 50, {"a": (2, "second"), "b": (1, "other")})
    both = ExplainCounts(11, 22, 33, 44, 55, {"a": (3, "first"), "b": (1, "other")})
    assert one + other == both
    assert ExplainCounts() + one == one


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_halves_keep_the_order_and_one_text_alone_is_an_error(error):
    def work(rows):
        if len(rows) > 1:
            raise error
        return rows[0]

    told = []
    found = retry_in_halves([[3, 1, 2], [0]], work, halved=told.append)
    assert list(found) == [3, 1, 2, 0]
    assert len(told) == 2
    with pytest.raises(type(error)):
        list(retry_in_halves([[1]], lambda rows: (_ for _ in ()).throw(error)))


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    def work(rows):
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        list(retry_in_halves([[1, 2]], work))
