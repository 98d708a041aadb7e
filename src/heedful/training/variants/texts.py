"""The texts that variants are trained on: whole, without hidden words, or with masked words."""

from collections.abc import Callable, Collection, Hashable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal
from weakref import WeakKeyDictionary

from annotated_types import Gt, Lt
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.rng import generator
from heedful.core.settings import Repeats, check_on_init
from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.training.loop.predictions import Predictions, predict_all
from heedful.training.objectives import DistillationObjective

HiddenSource = Literal["list", "rationale", "saliency"]
BLANK_PIECE = "…"  # the spelling of a blank token
PADDING_ID = 0  # the padding word of an attention classifier; like a blank it has the vector zero
UNKNOWN_ID = 1  # the id of the unknown word of an attention classifier


@check_on_init
@dataclass(frozen=True)
class HiddenWords:
    """Which words of a text are hidden.

    `source` is "list", the given `words`; "rationale", the rationale of the data; or "saliency",
    the `share` of each text's words, at least one, that a `method` with its `settings` ranks
    highest for the base model's prediction.
    """

    source: HiddenSource
    words: tuple[str, ...] = ()
    method: str = "leave_one_out"
    share: Annotated[float, Gt(0), Lt(1)] = 0.1
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "settings", tuple((key, value) for key, value in self.settings))
        if (self.source == "list") != bool(self.words):
            raise ConfigError("Give words with the source list, and only with it.")

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
    pieces, types = one.pieces, one.types
    return replace(
        one,
        ids=tuple(ids[at] for at in chosen),
        word=tuple(one.word[at] for at in chosen),
        pieces=pieces and tuple(BLANK_PIECE if at == first else pieces[at] for at in chosen),
        types=types and tuple(types[at] for at in chosen),
    )


@check_on_init
@dataclass(frozen=True)
class RandomMasks:
    """Random masking: each whole text, then `copies` masked copies of it, drawn from `seed`."""

    seed: int = 0
    copies: Repeats = 4

    def masked_texts(self, encoded: Sequence[Encoded], blank: int) -> list[Encoded]:
        """All texts whole, then all texts masked, `copies` times."""
        return [
            mask_random_words(one, self.seed, copy, blank) if copy else one
            for copy in range(self.copies + 1)
            for one in encoded
        ]

    def objective(self, texts: "EncodedTexts") -> DistillationObjective:
        """Predict for each of them what the base model predicts for the whole text."""
        return DistillationObjective(
            texts.base_predictions.probabilities.repeat(self.copies + 1, 1)
        )


def mask_random_words(one: Encoded, seed: int, copy: int, blank: int) -> Encoded:
    """The text with a random number of its words masked, uniform between none and all."""
    words = sorted({word for word in one.word if word >= 0})
    draw = generator(seed, f"holes, copy {copy}", one.content)
    count = int(draw.integers(len(words) + 1))
    masked = {words[index] for index in draw.permutation(len(words))[:count].tolist()}
    ids = (blank if word in masked else id_ for id_, word in zip(one.ids, one.word, strict=True))
    return replace(one, ids=tuple(ids))


def placeholder_id(subject: Subject) -> int:
    """The token id that replaces a deleted word where a text must not be empty."""
    return _mask_or_unknown_id(subject, UNKNOWN_ID)


def masking_token_id(subject: Subject) -> int:
    """The token whose vector replaces a masked word."""
    tokenizer = getattr(getattr(subject, "subword_tokenizer", None), "tokenizer", None)
    ends = {getattr(tokenizer, f"{end}_token_id", None) for end in ("eos", "bos")}
    return _mask_or_unknown_id(subject, PADDING_ID, refused=ends)


def _mask_or_unknown_id(
    subject: Subject, word_id: int, refused: Collection[int | None] = ()
) -> int:
    """The mask token or else the unknown token of a transformer; `word_id` for other models."""
    pieces = getattr(subject, "subword_tokenizer", None)
    if pieces is None:
        return word_id
    for token in (pieces.tokenizer.mask_token_id, pieces.tokenizer.unk_token_id):
        if token is not None and token not in refused:
            return int(token)
    raise NotApplicable("its tokenizer has neither a mask nor an unknown token to mask words with")


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts as the base model reads them, with cached predictions and hidden words.

    Texts of fewer than `min_words` words are left out; `mark` finds the hidden words. The
    predictions of a subject are cached as long as the subject is in memory.
    """

    base: Subject
    examples: Sequence[Example]
    min_words: int
    mark: HiddenWordMarker
    hidden_cache: dict[HiddenWords, list[Tensor]] = field(default_factory=dict)
    predictions: MutableMapping[Subject, Predictions] = field(default_factory=WeakKeyDictionary)
    score_cache: ScoreCache = field(default_factory=dict)

    @cached_property
    def _pairs(self) -> list[tuple[Example, Encoded]]:
        pairs = ((one, self.base.encode(one)) for one in self.examples)
        return [pair for pair in pairs if pair[1].explained_tokens >= self.min_words]

    @cached_property
    def encoded(self) -> list[Encoded]:
        """The texts that are long enough, encoded."""
        return [encoded for _, encoded in self._pairs]

    @property
    def base_predictions(self) -> Predictions:
        """Probabilities and attention of the base model."""
        return self.predict_with(self.base)

    def predict_with(self, subject: Subject) -> Predictions:
        """Probabilities and attention of a subject, computed once."""
        if subject not in self.predictions:
            self.predictions[subject] = predict_all(subject, self.encoded)
        return self.predictions[subject]

    def hidden(self, hidden: HiddenWords) -> list[Bool[Tensor, "_"]]:
        """For each text, which of its tokens are hidden."""
        if hidden not in self.hidden_cache:
            examples = [example for example, _ in self._pairs]
            self.hidden_cache[hidden] = self.mark(
                hidden, self.base, examples, self.encoded, self.score_cache
            )
        return self.hidden_cache[hidden]

    def shuffled(self, seed: int) -> "EncodedTexts":
        """The texts with their labels permuted; class frequencies stay the same."""
        order = generator(seed, "shuffled labels").permutation(len(self.examples)).tolist()
        examples = [
            replace(one, label=self.examples[index].label)
            for one, index in zip(self.examples, order, strict=True)
        ]
        return EncodedTexts(self.base, examples, self.min_words, self.mark)

    def without(self, hidden: HiddenWords, blank: int) -> list[Encoded]:
        """The texts with their hidden tokens deleted."""
        pairs = zip(self.encoded, self.hidden(hidden), strict=True)
        return [delete_hidden(one, marks, blank=blank) for one, marks in pairs]
