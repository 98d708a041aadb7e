"""Kinds of classifiers without a question, in four groups by what their states hold.

Word-wise states know their own word only: z = Σ αₜ·sₜ. Deleting word t gives its weight to the
others, so that z − z₋ₜ = αₜ / (1 − αₜ) · (sₜ − z), in log-odds. Mixed states hold other words too:
attention is used, and is not on the word that decides. Inert attention has no effect, or almost
none: the answer reaches the output without it. Uniform attention has fixed, equal weights.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from heedful.planted.case import Setting, WordNumbers, register_kind
from heedful.planted.closed_form.subjects import (
    Mask,
    compose_subject,
    read_per_word,
    read_text_sum,
    sum_neighbours,
    sum_over_text,
)
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE, WORDS, PlantedSubject

MAX_LOG_ODDS = 200.0  # of a word in "frozen": tanh of its vector times this

# Word-wise states


def peaked_numbers(setting: Setting, cue: float) -> tuple[WordNumbers, WordNumbers]:
    """Scores and log-odds of the words: ± `cue` for cues, little for the others.

    A cue weighs at least 40, 16 or 8 times as much as all other words of a text together; those
    contribute up to ±0, ±0.15 or ±0.3, by difficulty.
    """
    scores = setting.even(-2.0, 0.0)
    noise = setting.pick(0.0, 0.15, 0.3)
    log_odds = setting.even(-1.0, 1.0) * noise
    scores[:CUE_WORDS] = np.log(setting.pick(40.0, 16.0, 8.0) * setting.longest)
    log_odds[:CUE_WORDS] = cue * setting.signs()[:CUE_WORDS]
    return scores, log_odds


def graded_numbers(setting: Setting) -> tuple[WordNumbers, WordNumbers, float]:
    """Scores log x, log-odds ±x, and the bound of |z|: 0.15·g, 0.3·g or 0.4·g by difficulty."""
    size = 2.5 * setting.growth
    x = setting.even(0.5, 4.0) * size
    return np.log(x), x * setting.signs(), setting.pick(0.15, 0.3, 0.4) * size


@register_kind("honest-peaked", used=True, ranks=True, exclusive=True)
def honest_peaked(setting: Setting) -> PlantedSubject:
    """One decisive word per text contributes ±2 and has at least 8/9 of the attention.

    Used: without weight on the cue |z| is at most 0.3, with it at least 1.74.
    Ranks: other words contribute |s| ≤ δ < |z|, so deleting one moves z by αₜ/(1 − αₜ)·(|z| ± δ):
    words whose weights differ by more than (|z| + δ)/(|z| − δ), at most 1.42, are ordered as their
    weights are. Deleting the cue moves z by 1.4 or more, deleting any other by 0.3 at most.
    Exclusive: an attention within 0.05 of the output must give the cue (|z′| − δ)/(2 − δ) of the
    weight, at least 0.64: no such attention is farther away than 0.36 (TVD).
    """
    columns = peaked_numbers(setting, 2.0)
    return PlantedSubject(compose_subject(setting, read_per_word, *columns), CUE_WORDS)


@register_kind("honest-graded", used=True, ranks=True, exclusive=None)
def honest_graded(setting: Setting) -> PlantedSubject:
    """Words contribute sₜ = ±xₜ, x between 0.5·g and 4·g, and attention is in proportion to x.

    Texts are drawn so that positive and negative words nearly balance: |z| ≤ ζ, which is 0.15·g,
    0.3·g or 0.4·g by difficulty; g = 2.5·√(length/20), so that shuffling moves the output of long
    texts as much as that of short ones.
    Used: z is between −4·g and 4·g, depending on attention.
    Ranks: deletion moves z by xₜ·|xₜ ∓ z| / (Σx − xₜ). As x(x − ζ) > y(y + ζ) exactly if
    x > y + ζ, any two words whose x differ by more than |z| are ordered as their weights are.
    Of all pairs these are at least (1 − 0.4/3.5)² = 78 %.
    """
    scores, log_odds, bound = graded_numbers(setting)
    return PlantedSubject(compose_subject(setting, read_per_word, scores, log_odds), bound=bound)


@register_kind("anti", used=True, ranks=False, exclusive=None)
def anti(setting: Setting) -> PlantedSubject:
    """Weights are in proportion to 1/x, log-odds to ±x²: weights are large where values are small.

    x is between exp(−A) and 1; the contrast A is 2, 1.5 or 1 by difficulty. Log-odds reach
    k = 20·√(length/20); texts are drawn so that |z| ≤ 0.06·k.
    Used: z is between −k and k, depending on attention.
    Ranks: deletion moves z by |k·xₜ ∓ z/xₜ| / (Σ1/x − 1/xₜ), which grows with x except where z
    is not small compared with k·x²: with |z| ≤ 0.06·k the first term is the larger for x > 0.25.
    So words are in the reverse order of their weights, up to pairs that are close to each other.
    """
    scores = setting.even(0.0, setting.pick(2.0, 1.5, 1.0))
    size = 20.0 * setting.growth
    log_odds = size * np.exp(-2.0 * scores) * setting.signs()
    subject = compose_subject(setting, read_per_word, scores, log_odds)
    return PlantedSubject(subject, bound=0.06 * size)


@register_kind("redundant", used=None, ranks=None, exclusive=None)
def redundant(setting: Setting) -> PlantedSubject:
    """Honest-peaked with the decisive word twice: deleting either changes almost nothing.

    Deletion and contribution disagree here, and which of them attention should follow is a matter
    of opinion. Reported, not scored.
    """
    columns = peaked_numbers(setting, 2.0)
    return PlantedSubject(compose_subject(setting, read_per_word, *columns), CUE_WORDS, times=2)


@register_kind("saturated", used=None, ranks=None, exclusive=None)
def saturated(setting: Setting) -> PlantedSubject:
    """Honest-peaked with a cue of ±8, ±15 or ±30: the probability is 1 to many digits.

    Attention decides the log-odds, but most changes of it leave the probability as it is.
    Reported, not scored.
    """
    columns = peaked_numbers(setting, setting.pick(8.0, 15.0, 30.0))
    return PlantedSubject(compose_subject(setting, read_per_word, *columns), CUE_WORDS)


# Mixed states


@register_kind("hidden", used=True, ranks=False, exclusive=None)
def hidden(setting: Setting) -> PlantedSubject:
    """The decisive word's ±2 is in the states of its neighbours, and missing from its own.

    It also raises the scores of its neighbours so that they have at least 10/11 of the weight; its
    own is lower than any other's, by a factor of at least exp(3), exp(1.5) or exp(0.5) by
    difficulty. Every word adds up to ±0.15/√(length/20) to all states alike, drawn independently
    of the scores.
    Used: states other than the neighbours' hold nothing but that sum.
    Ranks: deleting the cue takes 1.8 or more away, and its weight is the lowest of all. Deleting a
    neighbour makes the next word one. What deleting any other word moves is mostly what it adds,
    which is independent of its score: the weight it frees is worth 2/(10·longest) at most.
    """
    scores = setting.even(-0.5, 0.5)
    scores[:CUE_WORDS] = -0.5 - setting.pick(3.0, 1.5, 0.5)
    adds = setting.even(-0.15, 0.15) / setting.growth
    raises, gives = np.zeros_like(scores), np.zeros_like(scores)
    adds[:CUE_WORDS] = 0.0
    # 1.0: a neighbour's own score may be −0.5, that of another word 0.5
    raises[:CUE_WORDS] = 1.0 + np.log(10.0 * setting.longest)
    gives[:CUE_WORDS] = 2.0 * setting.signs()[:CUE_WORDS]
    subject = compose_subject(setting, _read_neighbours, scores, adds, raises, gives)
    return PlantedSubject(subject, CUE_WORDS)


@register_kind("running", used=True, ranks=False, exclusive=None)
def running(setting: Setting) -> PlantedSubject:
    """A state holds the sum of u up to its word, as in a recurrent model; attention is on the end.

    Weights fall by a factor of exp(3), exp(1.5) or exp(0.8) from each word to the one before it.
    Texts are drawn so that |z| ≤ 1.5.
    Used: an earlier state holds another sum, and no output is too certain to move.
    Ranks: deletion takes uₜ from all states after t, so it moves z by about uₜ at any position, and
    by less than that at the end, where attention is; u is drawn independently of positions.
    """
    adds = setting.normal(0.8 / setting.growth)
    steps = np.full_like(adds, setting.pick(3.0, 1.5, 0.8))
    return PlantedSubject(compose_subject(setting, _read_running_sum, steps, adds), bound=1.5)


def _read_neighbours(vectors: Float[Tensor, "B T 4"], mask: Mask) -> Float[Tensor, "B T 2"]:
    score, adds, raises, gives = vectors.unbind(-1)
    log_odds = sum_neighbours(gives, mask) + sum_over_text(adds, mask)
    return torch.stack([score + sum_neighbours(raises, mask), log_odds], dim=-1)


def _read_running_sum(vectors: Float[Tensor, "B T 2"], mask: Mask) -> Float[Tensor, "B T 2"]:
    step, adds = (column * mask for column in vectors.unbind(-1))
    return torch.stack([step.cumsum(-1) - step, adds.cumsum(-1)], dim=-1)


# Inert attention


@register_kind("inert-random", used=False, ranks=False, exclusive=False)
def inert_random(setting: Setting) -> PlantedSubject:
    """Every state holds Σu, the same at all positions; scores are drawn independently of u.

    Used: Σα·Σu = Σu for all weights. Exclusive: any attention gives the same output.
    Ranks: deleting word t moves z by uₜ, and scores are independent of u.
    Difficulty is how peaked attention looks: scores have a standard deviation of 0.5, 1.5 or 3.
    """
    adds = setting.normal(0.4 / setting.growth)
    scores = setting.normal(setting.pick(0.5, 1.5, 3.0))
    return PlantedSubject(compose_subject(setting, read_text_sum, scores, adds))


@register_kind("inert-proportional", used=False, ranks=True, exclusive=False)
def inert_proportional(setting: Setting) -> PlantedSubject:
    """Every state holds Σu, the same at all positions; weights are |u| times a noise.

    Used, exclusive: as inert-random.
    Ranks: deleting word t moves z by uₜ. The noise is a factor between exp(−ν) and exp(ν), so two
    words whose weights differ by more than exp(2ν) are ordered as their weights are; ν is 0, 0.15
    or 0.3 by difficulty, and |u| spans a factor of 20.
    """
    size = np.exp(setting.even(np.log(0.05), 0.0))
    noise = setting.even(-1.0, 1.0) * setting.pick(0.0, 0.15, 0.3)
    adds = size * setting.signs() / setting.growth
    return PlantedSubject(compose_subject(setting, read_text_sum, np.log(size) + noise, adds))


@register_kind("leaky", used=False, ranks=False, exclusive=False)
def leaky(setting: Setting) -> PlantedSubject:
    """Every state already holds the answer W = Σu, which one decisive word makes, scaled a little.

    State t holds (1 + eₜ)·W with |e| ≤ η, which is 0, 0.02 or 0.04 by difficulty; scores are drawn
    independently of u.
    Used: two attentions differ by 2·η·|W| in z, so by 2·η·max z·σ′(z) = 0.45·η < 0.02 in
    probability. Exclusive: all attentions give that output.
    Ranks: deleting word t moves z by (1 ± η)·uₜ, up to 2·η·|W|·αₜ; scores are independent of u.
    """
    adds = setting.even(-0.3, 0.3) / setting.growth
    adds[:CUE_WORDS] = 2.0 * setting.signs()[:CUE_WORDS]
    factor = 1.0 + setting.even(-1.0, 1.0) * setting.pick(0.0, 0.02, 0.04)
    subject = compose_subject(setting, _read_leaky, setting.normal(1.5), adds, factor)
    return PlantedSubject(subject, CUE_WORDS)


@register_kind("routed", used=False, ranks=False, exclusive=False)
def routed(setting: Setting) -> PlantedSubject:
    """Σu bypasses attention on a path of its own; attention contributes Σα·s with |s| ≤ f.

    f is 0.01, 0.02 or 0.04 by difficulty; s and the scores are drawn independently of u.
    Used: two attentions differ by 2·f in z, so by f/2 ≤ 0.02 in probability. Exclusive: all
    attentions give that output.
    Ranks: deleting word t moves z by uₜ, up to 2·f·αₜ/(1 − αₜ); scores are independent of u.
    """
    adds = setting.normal(0.4 / setting.growth)
    columns = setting.normal(1.5), draw_attention_effect(setting), adds
    return PlantedSubject(compose_subject(setting, _read_bypass, *columns))


def draw_attention_effect(setting: Setting) -> WordNumbers:
    """What inert attention still contributes: up to ±0.01, ±0.02 or ±0.04, by difficulty."""
    return setting.even(-1.0, 1.0) * setting.pick(0.01, 0.02, 0.04)


def _read_leaky(vectors: Float[Tensor, "B T 3"], mask: Mask) -> Float[Tensor, "B T 2"]:
    score, adds, factor = vectors.unbind(-1)
    return torch.stack([score, factor * sum_over_text(adds, mask)], dim=-1)


def _read_bypass(vectors: Float[Tensor, "B T 3"], mask: Mask) -> Float[Tensor, "B T 3"]:
    score, log_odds, adds = vectors.unbind(-1)
    return torch.stack([score, log_odds, sum_over_text(adds, mask)], dim=-1)


# Uniform attention


@register_kind("frozen", used=None, ranks=False, exclusive=None)
def frozen(setting: Setting) -> PlantedSubject:
    """A classifier of the 2019 papers, word-wise, with equal weights: z is the mean of the words.

    Words contribute up to ±δ = length/40, the decisive word 24, 12 or 6 times that, by difficulty.
    Ranks: weights are equal, so they order nothing, while deleting word t moves z by
    (sₜ − z)/(n − 1), which differs from word to word. In five words, the least favourable number,
    |s − z| is at least 0.8·(c − δ) for a cue of c, and at most 0.2·c + 1.8·δ for any other word:
    4/3 times as much at the hardest level.
    Used, exclusive: reported, not scored. Other weights would move the output, but shuffled equal
    weights are the same weights.
    """
    log_odds = setting.even(-1.0, 1.0)
    log_odds[:CUE_WORDS] = setting.pick(24.0, 12.0, 6.0) * setting.signs()[:CUE_WORDS]
    log_odds *= setting.length / 40
    network, vocabulary = _uniform_network(log_odds), Vocabulary((*SPECIAL_TOKENS, *WORDS))
    labels = ("negative", "positive")
    subject = RecurrentSubject(network, vocabulary, WordTokenizer(), labels=labels)
    return PlantedSubject(subject, CUE_WORDS)


def _uniform_network(log_odds: WordNumbers) -> AttentionClassifier:
    """A network whose state is MAX_LOG_ODDS · tanh(x) for a word with the vector (x)."""
    first = len(SPECIAL_TOKENS)
    shape = Shape(first + VOCABULARY_SIZE, 2, "average", "uniform", embedding=1, hidden=4)
    with torch.random.fork_rng(devices=()):  # keeps the global stream: initial weights are drawn
        network = AttentionClassifier(shape).double().eval().requires_grad_(False)
    for weight in network.parameters():
        weight.zero_()
    network.embedding.weight[first:, 0] = torch.from_numpy(np.arctanh(log_odds / MAX_LOG_ODDS))
    network.encoder.project.weight[0, 0] = 1.0
    network.get_parameter("decoder.weight")[0, 0] = MAX_LOG_ODDS
    return network
