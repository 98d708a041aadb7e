"""A transformers model as a subject: classifier, language model or encoder–decoder."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import AttentionUnavailable, ModelError
from heedful.core.values import Decoder, Example, Forward, MaskEmbedding
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.recorder import (
    AttentionCall,
    Edit,
    RowPlacement,
    detach_as_leaf,
)
from heedful.models.attention_access.scope import Scope
from heedful.models.attention_access.supported_families import is_cross_attention
from heedful.models.internals.attention_blocks import compute_value_zeroing, find_attention_blocks
from heedful.models.protocols import add_tensors
from heedful.models.transformer.forward import TransformerRunner, last_positions
from heedful.models.transformer.last_layer import LastLayerReplay
from heedful.models.transformer.tokenization import SubwordTokenizer
from heedful.numerics.tensor.attention_maps import read_rows, take_rows

VOCABULARY_CHUNK = 4096  # embeddings looked up at once for the mean over a vocabulary


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformerSubject(TransformerRunner):
    """A model, its tokenizer, and which of its attentions is audited."""

    subword_tokenizer: SubwordTokenizer
    labels: tuple[str, ...]  # classes of a classifier, else tokens: the vocabulary, or `answers`
    scope: Scope
    chat: bool = False  # read texts as JSON lists of messages
    pad_left: bool = False  # for models that pool the last position, padded or not
    max_batch_tokens: int = 1_024  # more gains nothing: maps grow with the square of the length

    @property
    def family(self) -> str:
        """The model type, such as "bert"."""
        return str(self.model.config.model_type)

    @property
    def architecture(self) -> str:
        """Many attentions, reached through the seam."""
        return "transformer"

    @property
    def attention_path(self) -> str:
        """How attention weights are accessed: interface or tap."""
        return self.access.path

    @property
    def parity(self) -> float:
        """Largest difference from the unmodified model's logits in the check at load time."""
        return self.access.parity

    @property
    def max_length(self) -> int:
        """The longest text in tokens."""
        return self.subword_tokenizer.max_tokens

    @property
    def labelled(self) -> bool:
        """Whether data need labels; a next token needs none."""
        return self.task == "classification" or self.answers is not None

    @property
    def max_texts(self) -> int | None:
        """Upper bound on the texts of a batch, for outputs of the size of a vocabulary."""
        return None if self.task == "classification" else max(1, 500_000 // len(self.labels))

    def fingerprint(self) -> str:
        """sha256 over weights and their precision, tokenizer, settings and scope."""
        digest = sha256(self.model.config.to_json_string().encode())
        digest.update(self.subword_tokenizer.tokenizer.backend_tokenizer.to_str().encode())
        digest.update(repr((self.scope, self.labels, self.answers, self.prefix)).encode())
        settings = (self.max_length, self.chat, self.pad_left, self.bfloat16, self.model.dtype)
        digest.update(repr(settings).encode())
        add_tensors(digest, self.model.state_dict())
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """Tokenize a text, with special tokens."""
        tokenizer = self.subword_tokenizer
        encoded = (tokenizer.encode_chat if self.chat else tokenizer.encode)(example)
        if (last := max(encoded.ids, default=0)) >= self._vocabulary_size:
            raise ModelError(
                f"The tokenizer gives a token the number {last}, but the model has "
                f"{self._vocabulary_size} token vectors. They do not belong together."
            )
        if len(encoded.ids) < 2:  # deleting the only token would leave no text: not explained
            return replace(encoded, word=(-1,) * len(encoded.ids))
        return encoded

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad on the side that the model does not pool."""
        return collate(encoded, pad_id=self.model.config.pad_token_id or 0, left=self.pad_left)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Token embeddings, before positions are added."""
        return self._vectors(batch.ids)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass with all its attentions."""
        leaf = detach_as_leaf if embedded is not None and torch.is_grad_enabled() else None
        return self.forward_with_edit(batch, leaf, embedded)

    def forward_with_edit(
        self, batch: Batch, edit: Edit | None, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Forward:
        """One pass with edited attentions, which are returned as edited."""
        logits, recorder = self.run(batch, edit, embedded=embedded)
        calls = [call for call in recorder.calls if self.is_audited(call, batch)]
        maps = tuple(one.weights for one in calls)  # not copied: gradients are taken at them
        rows = self.select_rows(batch, maps).to(logits.dtype)
        call = calls[-1 if self.scope.layer == "all" else self.scope.layer]
        states = call.states
        if states is not None and call.values is None and self.access.tokens_first:
            states = states.transpose(0, 1)
        if states is None or states.shape[:2] != batch.ids.shape:
            raise AttentionUnavailable(f"{call.module} does not expose the states it attends to.")
        others = self._encoder_and_decoder_maps(recorder.calls, calls)
        attention = read_rows(rows, batch.mask)
        return Forward(logits, attention, states.to(logits.dtype), rows, maps, *others)

    def _encoder_and_decoder_maps(
        self, calls: Sequence[AttentionCall], audited: Sequence[AttentionCall]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Self-attention maps of encoder and decoder; empty for other models."""
        first = min(call.order for call in audited)
        others = [call for call in calls if call not in audited]
        encoder = calls[: first - 1] if others else ()  # a decoder layer starts with self-attention
        decoder = others[len(encoder) :]
        return tuple(call.weights for call in encoder), tuple(call.weights for call in decoder)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """Logits under other rows, by replaying one position of the last layer if that is exact."""
        replay = LastLayerReplay.build(self, batch, forward)
        return self.full_decoder(batch) if replay is None else replay

    def layer_rows(self, batch: Batch, forward: Forward) -> tuple[Float[Tensor, "B H T"], ...]:
        """For each layer, every head's row at the audited position, or the mean over all."""
        return tuple(self.row_at_position(batch, one) for one in forward.maps)

    def select_rows(
        self, batch: Batch, maps: Sequence[Float[Tensor, "B H Q K"]]
    ) -> Float[Tensor, "B R T"]:
        """The audited rows of attention maps, or of other tensors of the same shape."""
        where, head = self.position(batch), self.scope.head
        included = [one for layer, one in enumerate(maps) if self.scope.includes_layer(layer)]
        rows = [take_rows(one, batch.present, where, head=head) for one in included]
        return torch.cat(rows, dim=1)

    def row_at_position(
        self, batch: Batch, matrix: Float[Tensor, "B *H Q K"]
    ) -> Float[Tensor, "B *H K"]:
        """The row at the audited position, or the mean over all but padding."""
        where, rows = self.position(batch), matrix.movedim(-2, 1)
        if where is not None:
            return rows[torch.arange(len(rows)), where]
        inside = batch.present.to(rows).view(*batch.present.shape, *[1] * (rows.dim() - 2))
        return (rows * inside).sum(1) / inside.sum(1)

    def contribution_norms(self, batch: Batch) -> list[Float[Tensor, "B Q K"]]:
        """‖α f(x)‖ of each key for each query, in the audited layers."""
        blocks = find_attention_blocks(
            self.full_precision(), batch, lambda call: self.is_audited(call, batch)
        )
        included = [block for layer, block in enumerate(blocks) if self.scope.includes_layer(layer)]
        return [block.contribution_norms(batch, head=self.scope.head) for block in included]

    def value_zeroing(self, batch: Batch, *, max_batch_tokens: int) -> list[Float[Tensor, "B T T"]]:
        """1 − cosine of each state without each key's value, by layer."""
        return compute_value_zeroing(self, batch, max_batch_tokens=max_batch_tokens)

    def mask_embedding(self) -> MaskEmbedding:
        """Embedding of the mask token, else of the unknown token, else the mean of all.

        A token that also starts or ends texts is neither.
        """
        return self._mask_embedding

    @cached_property
    def _mask_embedding(self) -> MaskEmbedding:
        tokenizer = self.subword_tokenizer.tokenizer
        ends = {tokenizer.eos_token_id, tokenizer.bos_token_id}  # as GPT-2's unknown token is
        for name in ("mask_token", "unk_token"):
            number = getattr(tokenizer, f"{name}_id")
            if number is not None and number not in ends:
                vector = self._vectors(torch.tensor([number]))[0]
                return MaskEmbedding(getattr(tokenizer, name), vector)
        size = self.model.config.get_text_config().vocab_size
        parts = [
            self._vectors(ids).sum(0) for ids in torch.split(torch.arange(size), VOCABULARY_CHUNK)
        ]
        return MaskEmbedding("mean of all token vectors", torch.stack(parts).sum(0) / size)

    @cached_property
    def _vocabulary_size(self) -> int:
        table = getattr(self.embedding, "weight", None)  # a model of one's own may compute vectors
        return sys.maxsize if table is None else int(table.shape[0])

    def _vectors(self, ids: Int[Tensor, "*K"]) -> Float[Tensor, "*K E"]:
        with model_lock(self.model), torch.no_grad():
            vectors: Tensor = self.embedding(ids.to(self.device))
        return vectors

    def head_values(self, batch: Batch, forward: Forward) -> Float[Tensor, "B T D"] | None:  # noqa: ARG002
        """Values of the audited head; None if several are audited, or on the tap path."""
        head, layer = self.scope.head, self.scope.layer
        hidden = self.scope.position == "mean" or self.access.path != "interface"
        if head is None or layer == "all" or hidden:
            return None
        width = forward.states.shape[-1] // forward.maps[layer].shape[1]
        return forward.states[..., head * width : (head + 1) * width]

    def rows_and_decoder_at(
        self, batch: Batch, forward: Forward, *, layer: int, position: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B R T"], Decoder]:
        """The rows of a layer at one position per text, and a decoder that replaces them."""
        rows = take_rows(forward.maps[layer], batch.present, position)
        here = replace(self.audited_rows(batch), scope=Scope(layer), position=position)
        return rows, self.full_decoder(batch, here)

    def logits_with_frozen_attention(
        self, batch: Batch, embedded: Float[Tensor, "B T E"], rows: Float[Tensor, "B R T"]
    ) -> Float[Tensor, "B C"]:
        """Logits with constant attention, the audited rows as given."""
        place = self.audited_rows(batch).edit(rows)

        def freeze(call: AttentionCall) -> Tensor:
            placed = place(call)
            return (placed if isinstance(placed, Tensor) else call.weights).detach()

        return self.run(batch, freeze, embedded=embedded)[0]

    def position(self, batch: Batch) -> Int[Tensor, "B"] | None:
        """The position whose row is read in each text; None for the mean over all."""
        if self.scope.position == "mean":
            return None
        if self.task == "next target token":
            return torch.full((len(batch),), len(self.prefix) - 1)
        if self.scope.position == "first":
            return torch.zeros(len(batch), dtype=torch.long)
        return last_positions(batch)

    def is_audited(self, call: AttentionCall, batch: Batch) -> bool:
        """Whether a call attends to the text; in an encoder–decoder, cross-attention only."""
        length = batch.ids.shape[1]
        queries = len(self.prefix) if self.task == "next target token" else length
        if self.task == "next target token" and queries == length:
            return is_cross_attention(call.module)
        return call.weights.shape[-2:] == (queries, length)

    def audited_rows(self, batch: Batch) -> RowPlacement:
        """The place of the audited rows."""
        return RowPlacement(
            batch, lambda call: self.is_audited(call, batch), self.scope, self.position(batch)
        )

    def full_decoder(self, batch: Batch, rows: RowPlacement | None = None) -> Decoder:
        """Logits under other rows, by the whole model; by default the audited ones."""
        placement = rows or self.audited_rows(batch)

        def decode(weights: Tensor) -> Tensor:
            many = weights.reshape(-1, *weights.shape[-3:])
            size = max(1, self.max_batch_tokens // batch.ids.numel())
            decoded = []
            for some in torch.split(many, size):
                here = placement.repeat_texts(len(some))
                edit = here.edit(some.flatten(0, 1))
                logits = self.run(here.batch, edit, keep=False)[0]
                decoded.append(logits.reshape(len(some), len(batch), -1))
            return torch.cat(decoded).reshape(*weights.shape[:-3], len(batch), -1)

        return decode
