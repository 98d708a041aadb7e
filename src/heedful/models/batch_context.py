"""One batch before one subject: what several methods and checks need of it is computed once."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, autograd

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import AttentionUnavailable
from heedful.core.rationales import WordAnnotations
from heedful.core.timing import Clock
from heedful.core.values import Decoder, Forward
from heedful.models.perturbed.attended_state import compute_attended_state
from heedful.models.protocols import (
    CanFreezeAttention,
    HasFastDeletion,
    HasLayers,
    HasLogitsOnly,
    ReferenceTexts,
    Subject,
)
from heedful.numerics.tensor.attention_maps import read_rows

Result_co = TypeVar("Result_co", covariant=True)
VariantLogits = tuple[Int[Tensor, "M"], Int[Tensor, "M"], Float[Tensor, "D C"]]
"""Of many variants some, their rows in a pass, and the logits of that pass."""


@runtime_checkable
class Computation(Hashable, Protocol[Result_co]):
    """A part that makes something of a sitting, as an intervention makes weights."""

    def __call__(self, context: "BatchContext") -> Result_co: ...


def token_budget(subject: Subject, max_batch_tokens: int) -> int:
    """How many tokens at once, by what was asked and what suits the subject."""
    own: int = getattr(subject, "max_batch_tokens", max_batch_tokens)
    return min(max_batch_tokens, own)


DECODER_TOLERANCE = 1e-4  # how far decoding under the model's own attention may lie from its output


@dataclass(frozen=True, eq=False)
class BatchContext:
    """A subject, a batch, and every shared quantity, computed when first asked for.

    `lean` says that no attention will be asked for, so that passes may leave it out where that is
    faster; it is still given to who asks. `people` holds what they said of the texts, by instance;
    `crowd` are whole texts of the data, `texts` those of the batch as they were encoded, where who
    made the sitting knows them.
    """

    subject: Subject
    batch: Batch
    seed: int = 0
    max_batch_tokens: int = 20_000
    clock: Clock = field(default_factory=Clock)
    lean: bool = False
    people: Mapping[int, WordAnnotations] = field(default_factory=dict)
    reference: ReferenceTexts | None = None
    texts: Sequence[Encoded] = ()
    kept: dict[Hashable, Any] = field(default_factory=dict)

    def cached(self, part: Computation[Result_co]) -> Result_co:
        """What a part makes of this sitting, computed once; equal settings are equal parts."""
        if part not in self.kept:
            self.kept[part] = part(self)
        made: Result_co = self.kept[part]
        return made

    @property
    def budget(self) -> int:
        """How many tokens may be run at once, by what was asked and what suits the subject."""
        return token_budget(self.subject, self.max_batch_tokens)

    def cut(self, *many: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Variants of the texts, as wide as they are, in parts that may be run at once."""
        size = max(1, self.budget // self.batch.ids.shape[1])
        yield from zip(*(torch.split(one, size) for one in many), strict=True)

    def outputs(
        self, batch: Batch, embedded: Float[Tensor, "N T E"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Logits alone, without the attention where the subject can leave that out."""
        if isinstance(self.subject, HasLogitsOnly):
            return self.subject.outputs(batch, embedded)
        return self.subject.forward(batch, embedded).logits

    def attended(
        self, batch: Batch, embedded: Float[Tensor, "N T E"] | None = None
    ) -> Float64[Tensor, "N D"]:
        """What attention makes of other texts, in the place of their logits."""
        return compute_attended_state(self.subject, batch, embedded)

    @cached_property
    def embedded(self) -> Float[Tensor, "B T E"]:
        """The word vectors, as the leaf that gradients are taken at."""
        return self.subject.embed(self.batch).detach().requires_grad_()

    @cached_property
    def graph(self) -> Forward:
        """The one forward pass, with its autograd graph."""
        with self.clock("forward"), torch.enable_grad():
            return self.subject.forward(self.batch, self.embedded)

    @cached_property
    def logits(self) -> Float[Tensor, "B C"]:
        """The output, with its autograd graph."""
        return self.logits_only_pass() if self.lean else self.graph.logits

    def logits_only_pass(self) -> Float[Tensor, "B C"]:
        """The output by a pass of its own, with a graph that nobody else needs."""
        with self.clock("forward"), torch.enable_grad():
            return self.outputs(self.batch, self.embedded)

    @cached_property
    def forward(self) -> Forward:
        """The same pass without the graph."""
        return self.graph.detached()

    @cached_property
    def rows(self) -> Float[Tensor, "B *R T"]:
        """The weights that interventions replace: the attention itself, or the rows behind it."""
        rows = self.forward.rows
        return self.forward.attention if rows is None else rows

    @cached_property
    def words(self) -> Bool[Tensor, "B *R T"]:
        """The words that rows may attend to: a later or a far one may be closed to some of them."""
        mask, rows = self.batch.mask, self.forward.rows
        return mask if rows is None else mask[:, None] & (rows > 0)

    @cached_property
    def layer_rows(self) -> tuple[Float[Tensor, "B H T"], ...]:
        """Every head's row at the position under audit, layer by layer; empty without layers."""
        if not isinstance(self.subject, HasLayers):
            return ()
        return self.subject.layer_rows(self.batch, self.forward)

    @cached_property
    def mass(self) -> Float[Tensor, "B *R 1"]:
        """How much weight each row gives to the words; an intervention keeps it."""
        return self.rows.masked_fill(~self.words, 0.0).sum(-1, keepdim=True)

    def place_on_words(self, weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Distributions over the words as rows, each with its own mass on words, the rest as is."""
        if self.forward.rows is None:
            return weights
        return torch.where(self.words, self.mass * weights, self.rows)

    def reading(self, rows: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """What rows in the place of the model's own read as: one distribution over the words."""
        return rows if self.forward.rows is None else read_rows(rows, self.batch.mask)

    @cached_property
    def decode(self) -> Decoder:
        """Output under another attention, proved to be the model's own output under its own.

        A decoder that does not hear the attention it is given would make every intervention look
        harmless; so would one that decodes something else.
        """
        return self._proved[0]

    @cached_property
    def parity(self) -> float:
        """Largest difference between the model's logits and those decoded under its attention."""
        return self._proved[1]

    @cached_property
    def _proved(self) -> tuple[Decoder, float]:
        decode = self.subject.decoder(self.batch, self.forward)
        if not self._uses_attention(decode):
            raise AttentionUnavailable(
                f"The decoder of {self.subject.family} gives the same logits under any attention; "
                "decoder() must use the attention it is given, in a way autograd can follow."
            )
        gap = self._gap(decode)
        if not gap <= getattr(self.subject, "tolerance", DECODER_TOLERANCE):
            raise AttentionUnavailable(
                f"Decoding {self.subject.family} under its own attention gives other logits than "
                f"its forward pass (difference {gap:.2g}); decoder() must use the "
                "attention it is given and return what forward() returns."
            )
        return decode, gap

    @cached_property
    def predicted(self) -> Int[Tensor, "B"]:
        """The predicted classes."""
        return self.logits.detach().argmax(-1)

    def gradient(
        self, target: Int[Tensor, "B"], *, attention: Float[Tensor, "B *R T"] | None
    ) -> Float[Tensor, "B T E"]:
        """∂p_target/∂x with attention held at the given weights, or free to move where None."""
        with torch.enable_grad():
            if attention is None:
                logits = self.graph.logits
            elif isinstance(self.subject, CanFreezeAttention):
                logits = self.subject.hold(self.batch, self.embedded, attention.detach())
            else:
                logits = self.subject.decoder(self.batch, self.graph)(attention.detach())
            chosen = logits.softmax(-1).gather(-1, target[:, None])
            (gradient,) = autograd.grad(chosen.sum(), self.embedded, retain_graph=True)
        return gradient

    @cached_property
    def without_each(self) -> Float[Tensor, "B T C"]:
        """Logits with token t deleted, for each t in the mask; zeros elsewhere."""
        with self.clock("leave_one_out"), torch.no_grad():
            if isinstance(self.subject, HasFastDeletion):
                return self.subject.without_each(self.batch, max_batch_tokens=self.budget)
            return self._run_every_variant()

    def _run_every_variant(self) -> Float[Tensor, "B T C"]:
        result = self.logits.detach().new_zeros(*self.batch.mask.shape, len(self.subject.labels))
        for rows, positions in self.cut(*self.batch.mask.nonzero(as_tuple=True)):
            shorter = self.batch.delete_tokens(rows, positions)
            result[rows, positions] = self.subject.forward(shorter).logits
        return result

    def _uses_attention(self, decode: Decoder) -> bool:
        """Whether the output is computed from the attention, even if it does not move with it."""
        with torch.enable_grad():
            leaf = self.rows.clone().requires_grad_()
            logits = decode(leaf)
            if not logits.requires_grad:
                return False
            (slope,) = autograd.grad(logits.sum(), leaf, allow_unused=True)
        return slope is not None

    def _gap(self, decode: Decoder) -> float:
        with torch.no_grad():
            return float((decode(self.rows) - self.forward.logits).abs().max())


OutputFunction = Callable[
    [BatchContext, Batch, Float[Tensor, "N T E"] | None], Float[Tensor, "N K"]
]
"""What is asked of texts in a pass: their logits, or what attention makes of them."""
