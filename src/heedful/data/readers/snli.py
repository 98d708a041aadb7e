"""Stanford Natural Language Inference (Bowman et al., 2015): pairs of sentences, three classes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ReaderSplits,
    find_subfolder,
    layout_error,
    readers,
    require_path,
    split_files,
)
from heedful.data.sources.files import read_jsonl_rows
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {
    split: (f"snli_1.0_{split}.jsonl", f"snli_1.0_{split}.jsonl.gz")
    for split in ("train", "dev", "test")
}
REQUIRED_KEYS = ("sentence1", "sentence2", "gold_label")
NO_GOLD = "-"  # the annotators did not agree


@readers.register("snli")
def snli(name: str, path: str) -> ReaderSplits:
    """SNLI: the folder snli_1.0, with snli_1.0_train.jsonl and so on."""
    folder = find_subfolder(require_path(name, path), "snli_1.0")
    if not (files := split_files(folder, NAMES)):
        raise layout_error(name, "the folder snli_1.0, with snli_1.0_train.jsonl and so on", folder)
    return ReaderSplits(name, {split: partial(read_pairs, file) for split, file in files.items()})


def read_pairs(path: Path) -> Iterator[NumberedRow]:
    """The pairs; those without a gold label are left out."""
    for number, row in read_jsonl_rows(path):
        yield number, _row(dict(row)) if not isinstance(row, BadLine | LeftOut) else row


def _row(row: dict[str, object]) -> dict[str, object] | BadLine | LeftOut:
    if missing := [key for key in REQUIRED_KEYS if key not in row]:
        return BadLine(f"no {missing[0]}")
    if row["gold_label"] == NO_GOLD:
        return LeftOut("without a gold label")
    premise, hypothesis, label = (row[key] for key in REQUIRED_KEYS)
    return {"premise": premise, "hypothesis": hypothesis, "label": label}
