"""BERT models with hand-set weights, of any number of heads, whose special tokens hold weight.

A number v of a token occupies two of the model's dimensions as (v, −v), so that the mean of all
dimensions is 0. A constant in the position embedding dominates the others, so that layer norm
divides by the same number everywhere, up to 1e-6. Feed-forward layers are zero.

The weight of a token in a head is ω/(Ω + Σω): Ω is that of [CLS] and [SEP] together, which have no
value, and the sum runs over the words. The logit is the sum over heads of Σω·v/(Ω + Σω), inside a
tanh that keeps its order. With D = Ω + Σω, adding a word moves z of a head by ω·(v − z)/(D + ω):

* If all words that matter in a text have the same value, this grows with ω.
* If ω·z is small, it is ω·v/D, and grows with ω·v.
* A word without a value changes p by 0.224·ω/D at most, since z·p(1 − p) ≤ 0.224.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.planted.closed_form.transformer_kinds import (
    PLANTED_SPECIAL_TOKENS,
    make_word_level_subject,
    write_signed_pair,
)
from heedful.planted.influence.composed_model import WordNumbers, WordRoles
from heedful.planted.influence.kind import InfluenceSetting
from heedful.planted.texts import VOCABULARY_SIZE, WORDS

if TYPE_CHECKING:
    from heedful.models.transformer.subject import TransformerSubject

LARGE, POSITIONS = 1e6, 128
POOLER_SCALE = 20.0  # the logit is this times tanh(z over this)
CONSTANT, OUT = 0, 2  # first of two dimensions; those of the heads follow
FIRST_WORD = len(PLANTED_SPECIAL_TOKENS)
CLS, SEP, UNKNOWN = 1, 2, 3
SINK_WEIGHT = 1.0  # Ω


@dataclass(frozen=True, eq=False)
class WiredHead:
    """One head: the weight ω and the value of every word, and how [CLS] and [SEP] share Ω.

    With `reads_sum` its values are what the layers before wrote, times `values[0]`.
    """

    weights: WordNumbers
    values: WordNumbers
    on_separator: float = 0.5
    reads_sum: bool = False
    sink: float = SINK_WEIGHT

    @property
    def scores(self) -> WordNumbers:
        """Of special tokens and words: the logarithm of their weights."""
        special = np.full(FIRST_WORD, 1e-9)
        special[CLS], special[SEP] = 1.0 - self.on_separator, self.on_separator
        scores: WordNumbers = np.log(np.concatenate([special * self.sink, self.weights]))
        return scores

    @property
    def all_values(self) -> WordNumbers:
        """Of special tokens and words.

        Only the unknown token has one: the texts that the transformer is checked on consist of it.
        """
        special = np.zeros(FIRST_WORD)
        special[UNKNOWN] = 0.01
        return np.concatenate([special, self.values])


def wire_transformer(
    setting: InfluenceSetting, layers: Sequence[Sequence[WiredHead]], *, bias: float = 0.0
) -> "TransformerSubject":
    """A classifier of two classes: the logit of the second is the sum of its heads, plus `bias`."""
    with loading_transformers(setting.kind) as transformers:
        model_class = transformers.BertForSequenceClassification
    heads = len(layers[0])
    numbers = 2 + 2 * heads * len(layers)
    width = heads * (2 * numbers // heads + 1)
    config = model_class.config_class(
        hidden_size=width, intermediate_size=4, num_hidden_layers=len(layers),
        num_attention_heads=heads, max_position_embeddings=POSITIONS, pad_token_id=0,
        vocab_size=FIRST_WORD + VOCABULARY_SIZE, id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )  # fmt: skip
    model = _zero_weight_model(model_class, config)
    embeddings = model.bert.embeddings
    constant = torch.tensor(LARGE).double()
    write_signed_pair(embeddings.position_embeddings.weight.T, constant, CONSTANT)
    for number, (layer, wired) in enumerate(zip(model.bert.encoder.layer, layers, strict=True)):
        for place, head in enumerate(wired):
            at = OUT + 2 + 4 * (number * heads + place)
            _wire_head(embeddings.word_embeddings.weight, layer.attention, head, place, at)
    model.bert.pooler.dense.weight[0, OUT] = 1.0 / POOLER_SCALE
    model.classifier.weight[1, 0], model.classifier.bias[1] = POOLER_SCALE, bias
    return make_word_level_subject(model, WORDS, special_tokens=True)


def _wire_head(words: Tensor, attention: Any, head: WiredHead, place: int, at: int) -> None:
    """Write a head's numbers to the dimensions from `at`, and read them in head `place`."""
    inside = attention.self
    size = inside.attention_head_size
    row = place * size
    write_signed_pair(words.T, torch.from_numpy(head.scores), at)
    write_signed_pair(words.T, torch.from_numpy(head.all_values), at + 2)
    inside.query.weight[row, CONSTANT] = size**0.5 / LARGE
    inside.key.weight[row, at] = 1.0
    source, factor = (OUT, float(head.values[0])) if head.reads_sum else (at + 2, 1.0)
    inside.value.weight[row, source] = factor
    write_signed_pair(attention.output.dense.weight[:, row], 1.0, OUT)


def _zero_weight_model(model_class: Any, config: Any) -> Any:
    """A float64 model with every weight zero and layer norms that keep the scale."""
    with torch.random.fork_rng(devices=()):  # keeps the global stream
        model = model_class(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        weight.zero_()
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.fill_(LARGE * (2 / config.hidden_size) ** 0.5)
    return model


@dataclass(frozen=True, eq=False)
class SinkWeights:
    """Weights of words that are small beside Ω = 1, and the value that all of them have."""

    weights: WordNumbers
    value: float


def draw_sink_weights(
    setting: InfluenceSetting, roles: WordRoles, *, scale: float = 1.0
) -> SinkWeights:
    """Weights of three tiers around 0.33, 0.2 and 0.13 times `scale`; neutral words have little.

    Those have between 0.002·`scale` and 0.02·`scale`. The value is such that a text with a word of
    the first tier and two of each other has z = 4.
    """
    draw = setting.draw("weights beside a sink")
    tiers = np.array([0.33, 0.2, 0.13, 0.0])[roles.tiers]
    jitter = draw.uniform(0.93, 1.07, VOCABULARY_SIZE)
    neutral = np.exp(draw.uniform(np.log(0.002), np.log(0.02), VOCABULARY_SIZE))
    typical = scale * (0.33 + 2 * 0.2 + 2 * 0.13)
    weights = scale * np.where(roles.neutral, neutral, tiers * jitter)
    return SinkWeights(weights, 4.0 * (1.0 + typical) / typical)


def signed_values(roles: WordRoles, value: float) -> WordNumbers:
    """± `value` by the class of a word; 0 for neutral words."""
    return np.where(roles.neutral, 0.0, value * (2.0 * roles.sides - 1.0))


def values_for_amounts(roles: WordRoles, weights: WordNumbers) -> WordNumbers:
    """Values with which a word of any weight ω adds its amount: ± amount/ω."""
    signed: WordNumbers = roles.amounts * (2.0 * roles.sides - 1.0) / weights
    return np.where(roles.neutral, 0.0, signed)
