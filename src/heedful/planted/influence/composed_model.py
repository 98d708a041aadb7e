"""Hand-built models whose logits are sums over words, read through attention over mixed states.

Every word w has a log weight and evidence: what it adds to the logit of one class. A reader
composes states of a text from both, so that under the model's own attention the logits are the sum
of the evidence of all words, wherever attention is. So for each set of words, adding a word of
amount d moves one logit by d, and the order of influence follows from two inequalities.

* Words for the same class: p = σ(z − log of what the other classes have) grows with z, so the
  larger amount changes the output more.
* Words for other classes: with q = p/(1 − p), adding a to a class changes the output by at least
  p(1 − p)(1 − e⁻ᵃ), adding c to another class by at most p′(1 − p′)(eᶜ − 1). If e⁻ᵃ + eᶜ ≤ 2 and
  p′ ≤ min(p, 1 − p), or if there are two classes, the first is at least the second (`CONTRAST`).

Neutral words have evidence up to ±0.04: they move a probability by 0.01 at most. Where their weight
is small it is less, so that all attention on one of them leaves the logits nearly even.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.values import Decoder, LinearDecoder
from heedful.models.protocols import add_tensors
from heedful.planted.influence.kind import InfluenceSetting, KnownText
from heedful.planted.texts import VOCABULARY_SIZE
from heedful.planted.word_subject import WordSubject

Levels = tuple[tuple[float, float], ...]  # amounts of each tier, strongest first
TWO_CLASSES: Levels = ((2.0, 2.4), (1.35, 1.6), (0.9, 1.05))
CONTRAST: Levels = ((2.0, 2.4), (1.05, 1.3), (0.46, 0.49))  # e^-1.05 + e^0.49 = 1.98
MANY_CLASSES: Levels = ((3.4, 4.2), (2.4, 2.8), (1.6, 1.8))
NEUTRAL_EVIDENCE = 0.04
NEUTRAL_STATE = 0.2  # the logit of a neutral word with all attention, in a text of typical weight
LEAST_WORDS = 4
WordNumbers = NDArray[np.float64]
Columns = tuple[Float[Tensor, "B T"], Float[Tensor, "B T C"], Float[Tensor, "B T C"]]
"""Scores, values and what by-passes attention (equal at all positions)."""


@dataclass(frozen=True, eq=False)
class WordRoles:
    """What each word of the vocabulary adds, drawn anew for each seed.

    `tiers` counts from 0, the strongest; neutral words have the number of tiers. `sides` is the
    class that a word speaks for, and `amounts` how much.
    """

    tiers: NDArray[np.int64]
    sides: NDArray[np.int64]
    amounts: WordNumbers
    classes: int
    levels: Levels

    @property
    def neutral(self) -> NDArray[np.bool_]:
        """The words that never matter."""
        neutral: NDArray[np.bool_] = self.tiers == len(self.levels)
        return neutral

    @property
    def evidence(self) -> WordNumbers:
        """(V, C): what each word adds to each logit."""
        own = self.sides[:, None] == np.arange(self.classes)
        evidence: WordNumbers = self.amounts[:, None] * own
        return evidence

    def words(self, tier: int, side: int) -> NDArray[np.int64]:
        """The words of a tier that speak for a class."""
        return np.flatnonzero((self.tiers == tier) & (self.sides == side))


def draw_roles(
    setting: InfluenceSetting, levels: Levels, *, classes: int = 2, purpose: str = "roles"
) -> WordRoles:
    """Divide the vocabulary: up to 20 words for each tier and class, and neutral ones."""
    draw = setting.draw(purpose)
    groups = len(levels) * classes
    each = min(20, 240 // max(1, groups))
    order = draw.permutation(VOCABULARY_SIZE)
    tiers = np.full(VOCABULARY_SIZE, len(levels))
    sides = draw.integers(classes, size=VOCABULARY_SIZE)
    amounts = draw.uniform(-NEUTRAL_EVIDENCE, NEUTRAL_EVIDENCE, VOCABULARY_SIZE)
    for group in range(groups):
        own = order[group * each : (group + 1) * each]
        tier, side = divmod(group, classes)
        tiers[own], sides[own] = tier, side
        amounts[own] = draw.uniform(*levels[tier], each)
    return WordRoles(tiers, sides, amounts, classes, levels)


def weigh_in_order(setting: InfluenceSetting, roles: WordRoles) -> WordNumbers:
    """Log weights that rise with the tier: γ·log amount, γ between 1 and 2; neutral ones below.

    Neutral words have between 0.02 and 0.5 times the least weight of those that matter.
    """
    draw = setting.draw("weights in order")
    power = draw.uniform(1.0, 2.0)
    matter = power * np.log(np.maximum(roles.amounts, roles.levels[-1][0]))
    low = power * np.log(roles.levels[-1][0])
    noise = low + np.log(draw.uniform(0.02, 0.5, VOCABULARY_SIZE))
    return np.where(roles.neutral, noise, matter)


def weigh_in_reverse(setting: InfluenceSetting, roles: WordRoles) -> WordNumbers:
    """Log weights that fall with the tier; neutral words have the most."""
    return -weigh_in_order(setting, roles)


def weigh_at_random(setting: InfluenceSetting, roles: WordRoles) -> WordNumbers:
    """Log weights at random, from −2.5 to 0.5 for words that matter, −1 to 2 for others."""
    drawn = setting.draw("weights at random").uniform(-1.0, 2.0, VOCABULARY_SIZE)
    return np.where(roles.neutral, drawn, drawn - 1.5)


def weigh_neutral(setting: InfluenceSetting, roles: WordRoles) -> WordNumbers:
    """Log weights that are high for a third of the neutral words, low and random for all others.

    Those that matter have a random one between −2.5 and −1, other neutral ones between −2 and 0.
    """
    draw = setting.draw("weights on neutral words")
    frequent = draw.random(VOCABULARY_SIZE) < 1 / 3
    neutral = np.where(
        frequent, draw.uniform(1.0, 2.5, VOCABULARY_SIZE), draw.uniform(-2.0, 0.0, VOCABULARY_SIZE)
    )
    return np.where(roles.neutral, neutral, draw.uniform(-2.5, -1.0, VOCABULARY_SIZE))


@dataclass(frozen=True)
class TextPlan:
    """How texts are drawn.

    Args:
        matter: The least and the most words that matter, if a text is long enough for them.
        contrast: Half of the texts have one word of the last tier for another class.
        since, until: Where words that matter begin and end, as shares of the text.
        apart: No two words that matter are neighbours.
        lead: The words that matter come first, in the order of their amounts.
        most: The largest number of words, if not mean + mean/2.
    """

    matter: tuple[int, int] = (2, 5)
    contrast: bool = False
    since: float = 0.0
    until: float = 1.0
    apart: bool = False
    lead: bool = False
    most: int = 0


def draw_known_text(
    roles: WordRoles, plan: TextPlan, draw: np.random.Generator, mean: int
) -> KnownText:
    """A text of mean ± mean/2 words, at least 4: one word of the first tier, then any others."""
    most = mean + mean // 2
    count = int(draw.integers(max(LEAST_WORDS, mean // 2), min(most, plan.most or most) + 1))
    places = _draw_places(plan, draw, count)
    side = int(draw.integers(roles.classes))
    chosen = _draw_words_that_matter(roles, plan, draw, side=side, count=len(places))
    ids = draw.choice(np.flatnonzero(roles.neutral), count)
    if plan.lead:
        chosen = chosen[np.argsort(-roles.amounts[chosen], kind="stable")]
        places = np.arange(len(places))
    ids[places] = chosen
    tiers = roles.tiers[ids]
    grouped = (np.flatnonzero(tiers == tier) for tier in range(len(roles.levels)))
    known = tuple(tuple(places.tolist()) for places in grouped if len(places))
    return KnownText(" ".join(f"w{number}" for number in ids), known)


def _draw_places(plan: TextPlan, draw: np.random.Generator, count: int) -> NDArray[np.int64]:
    low, high = plan.matter
    wanted = int(draw.integers(min(low, count // 2), min(high, count // 2) + 1))
    chosen: list[int] = []
    first, end = int(np.ceil(plan.since * count)), int(plan.until * count)
    for place in draw.permutation(np.arange(first, end)).tolist():
        near = plan.apart and {place - 1, place + 1} & set(chosen)
        if len(chosen) < wanted and not near:
            chosen.append(place)
    return np.array(chosen)


def _draw_words_that_matter(
    roles: WordRoles, plan: TextPlan, draw: np.random.Generator, *, side: int, count: int
) -> NDArray[np.int64]:
    """Distinct words: one of the first tier, others of it with probability 0.2."""
    last = len(roles.levels) - 1
    tiers = np.where(draw.random(count) < 0.2, 0, draw.integers(1, last + 1, count))
    sides = np.full(count, side)
    if plan.contrast and count > 2 and draw.random() < 0.5:
        tiers[1], sides[1] = last, (side + draw.integers(1, roles.classes)) % roles.classes
    tiers[0] = 0
    chosen: list[int] = []
    for tier, own in zip(tiers, sides, strict=True):
        free = np.setdiff1d(roles.words(int(tier), int(own)), chosen)
        chosen.append(int(draw.choice(free)))
    return np.array(chosen)


@runtime_checkable
class StateReader(Protocol):
    """Composes the states of texts; a frozen dataclass, so that its repr identifies it."""

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns: ...


def collect_evidence(
    weights: Float[Tensor, "B T"], evidence: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]
) -> Columns:
    """States with value Σw · eₜ/wₜ and score log wₜ: attention reads Σe, whatever w is.

    So does every model that sums over attended words instead of averaging.
    """
    weights = torch.where(mask, weights, torch.ones_like(weights))
    total = (weights * mask).sum(-1)[:, None, None]
    return weights.log(), total * evidence / weights[..., None], torch.zeros_like(evidence)


@dataclass(frozen=True)
class ReadOwn:
    """A state holds its own word."""

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        return collect_evidence(log_weights.exp(), evidence * mask[..., None], mask)


@dataclass(frozen=True)
class ReadTextSum:
    """Every state holds the evidence of the whole text: attention is inert."""

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        return log_weights, sum_over_text(evidence, mask), torch.zeros_like(evidence)


@dataclass(frozen=True)
class ReadAround:
    """A share of the evidence by-passes attention, which reads the rest from the words' states.

    With share 1 attention has no effect.
    """

    share: float = 1.0

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        own = evidence * mask[..., None]
        scores, values, _ = collect_evidence(log_weights.exp(), (1.0 - self.share) * own, mask)
        return scores, values, self.share * sum_over_text(evidence, mask)


def sum_over_text(
    values: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T C"]:
    """The sum over each text's words, at every position."""
    return (values * mask[..., None]).sum(1, keepdim=True).expand_as(values)


@dataclass(frozen=True, eq=False)
class ComposedModel(WordSubject):
    """A model of words: row w of `table` holds the log weight of word w and its evidence."""

    name: str
    table: Float[Tensor, "V K"]
    read: StateReader
    classes: int = 2
    labels: tuple[str, ...] = field(default=("negative", "positive"))

    @property
    def family(self) -> str:
        """The kind, as a model family."""
        return f"planted-{self.name}"

    def fingerprint(self) -> str:
        """sha256 over the kind, the reader and the table."""
        digest = sha256(repr((self.name, self.read, self.labels)).encode())
        add_tensors(digest, {"table": self.table})
        return digest.hexdigest()

    def states(self, batch: Batch, vectors: Float[Tensor, "B T E"]) -> Float[Tensor, "B T D"]:
        """[score, value for each class, what by-passes attention for each class]."""
        scores, values, around = self.read(vectors[..., 0], vectors[..., 1:], batch.mask)
        return torch.cat([scores[..., None], values, around], dim=-1)

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> Decoder:  # noqa: ARG002
        """Linear in the attended values, plus what by-passes attention if anything does."""
        values, around = states[..., 1 : 1 + self.classes], states[:, 0, 1 + self.classes :]
        linear = LinearDecoder(values, states.new_zeros(self.classes))
        return AroundDecoder(linear, around) if self._by_passed else linear

    @cached_property
    def _by_passed(self) -> bool:
        return isinstance(self.read, ReadAround)


@dataclass(frozen=True, slots=True, eq=False)
class AroundDecoder:
    """Logits of the attended values plus those that by-pass attention."""

    linear: LinearDecoder
    around: Float[Tensor, "B C"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        return self.linear(attention) + self.around


def fit_neutral_amounts(roles: WordRoles, log_weights: WordNumbers, *, longest: int) -> WordRoles:
    """The roles with smaller amounts of neutral words, where their states would be large.

    A state is e·Σw/w; for Σw that of a long text it is at most `NEUTRAL_STATE`.
    """
    weights = np.exp(log_weights)
    total = longest * weights[roles.neutral].mean() + 5 * weights[~roles.neutral].mean()
    share = np.minimum(1.0, NEUTRAL_STATE * weights / total / NEUTRAL_EVIDENCE)
    return replace(roles, amounts=np.where(roles.neutral, share, 1.0) * roles.amounts)


def compose_model(
    setting: InfluenceSetting, roles: WordRoles, log_weights: WordNumbers, read: StateReader
) -> ComposedModel:
    """The model of some roles, log weights and reader."""
    fitted = fit_neutral_amounts(roles, log_weights, longest=setting.length * 3 // 2)
    table = torch.from_numpy(np.column_stack([log_weights, fitted.evidence]))
    labels = tuple(f"class {number}" for number in range(roles.classes))
    if roles.classes == 2:
        labels = ("negative", "positive")
    return ComposedModel(setting.kind, table, read, roles.classes, labels)


def text_drawer(
    roles: WordRoles, plan: TextPlan | None = None
) -> Callable[[np.random.Generator, int], KnownText]:
    """The `draw` of a planted model without questions."""
    chosen = plan or TextPlan()

    def draw_one(draw: np.random.Generator, mean: int) -> KnownText:
        return draw_known_text(roles, chosen, draw, mean)

    return draw_one
