"""Notes in a table of one's own; these are made up."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits

NOTES = """\
HADM_ID,TEXT,LABEL
1,"Seen on [**2101-1-2**].
Stable.",0
2,"Pale, dizzy !!!",1
3,Discharged home,0
4,Anemia of loss,1
5,Follow up,0
"""


def test_five_notes_in_one_file(tmp_path):
    (tmp_path / "notes.csv").write_text(NOTES)
    name = f"mimic:{tmp_path}/notes.csv"
    assert splits(name) == ("all",)
    assert [(e.text, e.label) for e in read(name)] == [
        ("Seen on [**2101-1-2**].\nStable.", 0),
        ("Pale, dizzy !!!", 1),
        ("Discharged home", 0),
        ("Anemia of loss", 1),
        ("Follow up", 0),
    ]


def test_a_file_for_each_split(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.csv").write_text(f"text,label\nin {split},1\n")
    assert splits(f"mimic:{tmp_path}") == ("train", "dev", "test")
    assert [e.text for e in read(f"mimic:{tmp_path}", split="dev")] == ["in valid"]


def test_columns_must_be_there(tmp_path):
    (tmp_path / "notes.csv").write_text("NOTE,LABEL\na,1\n")
    with pytest.raises(DataError, match=r"has no column 'text'. Its columns: note, label"):
        read(f"mimic:{tmp_path}/notes.csv")


@pytest.mark.parametrize("path", ["", "/NOTEEVENTS.txt"])
def test_other_places_are_refused(tmp_path, path):
    (tmp_path / "NOTEEVENTS.txt").write_text("a")
    with pytest.raises(DataError, match=r"must be a .csv file with text and label, or a folder"):
        splits(f"mimic:{tmp_path}{path}")
