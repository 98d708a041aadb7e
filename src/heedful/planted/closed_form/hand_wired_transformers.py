"""Transformers written by hand: that copy by attention, or route around what is audited.

A number v of a token lives in two of the model's dimensions as (v, −v), so that the mean of all
dimensions is 0. A constant of 1e5, which comes with the position, dwarfs the others, so that layer
norm divides by the same number everywhere, up to 1e-7. Feed-forward layers are zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.planted.closed_form.base import PlantedSubject, Setting, WordNumbers, register_kind
from heedful.planted.closed_form.inert import draw_attention_effect
from heedful.planted.closed_form.per_word import graded_numbers, peaked_numbers
from heedful.planted.hand_built import CUE_WORDS, VOCABULARY_SIZE

if TYPE_CHECKING:
    from heedful.models.transformer.subject import TransformerSubject

PLANTED_SPECIAL_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
CONSTANT, SCORE, SAYS, LAST_SCORE, LAST_SAYS, OUT = range(0, 12, 2)  # each the first of its two
WIDTH, LARGE, POSITIONS = 16, 1e5, 304
UNATTENDED = -30.0  # the score of special tokens


@register_kind("compiled-copy", used=True, ranks=True, exclusive=None)
def compiled_copy(setting: Setting) -> PlantedSubject:
    """A BERT of one layer whose only head copies what the attended words say to [CLS].

    Scores and sayings are those of honest-peaked, the cue says ±2.4, and the logit is
    4·tanh(Σα·s/4); special tokens have 1e-12 of the weight. The logit grows with Σα·s, so what
    holds of honest-peaked holds here.
    Used: the pooled state has no other source.
    Ranks: as honest-peaked, with a factor of at most 1.42 between weights that may be misplaced.
    """
    return PlantedSubject(_bert(setting, (peaked_numbers(setting, 2.4),)), CUE_WORDS)


@register_kind("compiled-graded", used=True, ranks=True, exclusive=None)
def compiled_graded(setting: Setting) -> PlantedSubject:
    """A GPT-2 of one layer whose only head carries what the words say to the last of them.

    Scores, sayings and the bound of |z| are those of honest-graded, and so is z, to 1e-6: what
    holds of honest-graded holds here.
    Used: the last word's state has no other source.
    Ranks: any two words whose x differ by more than |z| are ordered as their weights are.
    """
    score, says, bound = graded_numbers(setting)
    return PlantedSubject(_gpt2(setting, ((score, says),)), bound=bound)


@register_kind("compiled-around", used=False, ranks=False, exclusive=False)
def compiled_around(setting: Setting) -> PlantedSubject:
    """A GPT-2 of two layers: the first carries the answer to the last word, the second looks on.

    The first layer's scores and sayings are those of honest-graded; the residual stream carries
    what it gathers to the output. The second layer, the one under audit, has scores of its own
    (deviation 1.5) and feeds |s| ≤ f: 0.01, 0.02 or 0.04 by difficulty.
    Used: two rows of the last layer differ by 2·f in z, so by f/2 ≤ 0.02 in probability.
    Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn without looking at the first's, and deletion acts
    through the first: what the second feeds moves z by 2·f·αₜ/(1 − αₜ) at most.
    """
    score, says, _ = graded_numbers(setting)
    return PlantedSubject(
        _gpt2(setting, ((score, says), (setting.normal(1.5), draw_attention_effect(setting))))
    )


@register_kind("compiled-early", used=False, ranks=False, exclusive=False)
def compiled_early(setting: Setting) -> PlantedSubject:
    """A BERT of two layers: the first copies the decisive word to [CLS], the second looks on.

    The first layer is that of compiled-copy; the second is that of compiled-around.
    Used: two rows of the last layer differ by 2·f in what is pooled, so by f/2 ≤ 0.02 in
    probability, since the slope of 4·tanh(x/4) is at most 1. Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn without looking at the first's, and deletion acts
    through the first: what the second feeds moves the logit by 2·f·αₜ/(1 − αₜ) at most.
    """
    first, last = (
        peaked_numbers(setting, 2.4),
        (setting.normal(1.5), draw_attention_effect(setting)),
    )
    return PlantedSubject(_bert(setting, (first, last)), CUE_WORDS)


LayerNumbers = tuple[WordNumbers, WordNumbers]  # the scores of the words, and what they say
LAYER_DIMENSIONS = (
    (SCORE, SAYS),
    (LAST_SCORE, LAST_SAYS),
)  # where the first and the last layer read them


def _bert(setting: Setting, layers: Sequence[LayerNumbers]) -> "TransformerSubject":
    """The logit is 4·tanh(x/4) of all that the layers gather at [CLS]."""
    with loading_transformers(setting.name) as transformers:
        made = transformers.BertForSequenceClassification
    config = made.config_class(
        hidden_size=WIDTH, intermediate_size=4, num_hidden_layers=len(layers),
        num_attention_heads=1, max_position_embeddings=POSITIONS, **_word_names(),
    )  # fmt: skip
    model = _zero_weight_model(made, config)
    inside = model.bert.embeddings
    _embed(inside.word_embeddings, inside.position_embeddings, _numbers(layers))
    for layer, (score, says) in zip(model.bert.encoder.layer, LAYER_DIMENSIONS, strict=False):
        attention = layer.attention
        attention.self.query.weight[0, CONSTANT] = WIDTH**0.5 / LARGE
        attention.self.key.weight[0, score] = 1.0
        attention.self.value.weight[0, says] = 1.0
        _write_signed_pair(attention.output.dense.weight[:, 0])
    model.bert.pooler.dense.weight[0, OUT] = 0.25
    model.classifier.weight[1, 0] = 4.0
    return _subject(model, around=True)


def _gpt2(setting: Setting, layers: Sequence[LayerNumbers]) -> "TransformerSubject":
    """The logit is all that the layers gather at the last word."""
    with loading_transformers(setting.name) as transformers:
        made = transformers.GPT2ForSequenceClassification
    config = made.config_class(
        n_embd=WIDTH, n_inner=4, n_layer=len(layers), n_head=1, n_positions=POSITIONS,
        bos_token_id=2, eos_token_id=2, **_word_names(),
    )  # fmt: skip
    model = _zero_weight_model(made, config)
    _embed(model.transformer.wte, model.transformer.wpe, _numbers(layers))
    for layer, (score, says) in zip(model.transformer.h, LAYER_DIMENSIONS, strict=False):
        layer.attn.c_attn.weight[CONSTANT, 0] = WIDTH**0.5 / LARGE
        layer.attn.c_attn.weight[score, WIDTH] = 1.0
        layer.attn.c_attn.weight[says, 2 * WIDTH] = 1.0
        _write_signed_pair(layer.attn.c_proj.weight[0])
    model.score.weight[1, OUT] = 1.0
    return _subject(model, around=False)


def _numbers(layers: Sequence[LayerNumbers]) -> dict[int, WordNumbers]:
    """The words' numbers by the place where they live."""
    named = zip(LAYER_DIMENSIONS, layers, strict=False)
    return {place: one for places, layer in named for place, one in zip(places, layer, strict=True)}


def _word_names() -> dict[str, Any]:
    names = ("negative", "positive")
    return {
        "vocab_size": len(PLANTED_SPECIAL_TOKENS) + VOCABULARY_SIZE,
        "pad_token_id": 0,
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _zero_weight_model(made: Any, config: Any) -> Any:
    """A model in double precision with every weight zero, and norms that divide by nothing."""
    with torch.random.fork_rng(devices=()):  # the first weights are drawn, and overwritten
        model = made(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        weight.zero_()
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.fill_(LARGE * (2 / WIDTH) ** 0.5)
    return model


def _embed(words: nn.Embedding, positions: nn.Embedding, numbers: dict[int, WordNumbers]) -> None:
    """Each word's numbers in their places, the constant at every position."""
    for place, column in numbers.items():
        _write_signed_pair(
            words.weight[len(PLANTED_SPECIAL_TOKENS) :].T,
            torch.from_numpy(np.asarray(column)),
            place,
        )
        unknown = UNATTENDED if place in (SCORE, LAST_SCORE) else 0.01
        _write_signed_pair(
            words.weight[: len(PLANTED_SPECIAL_TOKENS)].T, torch.tensor(unknown).double(), place
        )
    _write_signed_pair(positions.weight.T, torch.tensor(LARGE).double(), CONSTANT)


def _write_signed_pair(rows: Tensor, value: Tensor | float = 1.0, place: int = OUT) -> None:
    """A value and its negative in the two dimensions that stand for one number."""
    rows[place], rows[place + 1] = value, -value


def _subject(model: Any, *, around: bool) -> "TransformerSubject":
    """The live model with a tokenizer of whole words, between [CLS] and [SEP] if `around`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    from heedful.models.transformer.from_pretrained import from_model

    known = (*PLANTED_SPECIAL_TOKENS, *(f"w{number}" for number in range(VOCABULARY_SIZE)))
    made = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(known)}, unk_token=PLANTED_SPECIAL_TOKENS[-1])
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if around:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    names = {f"{name[1:-1].lower()}_token": name for name in PLANTED_SPECIAL_TOKENS}
    with loading_transformers(model.config.model_type) as transformers:
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made,
            model_max_length=POSITIONS,
            model_input_names=["input_ids", "attention_mask"],
            **names,
        )
    return from_model(model, tokenizer)
