"""Texts with holes, and a copy of the base model that learns to read them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.context import EncodedTexts
from heedful.training.variants.objectives import BatchOutput, Objective

PADDING_ID = (
    0  # the padding word of an attention classifier: its vector is zero, as that of a blank is
)


@dataclass(frozen=True)
class RandomMasks:
    """How texts get holes: each text `copies` times beside the whole, by the draws of a seed."""

    seed: int = 0
    copies: int = 4

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise ConfigError(f"copies must be at least 1, not {self.copies}.")

    def texts(self, encoded: Sequence[Encoded], blank: int) -> list[Encoded]:
        """The texts, then all of them with holes, as often as asked."""
        return [
            mask_random_words(one, self.seed, copy, blank) if copy else one
            for copy in range(self.copies + 1)
            for one in encoded
        ]

    def objective(self, texts: EncodedTexts) -> "DistillationObjective":
        """To say of every one of them what the base model says of the whole."""
        return DistillationObjective(texts.outlook.probabilities.repeat(self.copies + 1, 1))


def mask_random_words(one: Encoded, seed: int, copy: int, blank: int) -> Encoded:
    """The text with a random share of its words blank, each share from none to all as likely."""
    words = sorted({word for word in one.word if word >= 0})
    draw = generator(seed, f"holes, copy {copy}", one.index)
    count = int(draw.integers(len(words) + 1))
    gone = {words[place] for place in draw.permutation(len(words))[:count].tolist()}
    ids = (
        blank if word in gone else number for number, word in zip(one.ids, one.word, strict=True)
    )
    return replace(one, ids=tuple(ids))


def masking_token_id(subject: Subject) -> int:
    """The token whose vector is what masking puts in the place of a word."""
    if isinstance(subject, RecurrentSubject):
        return PADDING_ID
    tokenizer = subject.subword_tokenizer.tokenizer  # type: ignore[attr-defined]
    ends = {tokenizer.eos_token_id, tokenizer.bos_token_id}
    for found in (tokenizer.mask_token_id, tokenizer.unk_token_id):
        if found is not None and found not in ends:
            return int(found)
    raise NotApplicable("its tokenizer has neither a mask nor an unknown token to make holes with")


@dataclass(frozen=True, eq=False)
class DistillationObjective:
    """To say what another said: cross-entropy with its outputs.

    Of a text with holes the best answer is the mean of what was said of whole texts that look so.
    """

    outputs: Float[Tensor, "n C"]

    def loss(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The mean over the texts."""
        return self._each(seen, rows).mean()

    def logits(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:  # noqa: ARG002
        """The model's own."""
        return seen.logits

    def text_scores(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The loss of each text, turned round."""
        return -self._each(seen, rows)

    def _each(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        wanted = self.outputs[list(rows)].to(seen.logits)
        return nn.functional.cross_entropy(seen.logits, wanted, reduction="none")


def prepare_masked_training(
    subject: Subject, holes: RandomMasks, both: tuple[EncodedTexts, EncodedTexts]
) -> tuple[tuple[list[Encoded], list[Encoded]], tuple[Objective, Objective]]:
    """Training and dev texts with holes, and what to strive for on each."""
    blank = masking_token_id(subject)
    known, judged = (holes.texts(texts.encoded, blank) for texts in both)
    return (known, judged), (holes.objective(both[0]), holes.objective(both[1]))
