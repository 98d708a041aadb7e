"""20 Newsgroups (Lang, 1995): posts on baseball and on hockey, without headers, quotes, signatures.

They are removed as by scikit-learn with remove=("headers", "footers", "quotes"), which the papers
used.
"""

from functools import partial
from pathlib import Path

from heedful.data.dataset import SINGLE_SPLIT
from heedful.data.readers.base import (
    ParsedRow,
    SplitReader,
    list_folder,
    list_labelled_files,
    read_file,
)
from heedful.data.sources.row_schema import BadLine, LeftOut

CLASSES = {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}
QUOTING = ("writes in", "writes:", "wrote:", "says:", "said:")
QUOTED = ("In article", "Quoted from", "|", ">")


def _find(folder: Path) -> dict[str, Path]:
    if _is_split(folder):
        return {SINGLE_SPLIT[0]: folder}
    return {
        split: one
        for split in ("train", "test")
        for one in list_folder(folder)
        if one.name.endswith(split) and _is_split(one)
    }


def _is_split(folder: Path) -> bool:
    return all((folder / group).is_dir() for group in CLASSES)


def _parse_post(item: tuple[Path, str]) -> ParsedRow:
    """Posts without any text of their own are left out."""
    file, label = item
    content = read_file(file)
    if isinstance(content, BadLine):
        return content
    # The posts are from 1993 and in Latin-1, where every byte is a character.
    text = strip_post(content.decode("latin-1").replace("\r\n", "\n"))
    return {"text": text, "label": label} if text else LeftOut("nothing but headers, quotes")


def strip_post(post: str) -> str:
    """The text of the author: without header, quoted lines, attributions and signature.

    >>> strip_post("From: me\\n\\nAnn wrote:\\n> Who won?\\nThe Cubs won.\\n\\n--\\nme")
    'The Cubs won.'
    """
    _, _, body = post.partition("\n\n")
    lines = body.strip().split("\n")
    for at in range(len(lines) - 1, 0, -1):
        if not lines[at].strip().strip("-"):
            lines = lines[:at]
            break
    own = (
        line
        for line in lines
        if not line.startswith(QUOTED) and not any(words in line for words in QUOTING)
    )
    return "\n".join(own).strip()


NEWSGROUPS = SplitReader(
    "20news",
    "20 Newsgroups, baseball or hockey: a folder of groups, or of a train and a test folder.",
    layout=f"a folder with {' and '.join(CLASSES)}, or with a train and a test folder",
    find=_find,
    items=partial(list_labelled_files, CLASSES),
    parse=_parse_post,
).register()
