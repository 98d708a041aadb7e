"""Stories in numbered lines."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers import open_reader
from heedful.data.readers.babi import read_stories
from heedful.data.sources.row_schema import BadLine

STORY = """\
1 Mary moved to the bathroom.
2 Where is Mary? \tbathroom\t1
3 John went back to the hall.
4 Mary took the ball.
5 Where is the ball? \tbathroom\t4 1
1 Sandra sat.
2 Where is Sandra?\tnowhere
3 Who sat? \tSandra\t1
4 Who else?\tnobody\t
"""


def rows(tmp_path, text):
    file = tmp_path / "qa1_x_test.txt"
    file.write_text(text)
    return dict(read_stories(file))


def test_five_questions(tmp_path):
    found = rows(tmp_path, STORY)
    assert list(found) == [2, 5, 7, 8, 9]
    assert found[5] == {
        "paragraph": [
            "Mary moved to the bathroom.",
            "John went back to the hall.",
            "Mary took the ball.",
        ],
        "question": "Where is the ball?",
        "label": "bathroom",
        "rationale": [2, 0],
    }
    assert (found[2]["paragraph"], found[2]["rationale"]) == (
        ["Mary moved to the bathroom."],
        [0],
    )
    assert (found[7]["label"], found[7]["rationale"]) == ("nowhere", [])
    assert found[8]["paragraph"] == ["Sandra sat."]


def test_bad_lines(tmp_path):
    text = (
        "1 A cat sat.\nno number\n2 Who sat?\tcat\t7\n\u00b2 x\n3\n4 Who?\tcat\t1\n1 Who?\tcat\t1\n"
    )
    found = rows(tmp_path, text)
    numbered, lines = "not a numbered line", "a question about lines that are not there"
    assert [found[at] for at in (2, 3, 4, 5, 7)] == [
        BadLine(why) for why in (numbered, lines, numbered, numbered, lines)
    ]
    assert found[6]["label"] == "cat"


@pytest.fixture
def tasks(tmp_path):
    folder = tmp_path / "tasks_1-20_v1-2" / "en-10k"
    folder.mkdir(parents=True)
    for task in ("qa1_single-supporting-fact", "qa10_indefinite-knowledge"):
        for split in ("train", "test"):
            (folder / f"{task}_{split}.txt").write_text(STORY.replace("Mary", task))
    return tmp_path


@pytest.mark.parametrize("task", ["qa1", "qa1_single-supporting-fact"])
def test_a_task_is_named_by_its_number_or_its_whole_name(tasks, task):
    found = open_reader("babi", f"{tasks}@{task}")
    assert found.splits == splits(f"babi:{tasks}@{task}") == ("train", "test")
    (_, first), *_ = found("test")
    assert first["paragraph"] == ["qa1_single-supporting-fact moved to the bathroom."]


def test_questions_as_examples_cleaned_with_their_facts_marked(tasks):
    name, cleaning = f"babi:{tasks}@qa1", "jain-wallace-2019/babi"
    _, second, *_ = read(name, cleaning=cleaning)
    assert second.pair == "Where is the ball"
    assert second.text.endswith("took the ball")
    marked = [second.tokens[place] for place in second.rationale]
    assert marked[-3:] == ["took", "the", "ball"]
    assert "John" not in marked
    assert splits(name, cleaning=cleaning) == ("train", "dev", "test")


@pytest.mark.parametrize("task", ["", "@qa2", "@../../qa1", "@"])
def test_other_names_are_refused_with_those_there_are(tasks, task):
    with pytest.raises(
        DataError, match=r"must name one task, as babi:FOLDER@qa1. .*has: qa1.*, qa1_sing"
    ):
        open_reader("babi", f"{tasks}{task}")


def test_a_folder_without_tasks(tmp_path):
    with pytest.raises(DataError, match=r"must be a folder of tasks, .* nothing in it. See docs"):
        splits(f"babi:{tmp_path}@qa1")
