"""The values that pass between the packages while an audit runs.

Axes: B texts, T tokens, C classes, D width of a state, E width of an embedding.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Example:
    """One row of a data set: a text, its label as an index, and optional annotations."""

    index: int
    text: str
    label: int  # −1 where the row has none
    tokens: tuple[str, ...] | None = None
    rationale: tuple[int, ...] | None = None
    pair: str | None = None  # the second text of a pair: a hypothesis, or a question
    word_scores: tuple[float, ...] | None = None  # given by human annotators, one per token
    candidates: tuple[int, ...] | None = None  # the classes that may be right, if not all
    cluster: str | None = None  # what is shared with texts of the same origin: their document


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """The result of one forward pass: logits, attention, and the states attended to.

    `attention` is the distribution under audit: one row per text, zero outside the words. Where a
    model has many attentions, its subject says which one this is: `rows` are then the R rows of
    weights behind it (of every head, for example), special tokens included, and `attention` is what
    they amount to together. `maps` holds every attention over the text, layer by layer; in an
    encoder–decoder those are the decoder's cross-attentions, and `encoder_maps` and `decoder_maps`
    hold the self-attentions. `question` is the encoded question of each text, if any.
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
        """The same numbers without the autograd graph, all in the dtype of the logits."""

        def detach(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(each.detach().to(self.logits.dtype) for each in value)
            return None if value is None else value.detach()

        return Forward(**{one.name: detach(getattr(self, one.name)) for one in fields(self)})

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """Softmax of the logits."""
        return self.logits.softmax(-1)

    @property
    def predicted(self) -> Int[Tensor, "B"]:
        """The class with the highest logit."""
        return self.logits.argmax(-1)


EXCLUDED_LOGIT = -1e9  # finite, so that differences of logits are finite; exp of it is 0

Decoder = Callable[[Float[Tensor, "..."]], Float[Tensor, "*K B C"]]
"""From attention weights that replace the model's own, (*K, B, T) or (*K, B, R, T), to logits."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearDecoder:
    """logits = Σ_t α_t · contributions_t + bias: a linear output layer as a function of attention.

    Permutations, adversaries and leverage then need C numbers per token instead of D.
    """

    contributions: Float[Tensor, "B T C"]
    bias: Float[Tensor, "C"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        return self.output(torch.einsum("...bt,btc->...bc", attention, self.contributions))

    def output(self, mixed: Float[Tensor, "*K B C"]) -> Float[Tensor, "*K B C"]:
        """The logits of contributions already weighted by attention."""
        return mixed + self.bias

    @property
    def influence(self) -> Float[Tensor, "B T"]:
        """‖s_t‖: how far a state moves the logits apart; for two classes |w·h_t| up to a factor.

        Softmax ignores what all classes share, so the mean over classes is subtracted first.
        """
        values = self.contributions
        return (values - values.mean(-1, keepdim=True)).square().sum(-1).sqrt()

    def difference(self, first: int, second: int) -> Float[Tensor, "B T"]:
        """Each token's logit of class `first` minus that of `second`, bias included (Σ α = 1)."""
        values = self.contributions + self.bias
        return values[..., first] - values[..., second]


@dataclass(frozen=True, slots=True, eq=False)
class QueryDecoder:
    """logits = W tanh(Σ_t α_t · read_t + shift) + bias: an output that also depends on a question.

    `read` (projected states) and `shift` (the question's part) do not depend on attention. A class
    that a text does not allow has the logit `EXCLUDED_LOGIT`, and so the probability 0.
    """

    read: Float[Tensor, "B T A"]
    shift: Float[Tensor, "B A"]
    weight: Float[Tensor, "C A"]
    bias: Float[Tensor, "C"]
    allowed: Bool[Tensor, "B C"] | None = None

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        return self.output(torch.einsum("...bt,bta->...ba", attention, self.read))

    def output(self, mixed: Float[Tensor, "*K B A"]) -> Float[Tensor, "*K B C"]:
        """The logits of projected states already weighted by attention."""
        logits = torch.nn.functional.linear((mixed + self.shift).tanh(), self.weight, self.bias)
        return logits if self.allowed is None else logits.masked_fill(~self.allowed, EXCLUDED_LOGIT)


@dataclass(frozen=True, slots=True, eq=False)
class MaskEmbedding:
    """The vector that replaces a masked word, and its name for reports."""

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
