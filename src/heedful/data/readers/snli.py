"""Stanford Natural Language Inference (Bowman et al., 2015): pairs of sentences, three classes."""

from collections.abc import Mapping
from functools import partial

from heedful.data.readers.base import ParsedRow, SplitReader, find_files
from heedful.data.sources.files import read_jsonl_rows
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {
    split: (f"snli_1.0_{split}.jsonl", f"snli_1.0_{split}.jsonl.gz")
    for split in ("train", "dev", "test")
}
REQUIRED_KEYS = ("sentence1", "sentence2", "gold_label")
NO_GOLD = "-"  # the annotators did not agree


def _parse_pair(row: Mapping[str, object]) -> ParsedRow:
    if missing := [key for key in REQUIRED_KEYS if key not in row]:
        return BadLine(f"no {missing[0]}")
    if row["gold_label"] == NO_GOLD:
        return LeftOut("without a gold label")
    premise, hypothesis, label = (row[key] for key in REQUIRED_KEYS)
    return {"premise": premise, "hypothesis": hypothesis, "label": label}


SNLI = SplitReader(
    "snli",
    "SNLI: the folder snli_1.0, with snli_1.0_train.jsonl and so on.",
    layout="the folder snli_1.0, with snli_1.0_train.jsonl and so on",
    find=partial(find_files, NAMES),
    subfolders=("snli_1.0",),
    items=read_jsonl_rows,
    parse=_parse_pair,
).register()
