"""Texts with randomly masked words, on which a copy of the base model is fine-tuned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.objectives import DistillationObjective
from heedful.training.variants.context import EncodedTexts

PADDING_ID = 0  # the padding word of an attention classifier; like a blank it has the vector zero


@dataclass(frozen=True)
class RandomMasks:
    """Random masking: each whole text, then `copies` masked copies of it, drawn from `seed`."""

    seed: int = 0
    copies: int = 4

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise ConfigError(f"copies must be at least 1, not {self.copies}.")

    def masked_texts(self, encoded: Sequence[Encoded], blank: int) -> list[Encoded]:
        """All texts whole, then all texts masked, `copies` times."""
        return [
            mask_random_words(one, self.seed, copy, blank) if copy else one
            for copy in range(self.copies + 1)
            for one in encoded
        ]

    def objective(self, texts: EncodedTexts) -> DistillationObjective:
        """Predict for each of them what the base model predicts for the whole text."""
        return DistillationObjective(
            texts.base_predictions.probabilities.repeat(self.copies + 1, 1)
        )


def mask_random_words(one: Encoded, seed: int, copy: int, blank: int) -> Encoded:
    """The text with a random number of its words masked, uniform between none and all."""
    words = sorted({word for word in one.word if word >= 0})
    draw = generator(seed, f"holes, copy {copy}", one.index)
    count = int(draw.integers(len(words) + 1))
    masked = {words[index] for index in draw.permutation(len(words))[:count].tolist()}
    ids = (blank if word in masked else id_ for id_, word in zip(one.ids, one.word, strict=True))
    return replace(one, ids=tuple(ids))


def masking_token_id(subject: Subject) -> int:
    """The token whose vector replaces a masked word."""
    if isinstance(subject, RecurrentSubject):
        return PADDING_ID
    tokenizer = subject.subword_tokenizer.tokenizer  # type: ignore[attr-defined]
    ends = {tokenizer.eos_token_id, tokenizer.bos_token_id}
    for token in (tokenizer.mask_token_id, tokenizer.unk_token_id):
        if token is not None and token not in ends:
            return int(token)
    raise NotApplicable("its tokenizer has neither a mask nor an unknown token to mask words with")
