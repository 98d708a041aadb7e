"""The Subject protocol: what a model must offer to be put on trial."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.values import Decoder, Example, Forward, MaskEmbedding


@runtime_checkable
class Subject(Protocol):
    """A model under audit.

    Five verbs are enough for every check: encode a text, make a batch, embed it, run it with its
    attention out, and decode it again under an attention given from outside, states unchanged.
    Gradients are taken through `embed` → `forward(…, embedded)` → `decoder`, so all of them must
    be differentiable. Nothing here may change the model.
    """

    @property
    def family(self) -> str:
        """A short name of the architecture, for reports."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes' names, in the order of the logits; at least two."""
        ...

    def encode(self, example: Example) -> Encoded:
        """Turn a text into the ids the model reads, and say which word each token belongs to."""
        ...

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad several encoded texts into one batch."""
        ...

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The vectors the tokens enter the model with."""
        ...

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass; from `embedded` where given, so that gradients can be taken at it."""
        ...

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """What the model would say to these states under another attention.

        Return a `LinearDecoder` where the output is linear in the attended states: exact answers
        follow from it. `decoder(batch, f)(f.attention)`, or `(f.rows)` where the pass gives rows,
        must equal `f.logits`; this is checked.
        """
        ...


@runtime_checkable
class HasFastDeletion(Protocol):
    """A subject that knows a faster way to leave each token out than running every variant."""

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """The logits with token t deleted, for every t in the mask; zeros elsewhere."""
        ...


@runtime_checkable
class CanFreezeAttention(Protocol):
    """A subject of many attentions that can hold all of them constant while its input moves."""

    def hold(
        self, batch: Batch, embedded: Float[Tensor, "B T E"], rows: Float[Tensor, "B R T"]
    ) -> Float[Tensor, "B C"]:
        """Logits with attention constant: that under audit at the given rows, others as is."""
        ...


@runtime_checkable
class HasLayers(Protocol):
    """A subject of several layers and heads."""

    def layer_rows(self, batch: Batch, forward: Forward) -> tuple[Float[Tensor, "B H T"], ...]:
        """For each layer every head's row at the position under audit."""
        ...

    def rows_of(
        self, batch: Batch, maps: Sequence[Float[Tensor, "B H Q K"]]
    ) -> Float[Tensor, "B R T"]:
        """The rows under audit of maps, or of anything else there is one of per weight."""
        ...

    def row_at_position(self, batch: Batch, matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B K"]:
        """The row of a matrix that belongs to the position under audit, or the mean of all."""
        ...


@runtime_checkable
class HasAttentionBlocks(Protocol):
    """A subject whose attention blocks can be looked into."""

    def part_sizes(self, batch: Batch) -> list[Float[Tensor, "B Q K"]]:
        """For each layer under audit the size of what each key adds to each query."""
        ...

    def zeroed_values(self, batch: Batch, *, max_batch_tokens: int) -> list[Float[Tensor, "B T T"]]:
        """For each layer how far each state turns without each key's value."""
        ...


@runtime_checkable
class HasHiddenStates(Protocol):
    """A subject of several layers that shows what it knows of each token after each."""

    def read_states(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> tuple[Float[Tensor, "B C"], list[Float[Tensor, "B T _"]]]:
        """The logits, and the states that enter the first layer and that leave each."""
        ...


@runtime_checkable
class HasMaskEmbedding(Protocol):
    """A subject that knows a vector for no word."""

    def blank(self) -> MaskEmbedding:
        """The token that stands for none, such as [MASK], or what comes nearest."""
        ...


@runtime_checkable
class HasLogitsOnly(Protocol):
    """A subject that gives its output faster when its attention is not asked for."""

    def outputs(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The logits of `forward`, and nothing else."""
        ...


@runtime_checkable
class HasHeadValues(Protocol):
    """A subject that can show what a single head mixes."""

    def head_values(self, batch: Batch, forward: Forward) -> Float[Tensor, "B T D"] | None:
        """The values of the head under audit; None where more than one is, or they are unseen."""
        ...


@runtime_checkable
class HasEditableRows(Protocol):
    """A subject of many attentions whose rows can be replaced wherever they are."""

    def rows_elsewhere(
        self, batch: Batch, forward: Forward, *, layer: int, position: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B R T"], Decoder]:
        """The rows of a layer at one position of each text, and the output under others there."""
        ...


@runtime_checkable
class HasArchitecture(Protocol):
    """A subject of a kind that the power of the checks was measured on.

    The package's own subjects are; any other goes without, and no check has a vote on it.
    """

    @property
    def architecture(self) -> str:
        """The kind as the table of powers names it, one of `auditing.power.ARCHITECTURES`."""
        ...


@runtime_checkable
class HasFingerprint(Protocol):
    """A subject that can say which model it is, so that an interrupted run may go on with it."""

    def fingerprint(self) -> str:
        """The same for the same model, another for any other."""
        ...


@runtime_checkable
class ReferenceTexts(Protocol):
    """Whole texts of the data, that others can be held against."""

    def nearer(
        self, states: Float64[Tensor, "M D"], instances: Int[Tensor, "M"]
    ) -> Float64[Tensor, "M"]:
        """The share of whole texts that have a nearer neighbour than these have."""
        ...
