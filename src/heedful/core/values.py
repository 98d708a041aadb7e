"""Tensors in flight: what one room hands to the next while an audit runs.

Axes: B texts, T tokens, C classes, D width of a state, E width of an embedding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Example:
    """One row of a data set: a text, its label as an index, and what else the row told us."""

    index: int
    text: str
    label: int  # −1 where the data has none
    tokens: tuple[str, ...] | None = None
    rationale: tuple[int, ...] | None = None
    pair: str | None = None  # the second text of a pair
    word_scores: tuple[float, ...] | None = None  # what people gave each token


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text as its subject sees it.

    `word[t]` is the index in `words` of the word that token t belongs to, or −1 for a token the
    subject added itself (start, end, separator): such tokens compute, but are not explained.
    `pieces` are the tokens as the subject spells them, where they are not words; `types` tell the
    two texts of a pair apart, where the subject wants to know.
    """

    index: int
    label: int
    ids: tuple[int, ...]
    word: tuple[int, ...]
    words: tuple[str, ...]
    truncated: bool = False
    pieces: tuple[str, ...] | None = None
    types: tuple[int, ...] | None = None

    @property
    def seen_words(self) -> tuple[str, ...]:
        """The words that have a token; of a text that was cut, those before the cut."""
        return self.words[: max(self.word, default=-1) + 1]

    @property
    def explained(self) -> int:
        """How many tokens an explanation of this text ranks."""
        return sum(w >= 0 for w in self.word)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Several encoded texts, padded to one length.

    `present` is False on padding; `mask` is True on the tokens that carry words of the text, the
    ones an explanation ranks. Special tokens are present and not in the mask. `word` numbers the
    word each of them belongs to, −1 elsewhere; where it is left out every token is a word.
    """

    ids: Int[Tensor, "B T"]
    present: Bool[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    instances: tuple[int, ...]
    types: Int[Tensor, "B T"] | None = None
    word: Int[Tensor, "B T"] | None = None

    def __post_init__(self) -> None:
        if bool((self.mask & ~self.present).any()):
            raise ShapeError("A batch's mask covers padding; mask must lie inside present.")
        if len(self.instances) != len(self.ids):
            raise ShapeError(f"{len(self.ids)} texts came with {len(self.instances)} instances.")

    @property
    def lengths(self) -> Int[Tensor, "B"]:
        """Number of explained tokens of each text."""
        return self.mask.sum(-1)

    def __len__(self) -> int:
        return len(self.instances)

    def without(self, rows: Int[Tensor, "N"], positions: Int[Tensor, "N"]) -> "Batch":
        """N variants: text rows[n] with the token at positions[n] deleted (later ones move up)."""
        width = self.ids.shape[1]
        keep = torch.arange(width - 1, device=self.ids.device).expand(len(rows), -1)
        keep = keep + (keep >= positions[:, None]).long()
        return self._taken(lambda one: one[rows].gather(1, keep), rows)

    def repeated(self, times: int) -> "Batch":
        """The whole batch several times over, one after the other."""
        rows = torch.arange(len(self)).repeat(times)
        return self._taken(lambda one: one.repeat(times, 1), rows)

    def chosen(self, rows: Int[Tensor, "N"]) -> "Batch":
        """Some of the texts, as wide as before."""
        return self._taken(lambda one: one[rows], rows)

    def keeping(self, rows: Int[Tensor, "N"], kept: Bool[Tensor, "N T"]) -> "Batch":
        """N variants: text rows[n] with the tokens kept[n] alone, all equally many."""
        places = kept.nonzero()[:, 1].reshape(len(rows), -1)
        return self._taken(lambda one: one[rows].gather(1, places), rows)

    def _taken(self, take: Callable[[Tensor], Tensor], rows: Int[Tensor, "N"]) -> "Batch":
        return Batch(
            take(self.ids),
            take(self.present),
            take(self.mask),
            tuple(self.instances[row] for row in rows.tolist()),
            None if self.types is None else take(self.types),
            None if self.word is None else take(self.word),
        )

    def distinct(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "B"]]:
        """The first of each distinct text, and for every text which of them it is."""
        seen = torch.where(self.present, self.ids, -1)
        if self.types is not None:
            seen = torch.cat([seen, torch.where(self.present, self.types, -1)], dim=1)
        rows, place = torch.unique(seen, dim=0, return_inverse=True)
        first = torch.full((len(rows),), len(seen)).scatter_reduce(
            0, place, torch.arange(len(seen)), "amin"
        )
        return first, place


def collate(encoded: Sequence[Encoded], *, pad_id: int = 0, left: bool = False) -> Batch:
    """Pad encoded texts to one batch, on the right unless said."""
    width = max(len(e.ids) for e in encoded)
    ids = torch.full((len(encoded), width), pad_id, dtype=torch.long)
    word = torch.full((len(encoded), width), -1, dtype=torch.long)
    present = torch.zeros(len(encoded), width, dtype=torch.bool)
    types = None if encoded[0].types is None else torch.zeros_like(ids)
    for row, one in enumerate(encoded):
        start = width - len(one.ids) if left else 0
        here = slice(start, start + len(one.ids))
        ids[row, here] = torch.tensor(one.ids)
        word[row, here] = torch.tensor(one.word)
        present[row, here] = True
        if types is not None and one.types is not None:
            types[row, here] = torch.tensor(one.types)
    return Batch(ids, present, word >= 0, tuple(e.index for e in encoded), types, word)


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """What one pass of a subject gives: its output, its attention, and the states attended to.

    `attention` is the distribution under audit: one row per text, zero outside the words. Where a
    model has many attentions, its subject states which one this is: `rows` are then the R rows of
    weights behind it (of every head, say), special tokens included, and `attention` is what they
    read as together. `maps` holds every attention over the text, layer by layer; in an
    encoder–decoder those are the decoder's, and the attentions within encoder and within decoder
    stand beside them.
    """

    logits: Float[Tensor, "B C"]
    attention: Float[Tensor, "B T"]
    states: Float[Tensor, "B T D"]
    rows: Float[Tensor, "B R T"] | None = None
    maps: tuple[Float[Tensor, "B H Q K"], ...] = ()
    encoder_maps: tuple[Float[Tensor, "B H K K"], ...] = ()
    decoder_maps: tuple[Float[Tensor, "B H Q Q"], ...] = ()

    def detached(self) -> "Forward":
        """The same numbers without the graph behind them, all of the logits' type."""

        def cut(maps: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(one.detach().to(self.logits.dtype) for one in maps)

        return Forward(
            self.logits.detach(),
            self.attention.detach(),
            self.states.detach(),
            None if self.rows is None else self.rows.detach(),
            cut(self.maps),
            cut(self.encoder_maps),
            cut(self.decoder_maps),
        )

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """Softmax of the logits."""
        return self.logits.softmax(-1)

    @property
    def predicted(self) -> Int[Tensor, "B"]:
        """The class with the highest output."""
        return self.logits.argmax(-1)


Decode = Callable[[Float[Tensor, "..."]], Float[Tensor, "*K B C"]]
"""From weights in the place of the model's own, (*K, B, T) or (*K, B, R, T), to logits."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearDecoder:
    """logits = Σ_t α_t · contributions_t + bias: what a linear output layer makes of attention.

    Knowing this, shuffles, adversaries and leverage need C numbers per token instead of D.
    """

    contributions: Float[Tensor, "B T C"]
    bias: Float[Tensor, "C"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        mixed = torch.einsum("...bt,btc->...bc", attention, self.contributions)
        return mixed + self.bias

    @property
    def influence(self) -> Float[Tensor, "B T"]:
        """‖s_t‖: how far a state moves the logits apart; for two classes |w·h_t| up to a factor.

        Softmax does not see what all classes share, so their mean is taken off first.
        """
        values = self.contributions
        return (values - values.mean(-1, keepdim=True)).square().sum(-1).sqrt()

    def difference(self, one: int, other: int) -> Float[Tensor, "B T"]:
        """Each token's logit of class `one` against class `other`, bias included (Σ α = 1)."""
        values = self.contributions + self.bias
        return values[..., one] - values[..., other]


@dataclass(frozen=True, slots=True, eq=False)
class Blank:
    """What stands in the place of a word that is hidden: a name for reports, and its vector."""

    name: str
    vector: Float[Tensor, "E"]


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One score per token, for one target class per text."""

    method: str
    scores: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]

    def __post_init__(self) -> None:
        if bool(self.scores.masked_fill(self.mask, 0.0).any()):
            raise ShapeError(f"{self.method} scored padding; fill with 0 where mask is False.")
        if not bool(self.scores.isfinite().all()):
            raise ShapeError(f"{self.method} gave a score that is not finite.")
