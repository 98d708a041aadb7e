"""The Subject protocol, which every audited model implements, and its optional extensions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.values import Decoder, Example, Forward, MaskEmbedding
from heedful.models.attention_access.access import AttentionAccess
from heedful.models.attention_access.recorder import AttentionCall, AttentionRecorder, Edit
from heedful.models.attention_access.scope import Scope


@runtime_checkable
class Subject(Protocol):
    """A model under audit.

    Five operations are enough for every check: encode a text, collate a batch, embed it, run it
    and return its attention, and decode the same states under a given attention. Gradients are
    taken through `embed` → `forward(…, embedded)` → `decoder`, so all of these must be
    differentiable. No method may change the model.
    """

    @property
    def family(self) -> str:
        """A short name of the architecture, for reports."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names in the order of the logits; at least two."""

    def encode(self, example: Example) -> Encoded:
        """Turn a text into token ids, and assign each token to a word."""

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad encoded texts into one batch."""

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Input embeddings of the tokens."""

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One forward pass; from `embedded` if given, so that gradients can be taken there."""

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """A function from attention to logits, with the states of `forward` unchanged.

        Return a `LinearDecoder` if the output is linear in the attended states; exact answers
        follow from it. `decoder(batch, f)(f.attention)`, or `(f.rows)` if the pass returns rows,
        must equal `f.logits`; this is checked.
        """


@runtime_checkable
class HasFastDeletion(Protocol):
    """A subject that leaves out each token faster than by running every variant."""

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with token t deleted, for every t in the mask; zeros elsewhere."""


@runtime_checkable
class CanFreezeAttention(Protocol):
    """A subject with several attentions that can keep all of them fixed while its input changes."""

    def logits_with_frozen_attention(
        self, batch: Batch, embedded: Float[Tensor, "B T E"], rows: Float[Tensor, "B R T"]
    ) -> Float[Tensor, "B C"]:
        """Logits with constant attention: audited rows as given, all others the model's own."""


@runtime_checkable
class HasLayers(Protocol):
    """A subject with several layers and heads."""

    def layer_rows(self, batch: Batch, forward: Forward) -> tuple[Float[Tensor, "B H T"], ...]:
        """For each layer, every head's row at the audited position."""

    def select_rows(
        self, batch: Batch, maps: Sequence[Float[Tensor, "B H Q K"]]
    ) -> Float[Tensor, "B R T"]:
        """The audited rows of attention maps, or of other tensors of the same shape."""

    def row_at_position(self, batch: Batch, matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B K"]:
        """The row of a matrix at the audited position, or the mean over all positions."""


@runtime_checkable
class HasAttentionBlocks(Protocol):
    """A subject that exposes the inside of its attention blocks."""

    def contribution_norms(self, batch: Batch) -> list[Float[Tensor, "B Q K"]]:
        """For each audited layer, the norm of what each key adds to each query."""

    def value_zeroing(self, batch: Batch, *, max_batch_tokens: int) -> list[Float[Tensor, "B T T"]]:
        """For each layer, the change of each state when a key's value is zeroed (1 − cosine)."""


@runtime_checkable
class HasAttentionCalls(Protocol):
    """A transformer whose attention calls can be recorded, edited and replayed."""

    @property
    def model(self) -> Any: ...

    @property
    def scope(self) -> Scope: ...

    @property
    def access(self) -> AttentionAccess: ...

    @property
    def max_batch_tokens(self) -> int: ...

    @property
    def bfloat16(self) -> bool: ...

    @property
    def tolerance(self) -> float: ...

    def position(self, batch: Batch) -> Int[Tensor, "B"] | None: ...

    def is_audited(self, call: AttentionCall, batch: Batch) -> bool: ...

    def full_precision(self) -> Any: ...

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]: ...

    def run(
        self,
        batch: Batch,
        edit: Edit | None = None,
        *,
        embedded: Float[Tensor, "B T E"] | None = None,
        keep: bool = True,
    ) -> tuple[Float[Tensor, "B C"], AttentionRecorder]: ...


@runtime_checkable
class HasHiddenStates(Protocol):
    """A subject with several layers that returns the hidden states of each."""

    def read_states(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> tuple[Float[Tensor, "B C"], list[Float[Tensor, "B T _"]]]:
        """The logits, the input of the first layer, and the output of each layer."""


@runtime_checkable
class HasMaskEmbedding(Protocol):
    """A subject that has an embedding for a masked word."""

    def mask_embedding(self) -> MaskEmbedding:
        """The embedding of a mask token such as [MASK], or the closest substitute."""


@runtime_checkable
class HasLogitsOnly(Protocol):
    """A subject that computes its logits faster without returning attention."""

    def run_logits(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The logits of `forward`, and nothing else."""


@runtime_checkable
class RunsVariants(Protocol):
    """A subject that runs many variants of texts at less cost than each as a text of its own."""

    def logits_of_variants(
        self,
        batch: Batch,
        rows: Int[Tensor, "N"],
        kept: Bool[Tensor, "N T"],
        masked: Bool[Tensor, "N T"] | None = None,
    ) -> Float[Tensor, "N C"]:
        """Logits of texts rows[n] with the tokens kept[n] only, of which masked[n] are masked."""


@runtime_checkable
class HasHeadValues(Protocol):
    """A subject that exposes the values of a single head."""

    def head_values(self, batch: Batch, forward: Forward) -> Float[Tensor, "B T D"] | None:
        """Values of the audited head; None if several heads are audited or values are hidden."""


@runtime_checkable
class HasEditableRows(Protocol):
    """A subject with several attentions whose rows can be replaced in any layer and position."""

    def rows_and_decoder_at(
        self, batch: Batch, forward: Forward, *, layer: int, position: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B R T"], Decoder]:
        """The rows of a layer at one position per text, and a decoder that replaces them."""


@runtime_checkable
class HasArchitecture(Protocol):
    """A subject of a kind for which the power of the checks was measured.

    Those of the package are; on any other kind no check has a vote.
    """

    @property
    def architecture(self) -> str:
        """The kind: one of `ARCHITECTURES` in `pipeline.verdict.check_power`."""


@runtime_checkable
class HasFingerprint(Protocol):
    """A subject that can identify its model, so that an interrupted run can resume with it."""

    def fingerprint(self) -> str:
        """A digest that is equal for equal models of equal precision only."""


def add_tensors(digest: Any, tensors: Mapping[str, Tensor]) -> None:
    """Add the names, precisions, shapes and exact bytes of tensors to a digest of hashlib."""
    for name, one in sorted(tensors.items()):
        digest.update(f"{name} {one.dtype} {tuple(one.shape)}".encode())
        digest.update(one.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())


@runtime_checkable
class ReferenceTexts(Protocol):
    """Unmodified texts of the data, to compare modified ones with."""

    def share_nearer(
        self, states: Float64[Tensor, "M D"], instances: Int[Tensor, "M"]
    ) -> Float64[Tensor, "M"]:
        """The share of unmodified texts that have a nearer neighbour than the given states."""
