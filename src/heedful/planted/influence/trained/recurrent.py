"""Trained attention classifiers: states of words, one attention over them, a linear output.

z = Σ αₜ·sₜ, where sₜ are the log-odds of a state alone. Networks are trained on sets of words, with
losses on the output, on the attention row, and on the states (`StateLoss`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.values import Decoder, Example, Forward, LinearDecoder
from heedful.models.protocols import add_tensors
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary
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
    states_loss,
)
from heedful.planted.influence.trained.rule import (
    SUM_LIMIT,
    WORDS,
    PerWord,
    Rule,
    TrainingSets,
    draw_rule,
)
from heedful.planted.influence.trained.trial import trained_kind
from heedful.training.fit import init_recurrent_subject
from heedful.training.objectives import hiding_penalty
from heedful.training.recipe import Recipe

FAMILY = "trained-recurrent"
START_ID, END_ID = 2, 3
WORD_STEPS, CONTEXT_STEPS, LEARNING_RATE, WIDTH = 600, 1200, 0.008, 24


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """A pass over sets of words in training; `by_state` are the log-odds of each state alone."""

    rule: Rule
    sets: TrainingSets
    forward: Forward
    by_state: Float[Tensor, "B T"]

    @property
    def log_odds(self) -> Float[Tensor, "B"]:
        """The output."""
        return self.forward.logits[:, 1] - self.forward.logits[:, 0]

    @property
    def task(self) -> Float[Tensor, ""]:
        """The output follows the rule."""
        return output_loss(self.log_odds, self.sets.log_odds)

    @property
    def own_words(self) -> Float[Tensor, ""]:
        """Every state holds what its own word says, and nothing of the text."""
        target = (self.rule.side * self.rule.strength)[self.sets.ids]
        return (self.by_state - target)[self.sets.mask].square().mean()

    @property
    def whole_text(self) -> Float[Tensor, ""]:
        """Every state holds the answer for the whole text; the worst of each counts once more."""
        wrong = self.by_state.sigmoid() - self.sets.log_odds.sigmoid()[:, None]
        worst = wrong.abs().masked_fill(~self.sets.mask, 0.0).amax(-1).mean()
        return states_loss(self.by_state, self.sets.log_odds, self.sets.mask) + worst

    def row(self, scores: PerWord) -> Float[Tensor, ""]:
        """Attention follows the scores of words."""
        target = score_rows(scores, self.sets.ids, self.sets.mask)
        return row_loss(self.forward.attention, target)


StepLoss = Callable[[TrainingStep], Float[Tensor, ""]]


def build_untrained(
    setting: InfluenceSetting, encoder: str, *, attention: str = "additive"
) -> RecurrentSubject:
    """An untrained network over the words of the rule."""
    seed = int(setting.draw("first weights").integers(2**31))
    recipe = Recipe(encoder=encoder, attention=attention, embedding=WIDTH, hidden=WIDTH, seed=seed)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    subject, _ = init_recurrent_subject(vocabulary, ("negative", "positive"), recipe)
    subject.network.embedding.weight.data *= 5.0  # networks are initialised within ± 0.1
    return subject


def train_network(
    setting: InfluenceSetting,
    subject: RecurrentSubject,
    rule: Rule,
    loss: StepLoss,
    *,
    steps: int = CONTEXT_STEPS,
) -> PlantedModel:
    """Fit the whole network to the loss, and freeze it in float64."""
    plan = FitPlan(START_ID, END_ID, steps, LEARNING_RATE)
    parameters = subject.network.parameters()
    fit_parameters(setting, rule, parameters, lambda sets: loss(_run(subject, rule, sets)), plan)
    subject.network.double().eval()
    return PlantedModel(subject, rule.draw)


def _run(subject: RecurrentSubject, rule: Rule, sets: TrainingSets) -> TrainingStep:
    network = subject.network
    batch = Batch(sets.ids, sets.present, sets.mask, tuple(range(len(sets.ids))))
    forward = network(batch, network.embed(batch.ids))
    decoder = network.decoder.prepare(forward.states)
    assert isinstance(decoder, LinearDecoder)  # noqa: S101 - these networks read no question
    by_state = (decoder.contributions + decoder.bias)[..., 1]
    return TrainingStep(rule, sets, forward, by_state)


def _one_of(setting: InfluenceSetting, *names: str) -> str:
    return names[int(setting.draw(f"one of {names}").integers(len(names)))]


# Honest: states hold their own word, and attention is on the words that matter


@trained_kind("trained-recurrent-tiers", FAMILY, used=True, ranks=True)
def train_tiers(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose states are trained to hold their own word, and attention to follow the tiers.

    Used: without weight on a word that matters the output is even.
    Ranks: z is the mean of the words' log-odds, weighted by scores in the order of the tiers, so
    that a stronger word moves any set at least as far.
    """
    rule = draw_rule(setting, "mean")
    scores = ordered_scores(rule, setting.draw("scores"))
    attention = _one_of(setting, "additive", "dot")
    subject = build_untrained(setting, "bilstm", attention=attention)

    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        return step.task + step.row(scores) + step.own_words

    return train_network(setting, subject, rule, loss, steps=WORD_STEPS)


@trained_kind("trained-recurrent-natural", FAMILY, used=True, ranks=True, lengths=(10, 20, 40))
def train_natural(setting: InfluenceSetting) -> PlantedModel:
    """A word-wise encoder trained on the output alone; attention has no loss of its own.

    The weighted means of all sets determine the weights up to a common factor: only weights that
    fall from tier to tier, and to almost 0 for words that never matter, solve the task.
    Used: without weight on a word that matters the output is even.
    Ranks: as trained-recurrent-tiers.
    """
    rule = draw_rule(setting, "mean")
    encoder = _one_of(setting, "average", "mlp")
    subject = build_untrained(setting, encoder)
    return train_network(setting, subject, rule, lambda step: step.task, steps=WORD_STEPS)


@trained_kind("trained-recurrent-redundant", FAMILY, used=True, ranks=True)
def train_redundant(setting: InfluenceSetting) -> PlantedModel:
    """A CNN on texts with 2 to 4 words that say the same, any of which is enough.

    Used: without weight on a word that matters the output is even.
    Ranks: attention is trained to be on the words that matter; alone each of them gives the answer,
    and beside another each changes nothing.
    """
    rule = draw_rule(setting, "mean", tiers=1, most=4)
    scores = ordered_scores(rule, setting.draw("scores"))
    subject = build_untrained(setting, "cnn")

    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        return step.task + step.row(scores) + step.own_words

    return train_network(setting, subject, rule, loss, steps=WORD_STEPS)


@trained_kind("trained-recurrent-graded", FAMILY, used=True, ranks=True, lengths=(10, 20, 40))
def train_graded(setting: InfluenceSetting) -> PlantedModel:
    """A word-wise encoder on words of four strengths; attention is trained to follow them.

    Used: without weight on a word that matters the output is even.
    Ranks: as trained-recurrent-tiers.
    """
    rule = draw_rule(setting, "mean", tiers=4)
    scores = ordered_scores(rule, setting.draw("scores"))
    subject = build_untrained(setting, _one_of(setting, "average", "mlp"))

    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        return step.task + step.row(scores) + step.own_words

    return train_network(setting, subject, rule, loss, steps=WORD_STEPS)


# Deceptive: attention is trained off the words that matter


@trained_kind("trained-recurrent-hiding", FAMILY, used=None, ranks=False)
def train_hiding(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM trained on the task, and to have no weight on the words that matter.

    The penalty is that of Pruthi et al. (2020). How much of the answer the states of other words
    hold is left to the training: used is not scored.
    Ranks: the output follows the words that matter, and their weights are almost 0.
    """
    rule = draw_rule(setting, "sum")

    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        matter = rule.tier[step.sets.ids] > 0
        hidden = hiding_penalty(step.forward.attention[:, None], matter)
        some_left = (step.sets.mask & ~matter).any(-1)  # else all weight is on words that matter
        return step.task + (hidden * some_left).mean()

    subject = build_untrained(setting, "bilstm")
    return train_network(setting, subject, rule, loss)


@trained_kind("trained-recurrent-decoys", FAMILY, used=False, ranks=False)
def train_decoys(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose attention is trained to be on decoys, words of every text without meaning.

    Used: every state is trained to hold the whole text's answer, so any weights give it.
    Ranks: attention is on words that never matter.
    """
    rule = draw_rule(setting, "sum")
    return _train_whole_text(setting, rule, decoy_scores(rule, setting.draw("scores")))


@trained_kind("trained-recurrent-neighbours", FAMILY, used=True, ranks=False)
def train_neighbours(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose words that never matter hold the answer, and those that matter nothing.

    Attention is trained off the words that matter.
    Used: with all weight on a word that matters the output is even.
    Ranks: the output follows the words that matter, and their weights are almost 0.
    """
    rule = draw_rule(setting, "sum")

    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        matter = rule.tier[step.sets.ids] > 0
        others = step.sets.mask & ~matter
        some_left = others.any(-1)
        hidden = hiding_penalty(step.forward.attention[:, None], matter)
        empty = step.by_state[matter & some_left[:, None]].square().mean()
        answer = states_loss(step.by_state, step.sets.log_odds, others)
        return 2.0 * step.task + 0.3 * (hidden * some_left).mean() + 0.1 * empty + answer

    subject = build_untrained(setting, "bilstm")
    return train_network(setting, subject, rule, loss)


@trained_kind("trained-recurrent-reversed", FAMILY, used=None, ranks=False)
def train_reversed(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose attention is trained to follow the tiers from the last to the first.

    What the states hold is left to the training: used is not scored.
    Ranks: stronger words have less weight, and words that never matter have most.
    """
    rule = draw_rule(setting, "sum")
    scores = reversed_scores(rule, setting.draw("scores"))
    subject = build_untrained(setting, "bilstm")
    loss = _task_and_row(scores)
    return train_network(setting, subject, rule, loss)


def _task_and_row(scores: PerWord) -> StepLoss:
    return lambda step: 2.0 * step.task + 0.5 * step.row(scores)


# Inert: any weights give the same output


@trained_kind("trained-recurrent-whole-text", FAMILY, used=False, ranks=True)
def train_whole_text(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose states all hold the answer; attention is trained to follow the tiers.

    Used: every state holds the same answer, so any weights give it.
    Ranks: attention scores fall from tier to tier, and a stronger word moves any set farther.
    """
    rule = draw_rule(setting, "sum")
    return _train_whole_text(setting, rule, ordered_scores(rule, setting.draw("scores")))


@trained_kind("trained-recurrent-random", FAMILY, used=False, ranks=False)
def train_random(setting: InfluenceSetting) -> PlantedModel:
    """A BiLSTM whose states all hold the answer; attention follows a random table of scores.

    Used: every state holds the same answer, so any weights give it.
    Ranks: the table has the same quantiles for words of every tier and for those that never matter.
    """
    rule = draw_rule(setting, "sum")
    return _train_whole_text(setting, rule, random_scores(rule, setting.draw("scores")))


def _train_whole_text(setting: InfluenceSetting, rule: Rule, scores: PerWord) -> PlantedModel:
    def loss(step: TrainingStep) -> Float[Tensor, ""]:
        return 3.0 * step.whole_text + 0.3 * step.row(scores)

    subject = build_untrained(setting, "bilstm")
    return train_network(setting, subject, rule, loss)


@trained_kind("trained-recurrent-skip", FAMILY, used=False, ranks=True, lengths=(10, 20, 40))
def train_skip(setting: InfluenceSetting) -> PlantedModel:
    """A word-wise encoder with a path around attention: the sum of the states' own log-odds.

    Attention is trained to follow the tiers, and the attended log-odds to be 0.
    Used: what attention adds to the output is almost 0, whatever the weights.
    Ranks: attention scores fall from tier to tier, and a stronger word moves any sum farther.
    """
    rule = draw_rule(setting, "sum")
    scores = ordered_scores(rule, setting.draw("scores"))
    inner = build_untrained(setting, _one_of(setting, "average", "mlp"))
    skip = torch.nn.Parameter(
        torch.from_numpy(setting.draw("skip").normal(0.0, 0.1, WIDTH)).float()
    )

    def loss(sets: TrainingSets) -> Float[Tensor, ""]:
        step = _run(inner, rule, sets)
        around = skip_log_odds(step.forward.states, sets.mask, skip)
        answer = output_loss(step.log_odds + around, sets.log_odds)
        return 3.0 * answer + step.row(scores) + step.by_state[sets.mask].square().mean()

    parameters = [*inner.network.parameters(), skip]
    plan = FitPlan(START_ID, END_ID, WORD_STEPS, LEARNING_RATE)
    fit_parameters(setting, rule, parameters, loss, plan)
    inner.network.double().eval()
    return PlantedModel(SkipSubject(inner, skip.detach().double()), rule.draw)


def skip_log_odds(
    states: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"], skip: Float[Tensor, "D"]
) -> Float[Tensor, "B"]:
    """The log-odds that go around attention: the sum over a text's words, below a limit."""
    return SUM_LIMIT * (((states @ skip) * mask).sum(-1) / SUM_LIMIT).tanh()


@dataclass(frozen=True, slots=True, eq=False)
class SkipDecoder:
    """Logits of the attended state, plus log-odds that do not depend on attention."""

    attended: LinearDecoder
    around: Float[Tensor, "B"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        logits = self.attended(attention)
        return logits + torch.stack([torch.zeros_like(self.around), self.around], dim=-1)


@dataclass(frozen=True, eq=False)
class SkipSubject:
    """An attention classifier whose output also takes a path around attention."""

    inner: RecurrentSubject
    skip: Float[Tensor, "D"]
    architecture = "recurrent"
    family = "skip"

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the classifier."""
        return self.inner.labels

    def fingerprint(self) -> str:
        """sha256 over the classifier and the weights of the path around attention."""
        digest = sha256(self.inner.fingerprint().encode())
        add_tensors(digest, {"skip": self.skip})
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """As the classifier does."""
        return self.inner.encode(example)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """As the classifier does."""
        return self.inner.batch(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Word vectors."""
        return self.inner.embed(batch)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """The classifier's pass, with the output of both paths."""
        forward = self.inner.forward(batch, embedded)
        return replace(forward, logits=self.decoder(batch, forward)(forward.attention))

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """Linear in the attended state, plus what goes around."""
        attended = self.inner.decoder(batch, forward)
        assert isinstance(attended, LinearDecoder)  # noqa: S101 - it reads no question
        return SkipDecoder(attended, skip_log_odds(forward.states, batch.mask, self.skip))
