"""Training recipes: attention classifiers as in Jain & Wallace (2019), and fine-tuning."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.core.settings import (
    LARGEST_COUNT,
    Ceiling,
    Fraction,
    PositiveFloat,
    PositiveInt,
    Repeats,
    Seed,
    Width,
    check_on_init,
)
from heedful.models.recurrent.vocabulary import WordTokenizer

NonNegativeFloat = Annotated[float, Ge(0)]


@check_on_init
@dataclass(frozen=True)
class Recipe:
    """How an attention classifier is trained; the defaults are the published ones.

    Without a file of `embeddings` the word vectors are `drawn`: "uniform" between ±0.1, or "normal"
    with mean 0 and standard deviation 1, which is torch's default. `patience` is the number of
    epochs without a better dev score that ends training.
    """

    encoder: str = "bilstm"
    attention: str = "additive"
    embeddings: str | None = None
    embedding: Width = 300
    hidden: Width = 128
    epochs: Repeats = 8
    batch: PositiveInt = 32
    rate: NonNegativeFloat = 1e-3
    decay: NonNegativeFloat = 1e-5
    seed: Seed = 0
    min_df: PositiveInt = 1
    min_words: PositiveInt = 1
    max_words: PositiveInt = 1000
    tokenizer: WordTokenizer = field(default_factory=WordTokenizer)
    patience: Repeats | None = None
    drawn: Literal["uniform", "normal"] = "uniform"


@check_on_init
@dataclass(frozen=True)
class FineTuning:
    """How a transformer is fine-tuned; `encoder` is a transformers folder or a hub id.

    The learning rate rises over a share `warmup` of the steps, then falls to zero by the last.
    """

    encoder: str
    epochs: Repeats = 3
    batch: PositiveInt = 32
    rate: NonNegativeFloat = 5e-5
    decay: NonNegativeFloat = 0.01
    warmup: Fraction = 0.1
    clip: PositiveFloat = 1.0
    max_tokens: Annotated[int, Ge(8), Le(LARGEST_COUNT), Ceiling()] = 512
    seed: Seed = 0
