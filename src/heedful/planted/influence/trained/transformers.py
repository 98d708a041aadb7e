"""Trained transformers: BERTs of 1 to 3 layers, trained from scratch on sets of words.

The attention under audit is the row of [CLS] in the last layer, the mean of its heads. Networks are
trained with losses on the output, on that row, and on the output under other rows, other attended
vectors or other residual streams (`LastLayer.log_odds`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.models.transformer.quiet_loading import loading_transformers
from heedful.planted.closed_form.transformer_kinds import (
    PLANTED_SPECIAL_TOKENS,
    make_word_level_subject,
)
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel
from heedful.planted.influence.trained.fit import FitPlan, fit_parameters
from heedful.planted.influence.trained.losses import (
    decoy_scores,
    ordered_scores,
    output_loss,
    random_scores,
    reversed_scores,
    row_loss,
    score_rows,
)
from heedful.planted.influence.trained.rule import (
    SUM_LIMIT,
    VOCABULARY_SIZE,
    WORDS,
    PerWord,
    Rule,
    TrainingSets,
    draw_rule,
)
from heedful.planted.influence.trained.trial import trained_kind
from heedful.training.objectives import hiding_penalty

FAMILY = "trained-transformers"
START_ID, END_ID = 1, 2  # [CLS] and [SEP]
WIDTH, POSITIONS, LEARNING_RATE = 32, 64, 0.004
ONE_LAYER_STEPS, STEPS = 400, 800
NO_SCORE = -1e9
SINK_STRENGTH = 1.5  # what [CLS] and [SEP] have together where words have their strength


@dataclass(frozen=True, eq=False)
class LastLayer:
    """The last layer of a BERT for the position [CLS], which alone is pooled.

    `states` are its input, `values` those of each head, `rows` its attention, special tokens
    included.
    """

    model: Any
    sets: TrainingSets
    states: Float[Tensor, "B T W"]
    values: Float[Tensor, "B H T D"]
    rows: Float[Tensor, "B H T"]

    def log_odds(
        self,
        rows: Float[Tensor, "B H T"] | None = None,
        *,
        shuffled: str = "",
    ) -> Float[Tensor, "B"]:
        """The output under its own or other rows.

        `shuffled` "attended" or "residual" takes that input of the layer from another text.
        """
        weights = self.rows if rows is None else rows
        attended = torch.einsum("bht,bhtd->bhd", weights, self.values).flatten(1)[:, None]
        residual = self.states[:, :1]
        if shuffled == "attended":
            attended = attended.roll(1, 0)
        if shuffled == "residual":
            residual = residual.roll(1, 0)
        layer = self.model.bert.encoder.layer[-1]
        inside = layer.attention.output(attended, residual)
        pooled = self.model.bert.pooler(layer.output(layer.intermediate(inside), inside))
        logits: Tensor = self.model.classifier(pooled)
        return logits[:, 1] - logits[:, 0]

    @property
    def task(self) -> Float[Tensor, ""]:
        """The output follows the rule."""
        return output_loss(self.log_odds(), self.sets.log_odds)

    def row(self, scores: PerWord) -> Float[Tensor, ""]:
        """The attention of every head follows the scores of words and special tokens."""
        target = score_rows(scores, self.sets.ids, self.sets.present)
        return row_loss(self.rows.flatten(0, 1), target.repeat_interleave(self.rows.shape[1], 0))

    def place(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B H T"]:
        """Rows whose weight on words is shared out as given; special tokens keep theirs."""
        mask = self.sets.mask[:, None]
        mass = (self.rows * mask).sum(-1, keepdim=True)
        return torch.where(mask, mass * weights[:, None], self.rows)


LayerLoss = Callable[[LastLayer], Float[Tensor, ""]]


def build_untrained(setting: InfluenceSetting, *, layers: int, heads: int) -> Any:
    """An untrained BERT over the words of the rule; position embeddings begin small."""
    with loading_transformers(setting.kind) as transformers:
        model_class = transformers.BertForSequenceClassification
    names = ("negative", "positive")
    config = model_class.config_class(
        vocab_size=len(PLANTED_SPECIAL_TOKENS) + VOCABULARY_SIZE, hidden_size=WIDTH,
        intermediate_size=2 * WIDTH, num_hidden_layers=layers, num_attention_heads=heads,
        max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.15, pad_token_id=0,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )  # fmt: skip
    seed = int(setting.draw("first weights").integers(2**31))
    with torch.random.fork_rng(devices=()):  # layers are initialised from the global stream
        torch.manual_seed(seed)
        model = model_class(config)
    model.bert.embeddings.position_embeddings.weight.data *= 0.1
    return model.train()


def run_layers(model: Any, sets: TrainingSets) -> LastLayer:
    """All layers but the last, and what the last one reads."""
    states = model.bert.embeddings(sets.ids)
    *first, last = model.bert.encoder.layer
    hidden = torch.where(sets.present, 0.0, NO_SCORE)[:, None, None]
    for layer in first:
        rows, values = _attend(layer, states, states, hidden)
        attended = torch.einsum("bhqt,bhtd->bqhd", rows, values).flatten(2)
        inside = layer.attention.output(attended, states)
        states = layer.output(layer.intermediate(inside), inside)
    rows, values = _attend(last, states[:, :1], states, hidden)
    return LastLayer(model, sets, states, values, rows[:, :, 0])


def _attend(
    layer: Any,
    queries: Float[Tensor, "B Q W"],
    states: Float[Tensor, "B T W"],
    hidden: Float[Tensor, "B 1 1 T"],
) -> tuple[Float[Tensor, "B H Q T"], Float[Tensor, "B H T D"]]:
    """Rows and values of the heads of a layer."""
    own = layer.attention.self
    query, key, value = (
        project(one).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)
        for project, one in ((own.query, queries), (own.key, states), (own.value, states))
    )
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return (scores + hidden).softmax(-1), value


def train_network(
    setting: InfluenceSetting, model: Any, rule: Rule, loss: LayerLoss
) -> PlantedModel:
    """Fit the whole network to the loss, and freeze it in float64."""
    steps = ONE_LAYER_STEPS if len(model.bert.encoder.layer) == 1 else STEPS
    plan = FitPlan(START_ID, END_ID, steps, LEARNING_RATE)
    fit_parameters(
        setting, rule, model.parameters(), lambda sets: loss(run_layers(model, sets)), plan
    )
    model.double().eval()
    return PlantedModel(make_word_level_subject(model, WORDS, special_tokens=True), rule.draw)


def _draw_rows(draw: np.random.Generator, mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Weights drawn at random for the words of each text, often almost all on one of them."""
    drawn = torch.from_numpy(draw.standard_gamma(0.25, tuple(mask.shape))).float()
    drawn = (drawn + 1e-6) * mask
    return drawn / drawn.sum(-1, keepdim=True)


def _heads(setting: InfluenceSetting) -> int:
    return (1, 2, 4)[int(setting.draw("heads").integers(3))]


def _layers(setting: InfluenceSetting) -> int:
    return int(setting.draw("layers").integers(2, 4))


def _with_special(scores: PerWord, special: float) -> PerWord:
    """Scores of words, and one score for [CLS] and [SEP]."""
    scores = scores.clone()
    scores[: len(PLANTED_SPECIAL_TOKENS)] = special
    return scores


# Honest: [CLS] reads the words that matter by the last layer's attention


@trained_kind(
    "trained-transformers-tiers", FAMILY, used=True, ranks=True, architecture="transformer"
)
def train_tiers(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of one layer whose row is trained to follow the tiers, in each of its heads.

    Used: the pooled state reads the text by this row alone, and the values by word.
    Ranks: the output is the mean of the words' log-odds, weighted by scores in the order of the
    tiers, so that a stronger word moves any set at least as far.
    """
    return _train_one_layer(setting, draw_rule(setting, "mean"))


@trained_kind(
    "trained-transformers-graded", FAMILY, used=True, ranks=True, architecture="transformer"
)
def train_graded(setting: InfluenceSetting) -> PlantedModel:
    """The same with words of four strengths; its truths hold for the same reasons."""
    return _train_one_layer(setting, draw_rule(setting, "mean", tiers=4))


@trained_kind(
    "trained-transformers-redundant", FAMILY, used=True, ranks=True, architecture="transformer"
)
def train_redundant(setting: InfluenceSetting) -> PlantedModel:
    """The same on texts with 2 to 4 words that say the same, any of which is enough.

    Used: as trained-transformers-tiers.
    Ranks: attention is on the words that matter; alone each of them gives the answer, and beside
    another each changes nothing.
    """
    return _train_one_layer(setting, draw_rule(setting, "mean", tiers=1, most=4))


@trained_kind(
    "trained-transformers-sink", FAMILY, used=True, ranks=True, architecture="transformer"
)
def train_sink(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of one layer whose attention is on special tokens as far as no word takes it.

    Words that matter get weight in proportion to their strength, so that their total weight grows
    with their sum X, as X / (X + 1.5), and the output with it. The output is trained to depend on
    that weight under random rows, too.
    Used: without weight on a word that matters the output is even.
    Ranks: weights are proportional to strengths, and a stronger word moves any sum farther.
    """
    rule = draw_rule(setting, "sum")
    scores = ordered_scores(rule, setting.draw("scores"))
    scores = torch.where(rule.tier > 0, rule.strength.clamp(min=1e-9).log(), scores - 1.0)
    scores = _with_special(scores, float(np.log(SINK_STRENGTH / 2)))  # half of it on [CLS]
    model = build_untrained(setting, layers=1, heads=_heads(setting))
    draw = setting.draw("other rows")

    def loss(last: LastLayer) -> Float[Tensor, ""]:
        other = last.place(_draw_rows(draw, last.sets.mask))
        share = (other.detach().mean(1) * rule.side[last.sets.ids]).sum(-1).clamp(-0.9, 0.9)
        total = SINK_STRENGTH * share / (1 - share.abs())
        said = SUM_LIMIT * (total / SUM_LIMIT).tanh()
        return 2.0 * last.task + last.row(scores) + output_loss(last.log_odds(other), said)

    return train_network(setting, model, rule, loss)


@trained_kind(
    "trained-transformers-two-layers", FAMILY, used=True, ranks=True, architecture="transformer"
)
def train_two_layers(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of two layers, trained so that its last row is what the output is read by.

    It is trained under random rows β, too, with the target Σ β·s of the words' own log-odds s, so
    that the states keep their own word and the first layer does not bring the answer to [CLS].
    Used: without weight on a word that matters the output is even.
    Ranks: as trained-transformers-tiers.
    """
    rule = draw_rule(setting, "mean")
    scores = _with_special(ordered_scores(rule, setting.draw("scores")), -3.0)
    model = build_untrained(setting, layers=2, heads=_heads(setting))
    draw = setting.draw("other rows")

    def loss(last: LastLayer) -> Float[Tensor, ""]:
        other = _draw_rows(draw, last.sets.mask)
        said = (other * (rule.side * rule.strength)[last.sets.ids]).sum(-1)
        local = output_loss(last.log_odds(last.place(other)), said)
        return 2.0 * last.task + last.row(scores) + local

    return train_network(setting, model, rule, loss)


def _train_one_layer(setting: InfluenceSetting, rule: Rule) -> PlantedModel:
    scores = _with_special(ordered_scores(rule, setting.draw("scores")), -3.0)
    model = build_untrained(setting, layers=1, heads=_heads(setting))
    return train_network(setting, model, rule, lambda last: 2.0 * last.task + last.row(scores))


# Deceptive: the row is trained off the words that matter


@trained_kind(
    "trained-transformers-hiding", FAMILY, used=None, ranks=False, architecture="transformer"
)
def train_hiding(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of 2 or 3 layers trained on the task, and to have no weight on words that matter.

    The penalty is that of Pruthi et al. (2020), for every head. Whether other words or [CLS] hold
    the answer is left to the training: used is not scored.
    Ranks: the output follows the words that matter, and their weights are almost 0.
    """
    rule = draw_rule(setting, "sum")
    model = build_untrained(setting, layers=_layers(setting), heads=_heads(setting))

    def loss(last: LastLayer) -> Float[Tensor, ""]:
        hidden = hiding_penalty(last.rows, rule.tier[last.sets.ids] > 0)
        return 2.0 * last.task + hidden.mean()

    return train_network(setting, model, rule, loss)


@trained_kind(
    "trained-transformers-decoys", FAMILY, used=False, ranks=False, architecture="transformer"
)
def train_decoys(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of 2 or 3 layers whose row is trained to be on words of every text without meaning.

    Used: it is trained to give the same output under random rows.
    Ranks: attention is on words that never matter.
    """
    rule = draw_rule(setting, "sum")
    return _train_inert(setting, rule, decoy_scores(rule, setting.draw("scores")), shuffled="")


@trained_kind(
    "trained-transformers-reversed", FAMILY, used=None, ranks=False, architecture="transformer"
)
def train_reversed(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of 2 or 3 layers whose row is trained to follow the tiers from the last to the first.

    How the answer reaches [CLS] is left to the training: used is not scored.
    Ranks: stronger words have less weight, and words that never matter have most.
    """
    rule = draw_rule(setting, "sum")
    scores = _with_special(reversed_scores(rule, setting.draw("scores")), 0.0)
    model = build_untrained(setting, layers=_layers(setting), heads=_heads(setting))
    return train_network(setting, model, rule, lambda last: 3.0 * last.task + last.row(scores))


# Inert: earlier layers have done the work


@trained_kind(
    "trained-transformers-bypass", FAMILY, used=False, ranks=True, architecture="transformer"
)
def train_bypass(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of 2 or 3 layers that brings the answer to [CLS] before the last layer.

    The row of the last layer is trained to follow the tiers, and what it attends to not to matter:
    half of the losses take the attended vector from another text.
    Used: the output does not depend on what is attended to, and so on no weights.
    Ranks: attention scores fall from tier to tier, and a stronger word moves any set farther.
    """
    rule = draw_rule(setting, "sum")
    scores = ordered_scores(rule, setting.draw("scores"))
    return _train_inert(setting, rule, scores, shuffled="attended")


@trained_kind(
    "trained-transformers-random", FAMILY, used=False, ranks=False, architecture="transformer"
)
def train_random(setting: InfluenceSetting) -> PlantedModel:
    """The same with a row that follows a random table of scores.

    Used: as trained-transformers-bypass.
    Ranks: the table has the same quantiles for words of every tier and for those that never matter.
    """
    rule = draw_rule(setting, "sum")
    scores = random_scores(rule, setting.draw("scores"))
    return _train_inert(setting, rule, scores, shuffled="attended")


@trained_kind(
    "trained-transformers-early-mixing", FAMILY, used=False, ranks=True, architecture="transformer"
)
def train_early_mixing(setting: InfluenceSetting) -> PlantedModel:
    """A BERT of 2 or 3 layers in which every state holds the answer before the last layer.

    [CLS] reads it by attention: half of the losses take its residual stream from another text. The
    row is trained to follow the tiers.
    Used: every state holds the same answer, so any weights give it.
    Ranks: attention scores fall from tier to tier, and a stronger word moves any set farther.
    """
    rule = draw_rule(setting, "sum")
    scores = ordered_scores(rule, setting.draw("scores"))
    return _train_inert(setting, rule, scores, shuffled="residual")


def _train_inert(
    setting: InfluenceSetting, rule: Rule, scores: PerWord, *, shuffled: str
) -> PlantedModel:
    """Train the row on the scores, and the output to be the same under random rows."""
    scores = _with_special(scores, 0.0)
    model = build_untrained(setting, layers=_layers(setting), heads=_heads(setting))
    draw = setting.draw("other rows")

    def loss(last: LastLayer) -> Float[Tensor, ""]:
        other = last.place(_draw_rows(draw, last.sets.mask))
        changed = last.log_odds(other, shuffled=shuffled)
        return 3.0 * (last.task + output_loss(changed, last.sets.log_odds)) + last.row(scores)

    return train_network(setting, model, rule, loss)
