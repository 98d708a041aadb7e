"""Words that shall not be seen: which they are, and a text without them."""

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
BLANK_PIECE = "…"  # how a blank is spelled
UNKNOWN_ID = 1  # the number of the unknown word of an attention classifier


@dataclass(frozen=True)
class HiddenWords:
    """Which words of a text are meant to be hidden.

    By a list of `words`; by the data's own rationale; or the `share` of each text's words, at least
    one, that a `method`, made with its `settings`, says the base model's prediction depends on
    most.
    """

    source: str
    words: tuple[str, ...] = ()
    method: str = "leave_one_out"
    share: float = 0.1
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "settings", tuple((key, one) for key, one in self.settings))
        if self.source not in HIDDEN_SOURCES:
            raise ConfigError(
                f"Hidden words come from {', '.join(HIDDEN_SOURCES)}, not {self.source!r}."
            )
        if (self.source == "list") != bool(self.words):
            raise ConfigError("A list of hidden words needs words, and only a list has them.")
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"share must lie between 0 and 1, not {self.share}.")

    def __str__(self) -> str:
        if self.source == "list":
            return f"the words {', '.join(self.words[:5])}{' …' if len(self.words) > 5 else ''}"
        if self.source == "rationale":
            return "the words of the data's rationales"
        return f"the {self.share:.0%} of each text's words that {self.method} ranks highest"


@dataclass(frozen=True)
class DeceptionPenalty:
    """What to hide and how much that counts.

    Of a transformer: by its worst head or the mean of all, and with hidden words blocked, so that
    the others cannot carry what they say.
    """

    hidden: HiddenWords
    weight: float
    worst: bool = False
    blocked: bool = True


ScoreCache = dict[Hashable, list[Float[Tensor, "_"]]]
"""Scores of the words of some texts, by the method that gave them: shares of them share these."""

HiddenWordMarker = Callable[
    [HiddenWords, Subject, Sequence[Example], Sequence[Encoded], ScoreCache],
    list[Bool[Tensor, "_"]],
]
"""Says for every token of every text whether it is hidden; given by who knows how to explain."""


def delete_hidden(one: Encoded, hidden: Bool[Tensor, "T"], *, blank: int) -> Encoded:
    """The text with its hidden tokens deleted; the first of them left blank if no other is there.

    >>> one = Encoded(0, 1, (2, 7, 8, 3), (-1, 0, 1, -1), ("so", "fine"))
    >>> without(one, torch.tensor([False, False, True, False]), blank=1).ids
    (2, 7, 3)
    """
    marks = hidden.tolist()
    keep = [not mark for mark in marks]
    left = any(kept and word >= 0 for kept, word in zip(keep, one.word, strict=True))
    first = marks.index(True) if any(marks) and not left else None
    if first is not None:
        keep[first] = True
    ids = [blank if place == first else number for place, number in enumerate(one.ids)]
    chosen = [place for place, kept in enumerate(keep) if kept]
    return replace(
        one,
        ids=tuple(ids[place] for place in chosen),
        word=tuple(one.word[place] for place in chosen),
        pieces=None
        if one.pieces is None
        else tuple(BLANK_PIECE if place == first else one.pieces[place] for place in chosen),
        types=None if one.types is None else tuple(one.types[place] for place in chosen),
    )


def placeholder_id(subject: Subject) -> int:
    """The number of what stands for a word that is not there."""
    pieces = getattr(subject, "pieces", None)
    if pieces is None:
        return UNKNOWN_ID
    for found in (pieces.tokenizer.mask_token_id, pieces.tokenizer.unk_token_id):
        if found is not None:
            return int(found)
    raise NotApplicable("its tokenizer has neither a mask nor an unknown token")
