"""One subject and one batch: what several methods and checks need is computed once and cached."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, autograd

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import AttentionUnavailable
from heedful.core.rationales import WordAnnotations
from heedful.core.timing import Clock
from heedful.core.values import Decoder, Forward
from heedful.models.protocols import (
    CanFreezeAttention,
    HasFastDeletion,
    HasLayers,
    HasLogitsOnly,
    ReferenceTexts,
    Subject,
)
from heedful.numerics.tensor.attention_maps import read_rows

DECODER_TOLERANCE = 1e-4  # largest difference of the logits decoded under the model's own attention

Arguments = ParamSpec("Arguments")
ResultT = TypeVar("ResultT")
VariantLogits = tuple[Int[Tensor, "M"], Int[Tensor, "M"], Float[Tensor, "D C"]]
"""Indices of some variants, their rows in one pass, and the logits of that pass."""


def attended_state(batch: Batch, forward: Forward) -> Float64[Tensor, "B D"]:
    """Σ_t α_t h_t over the words of each text."""
    weights = forward.attention.masked_fill(~batch.mask, 0.0)
    return torch.einsum("bt,btd->bd", weights, forward.states).double().cpu()


@dataclass(frozen=True, eq=False)
class BatchContext:
    """A subject, a batch, and the quantities they share, each computed on first use.

    Args:
        subject: The model under audit.
        batch: The encoded texts.
        seed: Key of all random draws.
        max_batch_tokens: Upper bound on the tokens of one forward pass.
        clock: Collects the time spent in each kind of computation.
        logits_only: Nothing will need attention, so passes may skip it where that is faster.
            Attention is still available.
        rationales: Human annotations of the texts, by instance.
        reference: Unmodified texts of the data, for comparison.
        texts: The texts of the batch as they were encoded, where known.
        cache: Results of `cached`.
    """

    subject: Subject
    batch: Batch
    seed: int = 0
    max_batch_tokens: int = 20_000
    clock: Clock = field(default_factory=Clock)
    logits_only: bool = False
    rationales: Mapping[int, WordAnnotations] = field(default_factory=dict)
    reference: ReferenceTexts | None = None
    texts: Sequence[Encoded] = ()
    cache: dict[Hashable, Any] = field(default_factory=dict)

    def cached(
        self,
        part: Callable[Concatenate["BatchContext", Arguments], ResultT],
        *args: Arguments.args,
        **settings: Arguments.kwargs,
    ) -> ResultT:
        """The result of part(context, …), computed once; parts and arguments must be hashable."""
        key = (part, *args, *settings.items()) if args or settings else part
        if key not in self.cache:
            self.cache[key] = part(self, *args, **settings)
        result: ResultT = self.cache[key]
        return result

    @property
    def budget(self) -> int:
        """Tokens per forward pass: `max_batch_tokens`, or the subject's own limit if smaller."""
        own: int = getattr(self.subject, "max_batch_tokens", self.max_batch_tokens)
        return min(self.max_batch_tokens, own)

    def split_by_budget(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Split tensors of one row per variant of a text into chunks that fit in one pass."""
        size = max(1, self.budget // self.batch.ids.shape[1])
        yield from zip(*(torch.split(tensor, size) for tensor in tensors), strict=True)

    def run_logits(
        self, batch: Batch, embedded: Float[Tensor, "N T E"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Logits of any batch, without attention where the subject can skip it."""
        if isinstance(self.subject, HasLogitsOnly):
            return self.subject.run_logits(batch, embedded)
        return self.subject.forward(batch, embedded).logits

    def attended_state(
        self, batch: Batch, embedded: Float[Tensor, "N T E"] | None = None
    ) -> Float64[Tensor, "N D"]:
        """The attention-weighted state of any batch, to use in place of its logits."""
        return attended_state(batch, self.subject.forward(batch, embedded))

    @cached_property
    def embedded(self) -> Float[Tensor, "B T E"]:
        """Word embeddings of the batch, the leaf at which gradients are taken."""
        return self.subject.embed(self.batch).detach().requires_grad_()

    @cached_property
    def forward_with_graph(self) -> Forward:
        """The forward pass, with its autograd graph."""
        with self.clock("forward"), torch.enable_grad():
            return self.subject.forward(self.batch, self.embedded)

    @cached_property
    def logits(self) -> Float[Tensor, "B C"]:
        """Logits, with their autograd graph."""
        return self.logits_only_pass() if self.logits_only else self.forward_with_graph.logits

    def logits_only_pass(self) -> Float[Tensor, "B C"]:
        """Logits of a separate pass, whose graph the caller may free."""
        with self.clock("forward"), torch.enable_grad():
            return self.run_logits(self.batch, self.embedded)

    @cached_property
    def forward(self) -> Forward:
        """The forward pass, detached from its graph."""
        return self.forward_with_graph.detached()

    @cached_property
    def rows(self) -> Float[Tensor, "B *R T"]:
        """The weights that interventions replace: the rows of a transformer, else the attention."""
        rows = self.forward.rows
        return self.forward.attention if rows is None else rows

    @cached_property
    def attendable_words(self) -> Bool[Tensor, "B *R T"]:
        """The words each row may attend to; causal masks and windows exclude some of them."""
        mask, rows = self.batch.mask, self.forward.rows
        return mask if rows is None else mask[:, None] & (rows > 0)

    @cached_property
    def layer_rows(self) -> tuple[Float[Tensor, "B H T"], ...]:
        """Every head's row at the audited position, by layer; empty without layers."""
        if not isinstance(self.subject, HasLayers):
            return ()
        return self.subject.layer_rows(self.batch, self.forward)

    @cached_property
    def word_mass(self) -> Float[Tensor, "B *R 1"]:
        """Total weight of each row on words; interventions preserve it."""
        return self.rows.masked_fill(~self.attendable_words, 0.0).sum(-1, keepdim=True)

    def place_on_words(self, weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Turn distributions over words into rows of equal word mass; other weights stay."""
        if self.forward.rows is None:
            return weights
        return torch.where(self.attendable_words, self.word_mass * weights, self.rows)

    def read_attention(self, rows: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Reduce rows to one attention distribution over the words of each text."""
        return rows if self.forward.rows is None else read_rows(rows, self.batch.mask)

    @cached_property
    def decode(self) -> Decoder:
        """Logits under a given attention, checked to reproduce the model's own.

        A decoder that ignores its argument, or decodes something else, would make every
        intervention look harmless.
        """
        return self._checked_decoder[0]

    @cached_property
    def parity(self) -> float:
        """Largest difference between the model's logits and those decoded under its attention."""
        return self._checked_decoder[1]

    @cached_property
    def _checked_decoder(self) -> tuple[Decoder, float]:
        decode = self.subject.decoder(self.batch, self.forward)
        if not self._uses_attention(decode):
            raise AttentionUnavailable(
                f"The decoder of {self.subject.family} gives the same logits under any attention; "
                "decoder() must use the attention it is given, in a way autograd can follow."
            )
        with torch.no_grad():
            gap = float((decode(self.rows) - self.forward.logits).abs().max())
        if not gap <= getattr(self.subject, "tolerance", DECODER_TOLERANCE):
            raise AttentionUnavailable(
                f"Decoding {self.subject.family} under its own attention gives other logits than "
                f"its forward pass (largest difference {gap:.2g}); decoder() must use the "
                "attention it is given and return the logits of forward()."
            )
        return decode, gap

    @cached_property
    def predicted(self) -> Int[Tensor, "B"]:
        """The predicted classes."""
        return self.logits.detach().argmax(-1)

    def gradient(
        self, target: Int[Tensor, "B"], *, attention: Float[Tensor, "B *R T"] | None
    ) -> Float[Tensor, "B T E"]:
        """∂p_target/∂x with attention fixed at the given weights, or free to change if None."""
        with torch.enable_grad():
            if attention is None:
                logits = self.forward_with_graph.logits
            elif isinstance(self.subject, CanFreezeAttention):
                logits = self.subject.logits_with_frozen_attention(
                    self.batch, self.embedded, attention.detach()
                )
            else:
                decode = self.subject.decoder(self.batch, self.forward_with_graph)
                logits = decode(attention.detach())
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
        for rows, positions in self.split_by_budget(*self.batch.mask.nonzero(as_tuple=True)):
            shorter = self.batch.delete_tokens(rows, positions)
            result[rows, positions] = self.subject.forward(shorter).logits
        return result

    def _uses_attention(self, decode: Decoder) -> bool:
        """Whether the output depends on the attention in the graph, even with a zero gradient."""
        with torch.enable_grad():
            leaf = self.rows.clone().requires_grad_()
            logits = decode(leaf)
            if not logits.requires_grad:
                return False
            (gradient,) = autograd.grad(logits.sum(), leaf, allow_unused=True)
        return gradient is not None


OutputFunction = Callable[
    [BatchContext, Batch, Float[Tensor, "N T E"] | None], Float[Tensor, "N K"]
]
"""What a pass computes of texts: their logits, or their attended states."""
