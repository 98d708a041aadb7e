"""bAbI questions (Weston et al., 2016): stories in numbered lines, with questions and answers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.core.errors import DataError, shorten_name
from heedful.data.dataset import Corpus, NumberedRow
from heedful.data.readers.base import (
    find_subfolder,
    layout_error,
    list_folder,
    read_text_lines,
    readers,
    require_path,
)
from heedful.data.sources.row_schema import BadLine

SPLIT_SUFFIXES = {"train": "_train.txt", "dev": "_valid.txt", "test": "_test.txt"}
EXPECTED_LAYOUT = "a folder of tasks, with files such as qa1_single-supporting-fact_train.txt"


@readers.register("babi")
def babi(name: str, path: str) -> Corpus:
    """bAbI questions: a folder of tasks and which of them, such as babi:tasks/en-10k@qa1."""
    folder_path, at, task = path.rpartition("@")
    folder = require_path(name, folder_path if at else path)
    for one in ("tasks_1-20_v1-2", "en-10k"):
        folder = find_subfolder(folder, one)
    tasks = _find_tasks(folder)
    if not tasks:
        raise layout_error(name, EXPECTED_LAYOUT, folder)
    chosen = [one for one in tasks if not at or task in (one, one.partition("_")[0])]
    if len(chosen) != 1:
        raise DataError(
            f"{shorten_name(name)} must name one task, as babi:FOLDER@qa1. "
            f"The folder has: {shorten_name(', '.join(tasks), most=500)}."
        )
    files = tasks[chosen[0]].items()
    return Corpus(name, {split: partial(read_stories, file) for split, file in files})


def _find_tasks(folder: Path) -> dict[str, dict[str, Path]]:
    """The files by task and split."""
    found: dict[str, dict[str, Path]] = {}
    for split, end in SPLIT_SUFFIXES.items():
        for file in list_folder(folder):
            if file.name.endswith(end) and file.is_file():
                found.setdefault(file.name.removesuffix(end), {})[split] = file
    return found


def read_stories(path: Path) -> Iterator[NumberedRow]:
    """Read one row per question: the story so far; the rationale is the supporting facts."""
    facts: dict[int, str] = {}
    for number, line in read_text_lines(path):
        parsed = line if isinstance(line, BadLine) else _split_number(line)
        if isinstance(parsed, BadLine):
            yield number, parsed
            continue
        at, text = parsed
        if at == 1:
            facts = {}
        if "\t" in text:
            yield number, _parse_row(facts, text)
        else:
            facts[at] = text


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _split_number(line: str) -> tuple[int, str] | BadLine:
    number, _, text = line.strip().partition(" ")
    if not _is_number(number) or not text.strip():
        return BadLine("not a numbered line")
    return int(number), text.strip()


def _parse_row(facts: dict[int, str], line: str) -> dict[str, object] | BadLine:
    cells = [cell.strip() for cell in line.split("\t")]
    supporting = cells[2].split() if len(cells) > 2 else []
    if not facts or not all(_is_number(one) and int(one) in facts for one in supporting):
        return BadLine("a question about lines that are not there")
    places = list(facts)  # questions have line numbers too, so facts are renumbered
    return {
        "paragraph": list(facts.values()),
        "question": cells[0],
        "label": cells[1],
        "rationale": [places.index(int(one)) for one in supporting],
    }
