"""CNN questions (Hermann et al., 2015): passage, cloze question, answer among the entities."""

from collections.abc import Iterator
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ParsedRow,
    list_folder,
    parse_rows,
    read_text_file,
    register_reader,
)
from heedful.data.sources.row_schema import BadLine

FOLDERS = {"train": "training", "dev": "validation", "test": "test"}
ENDING = ".question"
ENTITY = "@entity"
PARTS = 4  # address, passage, question, answer; names of entities may follow


def _find(folder: Path) -> dict[str, Path]:
    return {split: folder / one for split, one in FOLDERS.items() if (folder / one).is_dir()}


@register_reader(
    "cnn",
    "CNN questions: a folder with training, validation and test, full of .question files.",
    layout="a folder with training, validation and test, full of .question files",
    find=_find,
    subfolders=("cnn", "questions"),
)
def read_questions(folder: Path) -> Iterator[NumberedRow]:
    """Read one row per file, sorted by name."""
    files = (one for one in list_folder(folder) if one.name.endswith(ENDING))
    return parse_rows(enumerate(map(read_text_file, files), start=1), _parse_row)


def _parse_row(text: str) -> ParsedRow:
    parts = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n")]
    if len(parts) < PARTS or not all(parts[1:PARTS]):
        return BadLine("not a .question file")
    passage, question, answer = parts[1:PARTS]
    entities = list(dict.fromkeys(word for word in passage.split() if word.startswith(ENTITY)))
    if answer not in entities:
        return BadLine("an answer that is not in the passage")
    return {"paragraph": passage, "question": question, "label": answer, "candidates": entities}
