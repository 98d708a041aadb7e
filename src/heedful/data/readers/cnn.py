"""CNN questions (Hermann et al., 2015): passage, question with a gap, answer among the entities."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ReaderSplits,
    decode_utf8,
    find_subfolder,
    layout_error,
    list_folder,
    read_whole_file,
    readers,
    require_path,
)
from heedful.data.sources.row_schema import BadLine

FOLDERS = {"train": "training", "dev": "validation", "test": "test"}
ENDING = ".question"
ENTITY = "@entity"
PARTS = 4  # address, passage, question, answer; the names of entities come last, if at all


@readers.register("cnn")
def cnn(name: str, path: str) -> ReaderSplits:
    """CNN questions: a folder with training, validation and test, full of .question files."""
    folder = require_path(name, path)
    for one in ("cnn", "questions"):
        folder = find_subfolder(folder, one)
    there = {split: folder / one for split, one in FOLDERS.items() if (folder / one).is_dir()}
    if not there:
        wanted = "a folder with training, validation and test, full of .question files"
        raise layout_error(name, wanted, folder)
    return ReaderSplits(name, {split: partial(read_questions, one) for split, one in there.items()})


def read_questions(folder: Path) -> Iterator[NumberedRow]:
    """A row a file, in the order of their names."""
    files = (one for one in list_folder(folder) if one.name.endswith(ENDING))
    for number, file in enumerate(files, start=1):
        content = read_whole_file(file)
        text = content if isinstance(content, BadLine) else decode_utf8(content)
        yield number, text if isinstance(text, BadLine) else _row(text)


def _row(text: str) -> dict[str, object] | BadLine:
    parts = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n")]
    if len(parts) < PARTS or not all(parts[1:PARTS]):
        return BadLine("not a .question file")
    passage, question, answer = parts[1:PARTS]
    named = list(dict.fromkeys(word for word in passage.split() if word.startswith(ENTITY)))
    if answer not in named:
        return BadLine("an answer that is not in the passage")
    return {"paragraph": passage, "question": question, "label": answer, "candidates": named}
