"""Stanford Sentiment Treebank (Socher et al., 2013): a tree a line, as (3 (2 It) (4 shines))."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ReaderSplits,
    find_subfolder,
    layout_error,
    read_text_lines,
    readers,
    require_path,
    split_files,
)
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.txt", f"{split}.txt.gz") for split in ("train", "dev", "test")}
ROOT = re.compile(r"\(([0-4]) ")
LEAF = re.compile(r"\(([0-4]) ([^()]+)\)")
NEUTRAL = 2
BRACKET_TOKENS = {
    "-LRB-": "(",
    "-RRB-": ")",
}  # how treebanks write what would look like their own brackets


@readers.register("sst")
def sst(name: str, path: str) -> ReaderSplits:
    """Stanford Sentiment Treebank: a folder with train.txt, dev.txt and test.txt, a tree a line."""
    folder = find_subfolder(require_path(name, path), "trees")
    if not (files := split_files(folder, NAMES)):
        raise layout_error(
            name, "the folder of trees, with train.txt, dev.txt and test.txt", folder
        )
    return ReaderSplits(name, {split: partial(read_trees, file) for split, file in files.items()})


def read_trees(path: Path) -> Iterator[NumberedRow]:
    """The sentences, negative (0, 1) or positive (3, 4); those with a neutral root are left out."""
    for number, line in read_text_lines(path):
        yield number, line if isinstance(line, BadLine) else _row(line.strip())


def _row(tree: str) -> dict[str, object] | BadLine | LeftOut:
    root, leaves = ROOT.match(tree), LEAF.findall(tree)
    if root is None or not leaves or not _is_closed(tree):
        return BadLine("not a tree")
    degree = int(root[1])
    if degree == NEUTRAL:
        return LeftOut("neutral")
    tokens = [_token(word) for _, word in leaves]
    return {
        "text": " ".join(tokens),
        "label": "positive" if degree > NEUTRAL else "negative",
        "tokens": tokens,
        "token_sentiment": [int(label) for label, _ in leaves],
    }


def _token(word: str) -> str:
    return BRACKET_TOKENS.get(word, word.replace("\\/", "/").replace("\\*", "*"))


def _is_closed(tree: str) -> bool:
    """Whether every bracket closes, the first one with the last sign."""
    depth = 0
    for place, sign in enumerate(tree, start=1):
        depth += (sign == "(") - (sign == ")")
        if depth <= 0:
            return depth == 0 and place == len(tree)
    return False
