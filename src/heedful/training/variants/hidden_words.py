"""Which words of a text are hidden, and texts without them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Example
from heedful.models.protocols import Subject

HIDDEN_SOURCES = ("list", "rationale", "saliency")
BLANK_PIECE = "…"  # the spelling of a blank token
UNKNOWN_ID = 1  # the id of the unknown word of an attention classifier


@dataclass(frozen=True)
class HiddenWords:
    """Which words of a text are hidden.

    `source` is "list", the given `words`; "rationale", the rationale of the data; or "saliency",
    the `share` of each text's words, at least one, that a `method` with its `settings` ranks
    highest for the base model's prediction.
    """

    source: str
    words: tuple[str, ...] = ()
    method: str = "leave_one_out"
    share: float = 0.1
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "settings", tuple((key, value) for key, value in self.settings))
        if self.source not in HIDDEN_SOURCES:
            raise ConfigError(
                f"The source of hidden words must be one of {', '.join(HIDDEN_SOURCES)}, "
                f"not {self.source!r}."
            )
        if (self.source == "list") != bool(self.words):
            raise ConfigError("Give words with the source list, and only with it.")
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"share must lie between 0 and 1, not {self.share}.")

    def __str__(self) -> str:
        if self.source == "list":
            return f"the words {', '.join(self.words[:5])}{' …' if len(self.words) > 5 else ''}"
        if self.source == "rationale":
            return "the words of the data's rationales"
        return f"the {self.share:.0%} of each text's words that {self.method} ranks highest"


ScoreCache = dict[Hashable, list[Float[Tensor, "_"]]]
"""Word scores of some texts by method, shared by all values of `share`."""

HiddenWordMarker = Callable[
    [HiddenWords, Subject, Sequence[Example], Sequence[Encoded], ScoreCache],
    list[Bool[Tensor, "_"]],
]
"""Marks the hidden tokens of every text; the checks pass a function that can run methods."""


def delete_hidden(one: Encoded, hidden: Bool[Tensor, "T"], *, blank: int) -> Encoded:
    """The text with its hidden tokens deleted; if no word is left, the first becomes a blank.

    >>> one = Encoded(0, 1, (2, 7, 8, 3), (-1, 0, 1, -1), ("so", "fine"))
    >>> delete_hidden(one, torch.tensor([False, False, True, False]), blank=1).ids
    (2, 7, 3)
    """
    marks = hidden.tolist()
    keep = [not mark for mark in marks]
    left = any(kept and word >= 0 for kept, word in zip(keep, one.word, strict=True))
    first = marks.index(True) if any(marks) and not left else None
    if first is not None:
        keep[first] = True
    ids = [blank if index == first else token for index, token in enumerate(one.ids)]
    chosen = [index for index, kept in enumerate(keep) if kept]
    return replace(
        one,
        ids=tuple(ids[index] for index in chosen),
        word=tuple(one.word[index] for index in chosen),
        pieces=None
        if one.pieces is None
        else tuple(BLANK_PIECE if index == first else one.pieces[index] for index in chosen),
        types=None if one.types is None else tuple(one.types[index] for index in chosen),
    )


def placeholder_id(subject: Subject) -> int:
    """The token id that replaces a deleted word where a text must not be empty."""
    pieces = getattr(subject, "subword_tokenizer", None)
    if pieces is None:
        return UNKNOWN_ID
    for token in (pieces.tokenizer.mask_token_id, pieces.tokenizer.unk_token_id):
        if token is not None:
            return int(token)
    raise NotApplicable("its tokenizer has neither a mask nor an unknown token")
