"""Texts as a subject reads them: encoded one by one, and padded to batches.

Axes: B texts, T tokens, Q tokens of a query, C classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.core.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text as its subject reads it.

    `word[t]` is the index in `words` of the word that token t belongs to, or −1 for a token that
    the subject adds (start, end, separator): such tokens are read but not explained. `pieces` are
    the tokens as the subject spells them, where they are not words; `types` are the segment ids of
    a pair, where the subject needs them. `query` holds the ids of a question that is read with the
    text and never explained, `question` its words as written, and `allowed` the classes that may
    answer it.
    """

    index: int
    label: int
    ids: tuple[int, ...]
    word: tuple[int, ...]
    words: tuple[str, ...]
    truncated: bool = False
    pieces: tuple[str, ...] | None = None
    types: tuple[int, ...] | None = None
    query: tuple[int, ...] | None = None
    question: str | None = None
    allowed: tuple[int, ...] | None = None

    @property
    def seen_words(self) -> tuple[str, ...]:
        """The words that have a token; in a truncated text, those before the cut."""
        return self.words[: max(self.word, default=-1) + 1]

    @property
    def content(self) -> str:
        """What the subject reads of this text; equal for copies. Random draws are keyed by it."""
        return describe_content(self.ids, self.query or ())

    @property
    def explained_tokens(self) -> int:
        """How many tokens an explanation of this text ranks."""
        return sum(w >= 0 for w in self.word)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Several encoded texts, padded to one length.

    An item is the unit that checks rank, and remove or keep as a whole. Here it is a word: one
    token, or all pieces of the word; `same_item` and `item_index` alone decide this.

    `present` is False on padding. `mask` is True on the tokens of words, which an explanation
    ranks; special tokens are present and not in the mask. `word` is the index of the word that a
    token belongs to, −1 elsewhere; without it every token is a word. `query` is padded with 0, the
    padding id; `allowed` marks the classes that a text may have.
    """

    ids: Int[Tensor, "B T"]
    present: Bool[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    instances: tuple[int, ...]
    types: Int[Tensor, "B T"] | None = None
    word: Int[Tensor, "B T"] | None = None
    query: Int[Tensor, "B Q"] | None = None
    allowed: Bool[Tensor, "B C"] | None = None

    def __post_init__(self) -> None:
        if bool((self.mask & ~self.present).any()):
            raise ShapeError("The mask of a batch covers padding; mask must lie inside present.")
        if len(self.instances) != len(self.ids):
            raise ShapeError(f"{len(self.ids)} texts came with {len(self.instances)} instances.")
        if self.allowed is not None and not bool(self.allowed.any(-1).all()):
            raise ShapeError("A batch allows a text no class at all; allow at least one.")

    @property
    def lengths(self) -> Int[Tensor, "B"]:
        """Number of explained tokens of each text."""
        return self.mask.sum(-1)

    @property
    def same_item(self) -> Bool[Tensor, "B T T"]:
        """Which pairs of tokens belong to one item; special tokens belong to none."""
        pairs = self.mask[:, :, None] & self.mask[:, None, :]
        if self.word is None:
            return pairs & torch.eye(self.ids.shape[1], dtype=torch.bool)
        return pairs & (self.word[:, :, None] == self.word[:, None, :])

    @property
    def item_index(self) -> Int[Tensor, "B T"]:
        """The index of each token's item, in the order of the text; −1 for none.

        Words without tokens, such as truncated ones, are no items.
        """
        first = self.same_item.byte().argmax(-1)
        heads = self.mask & (first == torch.arange(self.ids.shape[1]))
        return torch.where(self.mask, (heads.cumsum(-1) - 1).gather(1, first), -1)

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def content(self) -> list[str]:
        """What the subject reads of each text, in any batch; random draws are keyed by it."""
        ids = [own[here].tolist() for own, here in zip(self.ids, self.present, strict=True)]
        queries = [()] * len(ids) if self.query is None else self.query.tolist()
        return [describe_content(*both) for both in zip(ids, queries, strict=True)]

    def delete_tokens(self, rows: Int[Tensor, "N"], positions: Int[Tensor, "N"]) -> "Batch":
        """N variants: text rows[n] without the token at positions[n]; later tokens move up."""
        width = self.ids.shape[1]
        keep = torch.arange(width - 1, device=self.ids.device).expand(len(rows), -1)
        keep = keep + (keep >= positions[:, None]).long()
        return self._map_tokens(lambda column: column[rows].gather(1, keep), rows)

    def repeat_texts(self, times: int) -> "Batch":
        """The whole batch, `times` times in a row."""
        return self.select(torch.arange(len(self)).repeat(times))

    def select(self, rows: Int[Tensor, "N"]) -> "Batch":
        """Some of the texts, at the same width."""
        return self._map_tokens(lambda column: column[rows], rows)

    def keep_tokens(self, rows: Int[Tensor, "N"], kept: Bool[Tensor, "N T"]) -> "Batch":
        """N variants: text rows[n] with the tokens kept[n] only, the same number in each."""
        places = kept.nonzero()[:, 1].reshape(len(rows), -1)
        return self._map_tokens(lambda column: column[rows].gather(1, places), rows)

    def _map_tokens(self, take: Callable[[Tensor], Tensor], rows: Int[Tensor, "N"]) -> "Batch":
        """Apply `take` to the fields with a value per token; a query stays with its text."""
        return Batch(
            take(self.ids),
            take(self.present),
            take(self.mask),
            tuple(self.instances[row] for row in rows.tolist()),
            None if self.types is None else take(self.types),
            None if self.word is None else take(self.word),
            None if self.query is None else self.query[rows],
            None if self.allowed is None else self.allowed[rows],
        )

    def distinct_texts(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "B"]]:
        """The row of the first of each distinct text, and for every text which of them it is."""
        parts = [torch.where(self.present, self.ids, -1)]
        if self.types is not None:
            parts.append(torch.where(self.present, self.types, -1))
        parts += [extra.long() for extra in (self.query, self.allowed) if extra is not None]
        rows, place = torch.unique(torch.cat(parts, dim=1), dim=0, return_inverse=True)
        first = torch.full((len(rows),), len(self)).scatter_reduce(
            0, place, torch.arange(len(self)), "amin"
        )
        return first, place


def describe_content(ids: Sequence[int], query: Sequence[int]) -> str:
    """The ids of a text and of its query, whose padding (0) is left out."""
    return f"{[*ids]}{[one for one in query if one] if query else ''}"


def collate(
    encoded: Sequence[Encoded], *, pad_id: int = 0, left: bool = False, classes: int | None = None
) -> Batch:
    """Pad encoded texts to one batch, on the right by default.

    `classes` is the number of classes; it is needed where texts allow only some of them.
    """
    side = "left" if left else "right"
    ids = _pad([text.ids for text in encoded], pad_id, side=side)
    word = _pad([text.word for text in encoded], -1, side=side)
    present = _pad([(1,) * len(text.ids) for text in encoded], side=side).bool()
    types = None
    if encoded[0].types is not None:
        types = _pad([text.types or (0,) * len(text.ids) for text in encoded], side=side)
    queries = [text.query for text in encoded if text.query is not None]
    if queries and len(queries) < len(encoded):
        raise ShapeError(f"{len(queries)} of {len(encoded)} texts have a query; all or none must.")
    return Batch(
        ids,
        present,
        word >= 0,
        tuple(text.index for text in encoded),
        types,
        word,
        _pad(queries) if queries else None,
        _allowed(encoded, classes),
    )


def _pad(
    rows: Sequence[tuple[int, ...]], padding: int = 0, *, side: str = "right"
) -> Int[Tensor, "B T"]:
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=padding, padding_side=side)


def _allowed(encoded: Sequence[Encoded], classes: int | None) -> Bool[Tensor, "B C"] | None:
    if all(text.allowed is None for text in encoded):
        return None
    if classes is None:
        raise ShapeError("Some texts allow only some classes; pass their number as `classes`.")
    marks = torch.ones(len(encoded), classes, dtype=torch.bool)
    for row, text in enumerate(encoded):
        if text.allowed is not None:
            marks[row] = False
            marks[row, list(text.allowed)] = True
    return marks
