"""Files of one question each."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers import open_reader
from heedful.data.sources.row_schema import BadLine


def question(passage, query, answer):
    names = "@entity0:Ann\n@entity1:Bob"
    return f"http://news/1\n\n{passage}\n\n{query}\n\n{answer}\n\n{names}\n"


FILES = {
    "a": question("@entity1 met @entity0 , said @entity1", "@placeholder met her", "@entity1"),
    "b": question("@entity0 won", "who ? @placeholder", "@entity0").replace("\n", "\r\n"),
    "c": question("@entity0 won", "who ? @placeholder", "@entity1"),
    "d": "http://news/1\n\nonly a passage",
    "e": question("@entity3 and @entity2", "@placeholder", "@entity2"),
}


@pytest.fixture
def questions(tmp_path):
    folder = tmp_path / "cnn" / "questions"
    for part in ("training", "validation", "test"):
        (folder / part).mkdir(parents=True)
        for name, text in FILES.items():
            (folder / part / f"{name}.question").write_bytes(text.encode())
    (folder / "test" / "f.question").write_bytes(b"\xff")
    (folder / "test" / "notes.txt").write_text("not a question")
    return tmp_path


def test_five_questions(questions):
    name = f"cnn:{questions}"
    assert splits(name) == ("train", "dev", "test")
    rows = [row for _, row in open_reader("cnn", str(questions))("validation")]
    assert rows == [
        {
            "paragraph": "@entity1 met @entity0 , said @entity1",
            "question": "@placeholder met her",
            "label": "@entity1",
            "candidates": ["@entity1", "@entity0"],
        },
        {
            "paragraph": "@entity0 won",
            "question": "who ? @placeholder",
            "label": "@entity0",
            "candidates": ["@entity0"],
        },
        BadLine("an answer that is not in the passage"),
        BadLine("not a .question file"),
        {
            "paragraph": "@entity3 and @entity2",
            "question": "@placeholder",
            "label": "@entity2",
            "candidates": ["@entity3", "@entity2"],
        },
    ]
    source = open_reader("cnn", str(questions))("test")
    assert [row for _, row in source][-1] == BadLine("not UTF-8")
    assert len(list(source)) == 6
    assert source.sha256() != open_reader("cnn", str(questions))("dev").sha256()


def test_questions_as_examples_with_the_answers_that_may_be(tmp_path):
    (tmp_path / "test").mkdir()
    for name in "abe":
        (tmp_path / "test" / f"{name}.question").write_bytes(FILES[name].encode())
    data = read(f"cnn:{tmp_path}", cleaning="jain-wallace-2019/cnn")
    assert data.labels == ("@entity0", "@entity1", "@entity2")
    first, _, last = data
    assert (first.label, first.pair) == (1, "@placeholder met her")
    assert first.tokens == ("@entity1", "met", "@entity0", ",", "said", "@entity1")
    assert (first.candidates, last.candidates) == ((0, 1), (2,))  # @entity3 is never an answer here


def test_a_folder_without_questions(tmp_path):
    with pytest.raises(DataError, match=r"with training, validation and test.* nothing in it. See"):
        splits(f"cnn:{tmp_path}")
