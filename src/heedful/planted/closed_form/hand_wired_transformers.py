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

from heedful.models.transformer.quiet_loading import loading
from heedful.planted.closed_form.base import Numbers, Plant, Setting, kind
from heedful.planted.closed_form.inert import feed
from heedful.planted.closed_form.per_word import graded, peaked
from heedful.planted.hand_built import CUES, WORDS

if TYPE_CHECKING:
    from heedful.models.transformer.subject import TransformerSubject

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
CONSTANT, SCORE, SAYS, LAST_SCORE, LAST_SAYS, OUT = range(0, 12, 2)  # each the first of its two
WIDTH, LARGE, POSITIONS = 16, 1e5, 304
UNATTENDED = -30.0  # the score of special tokens


@kind("compiled-copy", used=True, ranks=True, exclusive=None)
def compiled_copy(setting: Setting) -> Plant:
    """A BERT of one layer whose only head copies what the attended words say to [CLS].

    Scores and sayings are those of honest-peaked, the cue says ±2.4, and the logit is
    4·tanh(Σα·s/4); special tokens have 1e-12 of the weight. The logit grows with Σα·s, so what
    holds of honest-peaked holds here.
    Used: the pooled state has no other source.
    Ranks: as honest-peaked, with a factor of at most 1.42 between weights that may be misplaced.
    """
    return Plant(_bert(setting, (peaked(setting, 2.4),)), CUES)


@kind("compiled-graded", used=True, ranks=True, exclusive=None)
def compiled_graded(setting: Setting) -> Plant:
    """A GPT-2 of one layer whose only head carries what the words say to the last of them.

    Scores, sayings and the bound of |z| are those of honest-graded, and so is z, to 1e-6: what
    holds of honest-graded holds here.
    Used: the last word's state has no other source.
    Ranks: any two words whose x differ by more than |z| are ordered as their weights are.
    """
    score, says, bound = graded(setting)
    return Plant(_gpt2(setting, ((score, says),)), bound=bound)


@kind("compiled-around", used=False, ranks=False, exclusive=False)
def compiled_around(setting: Setting) -> Plant:
    """A GPT-2 of two layers: the first carries the answer to the last word, the second looks on.

    The first layer's scores and sayings are those of honest-graded; the residual stream carries
    what it gathers to the output. The second layer, the one under audit, has scores of its own
    (deviation 1.5) and feeds |s| ≤ f: 0.01, 0.02 or 0.04 by difficulty.
    Used: two rows of the last layer differ by 2·f in z, so by f/2 ≤ 0.02 in probability.
    Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn without looking at the first's, and deletion acts
    through the first: what the second feeds moves z by 2·f·αₜ/(1 − αₜ) at most.
    """
    score, says, _ = graded(setting)
    return Plant(_gpt2(setting, ((score, says), (setting.normal(1.5), feed(setting)))))


@kind("compiled-early", used=False, ranks=False, exclusive=False)
def compiled_early(setting: Setting) -> Plant:
    """A BERT of two layers: the first copies the decisive word to [CLS], the second looks on.

    The first layer is that of compiled-copy; the second is that of compiled-around.
    Used: two rows of the last layer differ by 2·f in what is pooled, so by f/2 ≤ 0.02 in
    probability, since the slope of 4·tanh(x/4) is at most 1. Exclusive: all rows give that output.
    Ranks: the last layer's scores are drawn without looking at the first's, and deletion acts
    through the first: what the second feeds moves the logit by 2·f·αₜ/(1 − αₜ) at most.
    """
    first, last = peaked(setting, 2.4), (setting.normal(1.5), feed(setting))
    return Plant(_bert(setting, (first, last)), CUES)


Layer = tuple[Numbers, Numbers]  # the scores of the words, and what they say
PLACES = ((SCORE, SAYS), (LAST_SCORE, LAST_SAYS))  # where the first and the last layer read them


def _bert(setting: Setting, layers: Sequence[Layer]) -> "TransformerSubject":
    """The logit is 4·tanh(x/4) of all that the layers gather at [CLS]."""
    with loading(setting.name) as transformers:
        made = transformers.BertForSequenceClassification
    config = made.config_class(
        hidden_size=WIDTH, intermediate_size=4, num_hidden_layers=len(layers),
        num_attention_heads=1, max_position_embeddings=POSITIONS, **_named(),
    )  # fmt: skip
    model = _empty(made, config)
    inside = model.bert.embeddings
    _embed(inside.word_embeddings, inside.position_embeddings, _numbers(layers))
    for layer, (score, says) in zip(model.bert.encoder.layer, PLACES, strict=False):
        attention = layer.attention
        attention.self.query.weight[0, CONSTANT] = WIDTH**0.5 / LARGE
        attention.self.key.weight[0, score] = 1.0
        attention.self.value.weight[0, says] = 1.0
        _put(attention.output.dense.weight[:, 0])
    model.bert.pooler.dense.weight[0, OUT] = 0.25
    model.classifier.weight[1, 0] = 4.0
    return _subject(model, around=True)


def _gpt2(setting: Setting, layers: Sequence[Layer]) -> "TransformerSubject":
    """The logit is all that the layers gather at the last word."""
    with loading(setting.name) as transformers:
        made = transformers.GPT2ForSequenceClassification
    config = made.config_class(
        n_embd=WIDTH, n_inner=4, n_layer=len(layers), n_head=1, n_positions=POSITIONS,
        bos_token_id=2, eos_token_id=2, **_named(),
    )  # fmt: skip
    model = _empty(made, config)
    _embed(model.transformer.wte, model.transformer.wpe, _numbers(layers))
    for layer, (score, says) in zip(model.transformer.h, PLACES, strict=False):
        layer.attn.c_attn.weight[CONSTANT, 0] = WIDTH**0.5 / LARGE
        layer.attn.c_attn.weight[score, WIDTH] = 1.0
        layer.attn.c_attn.weight[says, 2 * WIDTH] = 1.0
        _put(layer.attn.c_proj.weight[0])
    model.score.weight[1, OUT] = 1.0
    return _subject(model, around=False)


def _numbers(layers: Sequence[Layer]) -> dict[int, Numbers]:
    """The words' numbers by the place where they live."""
    named = zip(PLACES, layers, strict=False)
    return {place: one for places, layer in named for place, one in zip(places, layer, strict=True)}


def _named() -> dict[str, Any]:
    names = ("negative", "positive")
    return {
        "vocab_size": len(SPECIAL) + WORDS,
        "pad_token_id": 0,
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _empty(made: Any, config: Any) -> Any:
    """A model in double precision with every weight zero, and norms that divide by nothing."""
    with torch.random.fork_rng(devices=()):  # the first weights are drawn, and overwritten
        model = made(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        weight.zero_()
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.fill_(LARGE * (2 / WIDTH) ** 0.5)
    return model


def _embed(words: nn.Embedding, positions: nn.Embedding, numbers: dict[int, Numbers]) -> None:
    """Each word's numbers in their places, the constant at every position."""
    for place, column in numbers.items():
        _put(words.weight[len(SPECIAL) :].T, torch.from_numpy(np.asarray(column)), place)
        unknown = UNATTENDED if place in (SCORE, LAST_SCORE) else 0.01
        _put(words.weight[: len(SPECIAL)].T, torch.tensor(unknown).double(), place)
    _put(positions.weight.T, torch.tensor(LARGE).double(), CONSTANT)


def _put(rows: Tensor, value: Tensor | float = 1.0, place: int = OUT) -> None:
    """A value and its negative in the two dimensions that stand for one number."""
    rows[place], rows[place + 1] = value, -value


def _subject(model: Any, *, around: bool) -> "TransformerSubject":
    """The live model with a tokenizer of whole words, between [CLS] and [SEP] if `around`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    from heedful.models.transformer.from_pretrained import from_model

    known = (*SPECIAL, *(f"w{number}" for number in range(WORDS)))
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token=SPECIAL[-1]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if around:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    with loading(model.config.model_type) as transformers:
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made,
            model_max_length=POSITIONS,
            model_input_names=["input_ids", "attention_mask"],
            **names,
        )
    return from_model(model, tokenizer)
