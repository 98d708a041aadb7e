"""Tensors in flight: what one room hands to the next while an audit runs.

Axes: B texts, T tokens, C classes, D width of a state, E width of an embedding.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Example:
    """One row of a data set: a text, its label as an index, and what else the row told us."""

    index: int
    text: str
    label: int  # −1 where the data has none
    tokens: tuple[str, ...] | None = None
    rationale: tuple[int, ...] | None = None
    pair: str | None = None  # the second text of a pair: a hypothesis, or a question
    word_scores: tuple[float, ...] | None = None  # what people gave each token
    candidates: tuple[int, ...] | None = None  # the classes that may be right, where not all may


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """What one pass of a subject gives: its output, its attention, and the states attended to.

    `attention` is the distribution under audit: one row per text, zero outside the words. Where a
    model has many attentions, its subject states which one this is: `rows` are then the R rows of
    weights behind it (of every head, say), special tokens included, and `attention` is what they
    read as together. `maps` holds every attention over the text, layer by layer; in an
    encoder–decoder those are the decoder's, and the attentions within encoder and within decoder
    stand beside them. `question` is what a text's question was read as, where there is one.
    """

    logits: Float[Tensor, "B C"]
    attention: Float[Tensor, "B T"]
    states: Float[Tensor, "B T D"]
    rows: Float[Tensor, "B R T"] | None = None
    maps: tuple[Float[Tensor, "B H Q K"], ...] = ()
    encoder_maps: tuple[Float[Tensor, "B H K K"], ...] = ()
    decoder_maps: tuple[Float[Tensor, "B H Q Q"], ...] = ()
    question: Float[Tensor, "B D"] | None = None

    def detached(self) -> "Forward":
        """The same numbers without the graph behind them, all of the logits' type."""

        def cut(maps: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(one.detach().to(self.logits.dtype) for one in maps)

        return Forward(
            self.logits.detach(),
            self.attention.detach(),
            self.states.detach(),
            None if self.rows is None else self.rows.detach(),
            cut(self.maps),
            cut(self.encoder_maps),
            cut(self.decoder_maps),
            None if self.question is None else self.question.detach(),
        )

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """Softmax of the logits."""
        return self.logits.softmax(-1)

    @property
    def predicted(self) -> Int[Tensor, "B"]:
        """The class with the highest output."""
        return self.logits.argmax(-1)


EXCLUDED_LOGIT = -1e9  # finite, so that differences of logits are numbers; exp of it is 0

Decoder = Callable[[Float[Tensor, "..."]], Float[Tensor, "*K B C"]]
"""From weights in the place of the model's own, (*K, B, T) or (*K, B, R, T), to logits."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearDecoder:
    """logits = Σ_t α_t · contributions_t + bias: what a linear output layer makes of attention.

    Knowing this, shuffles, adversaries and leverage need C numbers per token instead of D.
    """

    contributions: Float[Tensor, "B T C"]
    bias: Float[Tensor, "C"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        mixed = torch.einsum("...bt,btc->...bc", attention, self.contributions)
        return mixed + self.bias

    @property
    def influence(self) -> Float[Tensor, "B T"]:
        """‖s_t‖: how far a state moves the logits apart; for two classes |w·h_t| up to a factor.

        Softmax does not see what all classes share, so their mean is taken off first.
        """
        values = self.contributions
        return (values - values.mean(-1, keepdim=True)).square().sum(-1).sqrt()

    def difference(self, one: int, other: int) -> Float[Tensor, "B T"]:
        """Each token's logit of class `one` against class `other`, bias included (Σ α = 1)."""
        values = self.contributions + self.bias
        return values[..., one] - values[..., other]


@dataclass(frozen=True, slots=True, eq=False)
class QueryDecoder:
    """logits = W tanh(Σ_t α_t · read_t + shift) + bias: an output that depends on a question too.

    What is read of the states, and what the question adds, is known before any attention. A class
    that a text does not allow has the logit `NEVER`, and so the probability 0.
    """

    read: Float[Tensor, "B T A"]
    shift: Float[Tensor, "B A"]
    weight: Float[Tensor, "C A"]
    bias: Float[Tensor, "C"]
    allowed: Bool[Tensor, "B C"] | None = None

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        mixed = torch.einsum("...bt,bta->...ba", attention, self.read)
        return self.output(mixed)

    def output(self, mixed: Float[Tensor, "*K B A"]) -> Float[Tensor, "*K B C"]:
        """The logits of what attention has mixed of the readings."""
        logits = torch.nn.functional.linear((mixed + self.shift).tanh(), self.weight, self.bias)
        return logits if self.allowed is None else logits.masked_fill(~self.allowed, EXCLUDED_LOGIT)


@dataclass(frozen=True, slots=True, eq=False)
class MaskEmbedding:
    """What stands in the place of a word that is hidden: a name for reports, and its vector."""

    name: str
    vector: Float[Tensor, "E"]


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One score per token, for one target class per text."""

    method: str
    scores: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]

    def __post_init__(self) -> None:
        if bool(self.scores.masked_fill(self.mask, 0.0).any()):
            raise ShapeError(f"{self.method} scored padding; fill with 0 where mask is False.")
        if not bool(self.scores.isfinite().all()):
            raise ShapeError(f"{self.method} gave a score that is not finite.")
