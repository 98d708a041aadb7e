"""Kinds of transformers with hand-set weights: they copy by attention, or bypass the last layer.

A number v of a token occupies two of the model's dimensions as (v, −v), so that the mean of all
dimensions is 0. A constant of 1e5 in the position embedding dominates the others, so that layer
norm divides by the same number everywhere, up to 1e-7. Feed-forward layers are zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.planted.case import Setting, WordNumbers, register_kind
from heedful.planted.closed_form.classifier_kinds import (
    draw_attention_effect,
    graded_numbers,
    peaked_numbers,
)
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE, WORDS, PlantedSubject

if TYPE_CHECKING:
    from heedful.models.transformer.subject import TransformerSubject

PLANTED_SPECIAL_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
CONSTANT, SCORE, VALUE, LAST_SCORE, LAST_VALUE, OUT = range(0, 12, 2)  # first of two dimensions
LAYER_DIMENSIONS = ((SCORE, VALUE), (LAST_SCORE, LAST_VALUE))  # of the first and the last layer
LayerNumbers = tuple[WordNumbers, WordNumbers]  # scores and log-odds of the words
WIDTH, LARGE, POSITIONS = 16, 1e5, 304
UNATTENDED = -30.0  # score of special tokens


@register_kind("compiled-copy", used=True, ranks=True, exclusive=None)
def compiled_copy(setting: Setting) -> PlantedSubject:
    """A BERT of one layer whose only head copies the log-odds of the attended words to [CLS].

    Scores and log-odds are those of honest-peaked with a cue of ±2.4, and the logit is
    4·tanh(Σα·s/4); special tokens have 1e-12 of the weight. The logit grows with Σα·s, so the
    truths of honest-peaked hold here.
    Used: the pooled state has no other source.
    Ranks: as honest-peaked, with a factor of at most 1.42 between weights that may be misplaced.
    """
    return PlantedSubject(_bert(setting, (peaked_numbers(setting, 2.4),)), CUE_WORDS)


@register_kind("compiled-graded", used=True, ranks=True, exclusive=None)
def compiled_graded(setting: Setting) -> PlantedSubject:
    """A GPT-2 of one layer whose only head copies the log-odds of the words to the last word.

    Scores, log-odds and the bound of |z| are those of honest-graded, and so is z, to 1e-6: the
    truths of honest-graded hold here.
    Used: the last word's state has no other source.
    Ranks: any two words whose x differ by more than |z| are ordered as their weights are.
    """
    scores, log_odds, bound = graded_numbers(setting)
    return PlantedSubject(_gpt2(setting, ((scores, log_odds),)), bound=bound)


@register_kind("compiled-around", used=False, ranks=False, exclusive=False)
def compiled_around(setting: Setting) -> PlantedSubject:
    """A GPT-2 of two layers: the first copies the answer to the last word, the second is inert.

    The first layer's scores and log-odds are those of honest-graded; the residual stream carries
    its result to the output. The second layer, the one under audit, has scores of its own
    (standard deviation 1.5) and contributes |s| ≤ f: 0.01, 0.02 or 0.04 by difficulty.
    Used: two rows of the last layer differ by 2·f in z, so by f/2 ≤ 0.02 in probability.
    Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn independently of the first's, and deletion acts
    through the first: what the second contributes moves z by 2·f·αₜ/(1 − αₜ) at most.
    """
    scores, log_odds, _ = graded_numbers(setting)
    return PlantedSubject(_gpt2(setting, ((scores, log_odds), _inert_layer(setting))))


@register_kind("compiled-early", used=False, ranks=False, exclusive=False)
def compiled_early(setting: Setting) -> PlantedSubject:
    """A BERT of two layers: the first copies the decisive word to [CLS], the second is inert.

    The first layer is that of compiled-copy; the second is that of compiled-around.
    Used: two rows of the last layer differ by 2·f in what is pooled, so by f/2 ≤ 0.02 in
    probability, since the slope of 4·tanh(x/4) is at most 1. Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn independently of the first's, and deletion acts
    through the first: what the second contributes moves the logit by 2·f·αₜ/(1 − αₜ) at most.
    """
    first = peaked_numbers(setting, 2.4)
    return PlantedSubject(_bert(setting, (first, _inert_layer(setting))), CUE_WORDS)


def _inert_layer(setting: Setting) -> LayerNumbers:
    return setting.normal(1.5), draw_attention_effect(setting)


def _bert(setting: Setting, layers: Sequence[LayerNumbers]) -> "TransformerSubject":
    """The logit is 4·tanh(x/4), x the sum of what the layers copy to [CLS]."""
    with loading_transformers(setting.name) as transformers:
        model_class = transformers.BertForSequenceClassification
    config = model_class.config_class(
        hidden_size=WIDTH, intermediate_size=4, num_hidden_layers=len(layers),
        num_attention_heads=1, max_position_embeddings=POSITIONS, **_vocabulary_config(),
    )  # fmt: skip
    model = _zero_weight_model(model_class, config)
    inside = model.bert.embeddings
    _embed(inside.word_embeddings, inside.position_embeddings, _numbers(layers))
    for layer, (score, value) in zip(model.bert.encoder.layer, LAYER_DIMENSIONS, strict=False):
        attention = layer.attention
        attention.self.query.weight[0, CONSTANT] = WIDTH**0.5 / LARGE
        attention.self.key.weight[0, score] = 1.0
        attention.self.value.weight[0, value] = 1.0
        write_signed_pair(attention.output.dense.weight[:, 0])
    model.bert.pooler.dense.weight[0, OUT] = 0.25
    model.classifier.weight[1, 0] = 4.0
    return make_word_level_subject(model, WORDS, special_tokens=True)


def _gpt2(setting: Setting, layers: Sequence[LayerNumbers]) -> "TransformerSubject":
    """The logit is the sum of what the layers copy to the last word."""
    with loading_transformers(setting.name) as transformers:
        model_class = transformers.GPT2ForSequenceClassification
    config = model_class.config_class(
        n_embd=WIDTH, n_inner=4, n_layer=len(layers), n_head=1, n_positions=POSITIONS,
        bos_token_id=2, eos_token_id=2, **_vocabulary_config(),
    )  # fmt: skip
    model = _zero_weight_model(model_class, config)
    _embed(model.transformer.wte, model.transformer.wpe, _numbers(layers))
    for layer, (score, value) in zip(model.transformer.h, LAYER_DIMENSIONS, strict=False):
        layer.attn.c_attn.weight[CONSTANT, 0] = WIDTH**0.5 / LARGE
        layer.attn.c_attn.weight[score, WIDTH] = 1.0
        layer.attn.c_attn.weight[value, 2 * WIDTH] = 1.0
        write_signed_pair(layer.attn.c_proj.weight[0])
    model.score.weight[1, OUT] = 1.0
    return make_word_level_subject(model, WORDS, special_tokens=False)


def _numbers(layers: Sequence[LayerNumbers]) -> dict[int, WordNumbers]:
    """The words' numbers by the dimension that they occupy."""
    pairs = zip(LAYER_DIMENSIONS, layers, strict=False)
    return {at: one for places, layer in pairs for at, one in zip(places, layer, strict=True)}


def _vocabulary_config() -> dict[str, Any]:
    names = ("negative", "positive")
    return {
        "vocab_size": len(PLANTED_SPECIAL_TOKENS) + VOCABULARY_SIZE,
        "pad_token_id": 0,
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _zero_weight_model(model_class: Any, config: Any) -> Any:
    """A float64 model with every weight zero and layer norms that keep the scale."""
    with torch.random.fork_rng(devices=()):  # keeps the global stream
        model = model_class(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        weight.zero_()
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.fill_(LARGE * (2 / WIDTH) ** 0.5)
    return model


def _embed(words: nn.Embedding, positions: nn.Embedding, numbers: dict[int, WordNumbers]) -> None:
    """Write each word's numbers to their dimensions, and the constant to every position."""
    first = len(PLANTED_SPECIAL_TOKENS)
    for place, column in numbers.items():
        write_signed_pair(words.weight[first:].T, torch.from_numpy(np.asarray(column)), place)
        special = UNATTENDED if place in (SCORE, LAST_SCORE) else 0.01
        write_signed_pair(words.weight[:first].T, torch.tensor(special).double(), place)
    write_signed_pair(positions.weight.T, torch.tensor(LARGE).double(), CONSTANT)


def write_signed_pair(rows: Tensor, value: Tensor | float = 1.0, place: int = OUT) -> None:
    """Write a value and its negative to the two dimensions of one number."""
    rows[place], rows[place + 1] = value, -value


def make_word_level_subject(
    model: Any, words: Sequence[str], *, special_tokens: bool
) -> "TransformerSubject":
    """The model with a word-level tokenizer; `special_tokens` adds [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    from heedful.models.transformer.from_pretrained import from_model

    ids = {word: number for number, word in enumerate((*PLANTED_SPECIAL_TOKENS, *words))}
    word_level = Tokenizer(models.WordLevel(ids, unk_token=PLANTED_SPECIAL_TOKENS[-1]))
    word_level.pre_tokenizer = pre_tokenizers.Whitespace()
    if special_tokens:
        word_level.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    names = {f"{name[1:-1].lower()}_token": name for name in PLANTED_SPECIAL_TOKENS}
    with loading_transformers(model.config.model_type) as transformers:
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=word_level,
            model_max_length=model.config.max_position_embeddings,
            model_input_names=["input_ids", "attention_mask"],
            **names,
        )
    return from_model(model, tokenizer)
