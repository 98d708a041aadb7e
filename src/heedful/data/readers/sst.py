"""Stanford Sentiment Treebank (Socher et al., 2013): a tree per line, as (3 (2 It) (4 shines))."""

import re
from functools import partial

from heedful.data.readers.base import ParsedRow, SplitReader, find_files, read_text_lines
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.txt", f"{split}.txt.gz") for split in ("train", "dev", "test")}
ROOT = re.compile(r"\(([0-4]) ")
LEAF = re.compile(r"\(([0-4]) ([^()]+)\)")
NEUTRAL = 2
BRACKET_TOKENS = {"-LRB-": "(", "-RRB-": ")"}  # how treebanks write brackets of the text


def _parse_tree(line: str) -> ParsedRow:
    """Sentences are negative (0, 1) or positive (3, 4); neutral ones are left out."""
    tree = line.strip()
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
    """Whether every bracket closes, and the first one closes at the end."""
    depth = 0
    for place, sign in enumerate(tree, start=1):
        depth += (sign == "(") - (sign == ")")
        if depth <= 0:
            return depth == 0 and place == len(tree)
    return False


SST = SplitReader(
    "sst",
    "Stanford Sentiment Treebank: a folder with train.txt, dev.txt and test.txt, a tree a line.",
    layout="the folder of trees, with train.txt, dev.txt and test.txt",
    find=partial(find_files, NAMES),
    subfolders=("trees",),
    items=read_text_lines,
    parse=_parse_tree,
).register()
