"""CNN questions (Hermann et al., 2015): passage, cloze question, answer among the entities."""

from collections.abc import Iterator
from pathlib import Path

from heedful.data.readers.base import ParsedRow, SplitReader, list_folder, read_text_file
from heedful.data.sources.row_schema import BadLine

FOLDERS = {"train": "training", "dev": "validation", "test": "test"}
ENDING = ".question"
ENTITY = "@entity"
PARTS = 4  # address, passage, question, answer; names of entities may follow


def _find(folder: Path) -> dict[str, Path]:
    return {split: folder / one for split, one in FOLDERS.items() if (folder / one).is_dir()}


def _read_texts(folder: Path) -> Iterator[tuple[int, str | BadLine]]:
    """One text per file, sorted by name."""
    files = (one for one in list_folder(folder) if one.name.endswith(ENDING))
    return enumerate(map(read_text_file, files), start=1)


def _parse_question(text: str) -> ParsedRow:
    parts = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n")]
    if len(parts) < PARTS or not all(parts[1:PARTS]):
        return BadLine("not a .question file")
    passage, question, answer = parts[1:PARTS]
    entities = list(dict.fromkeys(word for word in passage.split() if word.startswith(ENTITY)))
    if answer not in entities:
        return BadLine("an answer that is not in the passage")
    return {"paragraph": passage, "question": question, "label": answer, "candidates": entities}


CNN = SplitReader(
    "cnn",
    "CNN questions: a folder with training, validation and test, full of .question files.",
    layout="a folder with training, validation and test, full of .question files",
    find=_find,
    subfolders=("cnn", "questions"),
    items=_read_texts,
    parse=_parse_question,
).register()
