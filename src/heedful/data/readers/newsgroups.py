"""20 Newsgroups (Lang, 1995): posts on baseball and on hockey, without headers, quotes, signatures.

What is taken off is what scikit-learn takes off under remove=("headers", "footers", "quotes"),
which the papers used.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    SINGLE_SPLIT,
    ReaderSplits,
    layout_error,
    list_folder,
    read_whole_file,
    readers,
    require_path,
)
from heedful.data.sources.row_schema import BadLine, LeftOut

CLASSES = {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}
QUOTING = ("writes in", "writes:", "wrote:", "says:", "said:")
QUOTED = ("In article", "Quoted from", "|", ">")


@readers.register("20news")
def newsgroups(name: str, path: str) -> ReaderSplits:
    """20 Newsgroups, baseball or hockey: a folder of groups, or of a train and a test folder."""
    folder = require_path(name, path)
    if _is_split(folder):
        return ReaderSplits(name, {SINGLE_SPLIT[0]: partial(read_posts, folder)})
    by_date = {
        split: one
        for split in ("train", "test")
        for one in list_folder(folder)
        if one.name.endswith(split) and _is_split(one)
    }
    if not by_date:
        wanted = " and ".join(CLASSES)
        raise layout_error(
            name, f"a folder with {wanted}, or with a train and a test folder", folder
        )
    return ReaderSplits(name, {split: partial(read_posts, one) for split, one in by_date.items()})


def _is_split(folder: Path) -> bool:
    return all((folder / group).is_dir() for group in CLASSES)


def read_posts(folder: Path) -> Iterator[NumberedRow]:
    """The posts; those of which nothing is left are left out."""
    files = [
        (file, label) for group, label in CLASSES.items() for file in list_folder(folder / group)
    ]
    for number, (file, label) in enumerate(files, start=1):
        content = read_whole_file(file)
        yield number, content if isinstance(content, BadLine) else _row(content, label)


def _row(content: bytes, label: str) -> dict[str, object] | LeftOut:
    # The posts are of 1993, in Latin-1, where any byte is a letter or a sign.
    text = strip_post(content.decode("latin-1").replace("\r\n", "\n"))
    return {"text": text, "label": label} if text else LeftOut("nothing but headers, quotes")


def strip_post(post: str) -> str:
    """What the writer says: no header, no lines quoted or naming who is, no signature.

    >>> stripped("From: me\\n\\nAnn wrote:\\n> Who won?\\nThe Cubs won.\\n\\n--\\nme")
    'The Cubs won.'
    """
    _, _, body = post.partition("\n\n")
    lines = body.strip().split("\n")
    for at in range(len(lines) - 1, 0, -1):
        if not lines[at].strip().strip("-"):
            lines = lines[:at]
            break
    return "\n".join(line for line in lines if not _is_quoted(line)).strip()


def _is_quoted(line: str) -> bool:
    return line.startswith(QUOTED) or any(words in line for words in QUOTING)
