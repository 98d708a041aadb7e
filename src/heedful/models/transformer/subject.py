"""A transformers model as a subject: classifier, language model or encoder–decoder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import AttentionUnavailable
from heedful.core.values import Decoder, Example, Forward, MaskEmbedding
from heedful.models.attention_access.edits import (
    RowLocation,
    RowPlacement,
    detach_as_leaf,
    is_cross_attention,
    place_frozen,
)
from heedful.models.attention_access.recorder import AttentionCall, Edit
from heedful.models.attention_access.scope import Scope
from heedful.models.internals.attention_blocks import find_attention_blocks
from heedful.models.internals.value_zeroing import compute_value_zeroing
from heedful.models.transformer.forward import TransformerRunner, last_positions
from heedful.models.transformer.last_layer_replay import LastLayerReplay
from heedful.models.transformer.mask_embedding import find_mask_embedding
from heedful.models.transformer.tokenization import SubwordTokenizer
from heedful.numerics.tensor.attention_maps import read_rows, take_rows


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformerSubject(TransformerRunner):
    """A model, its tokenizer, and which of its attentions is under audit.

    Classes are those of the classifier, or tokens: all of the vocabulary, or those in `answers`.
    `left` pads texts on the left: some models pool the last position, padded or not.
    """

    pieces: SubwordTokenizer
    labels: tuple[str, ...]
    scope: Scope
    chat: bool = False
    left: bool = False
    max_batch_tokens: int = 1_024  # maps grow with the square of a text; larger gains nothing

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
        """How the weights are reached: interface or tap."""
        return self.access.path

    @property
    def parity(self) -> float:
        """How far the seam's logits lay from the untouched model's when it was proved."""
        return self.access.parity

    @property
    def max_length(self) -> int:
        """The most tokens of a text."""
        return self.pieces.longest

    @property
    def labelled(self) -> bool:
        """Whether data must come with labels: any text has a next token."""
        return self.task == "classification" or self.answers is not None

    @property
    def max_texts(self) -> int | None:
        """How many texts at once: a vocabulary as output makes everything large."""
        return None if self.task == "classification" else max(1, 500_000 // len(self.labels))

    def fingerprint(self) -> str:
        """sha256 over weights, tokenizer, settings and scope."""
        digest = sha256(self.model.config.to_json_string().encode())
        digest.update(self.pieces.tokenizer.backend_tokenizer.to_str().encode())
        digest.update(repr((self.scope, self.labels, self.answers, self.prefix)).encode())
        told = (self.pieces.longest, self.chat, self.left, self.half, self.model.dtype)
        digest.update(repr(told).encode())
        for name, weight in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            raw = weight.detach().cpu().contiguous().flatten().view(torch.uint8)
            digest.update(raw.numpy().tobytes())
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """Number the pieces of a text, special tokens included."""
        encoded = (self.pieces.encode_chat if self.chat else self.pieces.encode)(example)
        if len(encoded.ids) < 2:  # without it nothing would be left to read: not explained
            return replace(encoded, word=(-1,) * len(encoded.ids))
        return encoded

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad on the side where the model does not look."""
        return collate(encoded, pad_id=self.model.config.pad_token_id or 0, left=self.left)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The vectors of the tokens, before positions are added."""
        return self._vectors(batch.ids)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass with every attention of it."""
        leaf = detach_as_leaf if embedded is not None and torch.is_grad_enabled() else None
        return self.forward_with_edit(batch, leaf, embedded)

    def forward_with_edit(
        self, batch: Batch, edit: Edit | None, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Forward:
        """A pass whose attentions are edited, and told as edited."""
        logits, recorder = self.run(batch, edit, embedded=embedded)
        calls = [call for call in recorder.calls if self.audited(call, batch)]
        maps = tuple(one.weights for one in calls)  # as they are: gradients are taken at them
        rows = self.rows_of(batch, maps).to(logits.dtype)
        call = [call for layer, call in enumerate(calls) if self.scope.holds(layer)][-1]
        states = call.states
        if states is not None and call.values is None and self.access.tokens_first:
            states = states.transpose(0, 1)
        if states is None or states.shape[:2] != batch.ids.shape:
            raise AttentionUnavailable(f"{call.module} does not show the states it attends to.")
        told = (
            states.to(logits.dtype),
            rows,
            maps,
            *self._encoder_and_decoder_maps(recorder.calls, calls),
        )
        return Forward(logits, read_rows(rows, batch.mask), *told)

    def _encoder_and_decoder_maps(
        self, calls: Sequence[AttentionCall], audited: Sequence[AttentionCall]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The maps within the encoder and within the decoder, where there are both."""
        first = min(call.order for call in audited)
        others = [call for call in calls if call not in audited]
        encoder = calls[: first - 1] if others else ()  # a decoder layer attends to itself first
        decoder = others[len(encoder) :]
        return tuple(call.weights for call in encoder), tuple(call.weights for call in decoder)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """The output under other rows: by the last layer's one position where that is exact."""
        replay = LastLayerReplay.of(self, batch, forward)
        return self.full_decoder(batch) if replay is None else replay

    def layer_rows(self, batch: Batch, forward: Forward) -> tuple[Float[Tensor, "B H T"], ...]:
        """For each layer every head's row at the position under audit, or its mean over all."""
        where = self.position(batch)
        if where is not None:
            return tuple(take_rows(one, batch.present, where) for one in forward.maps)
        inside = batch.present[:, None, :, None]
        count = batch.present.sum(-1)[:, None, None]
        return tuple((one * inside).sum(2) / count for one in forward.maps)

    def rows_of(
        self, batch: Batch, maps: Sequence[Float[Tensor, "B H Q K"]]
    ) -> Float[Tensor, "B R T"]:
        """The rows under audit, of the weights or of anything else there is one of per weight."""
        where, head = self.position(batch), self.scope.head
        held = [one for layer, one in enumerate(maps) if self.scope.holds(layer)]
        return torch.cat([take_rows(one, batch.present, where, head=head) for one in held], dim=1)

    def row_at_position(self, batch: Batch, matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B K"]:
        """The row of the position under audit, or the mean over all that are no padding."""
        where = self.position(batch)
        if where is not None:
            return matrix[torch.arange(len(matrix)), where]
        inside = batch.present[:, :, None].to(matrix)
        return (matrix * inside).sum(1) / inside.sum(1)

    def part_sizes(self, batch: Batch) -> list[Float[Tensor, "B Q K"]]:
        """‖α f(x)‖ of each key for each query, in the layers under audit."""
        blocks = find_attention_blocks(
            self.full_precision(), batch, lambda call: self.audited(call, batch)
        )
        held = [block for layer, block in enumerate(blocks) if self.scope.holds(layer)]
        return [block.part_sizes(batch, head=self.scope.head) for block in held]

    def zeroed_values(self, batch: Batch, *, max_batch_tokens: int) -> list[Float[Tensor, "B T T"]]:
        """How far each state turns without each key's value, layer by layer."""
        return compute_value_zeroing(self, batch, max_batch_tokens=max_batch_tokens)

    def blank(self) -> MaskEmbedding:
        """The mask token's vector; without one the unknown token's, or the mean of all tokens'."""
        return self._blank

    @cached_property
    def _blank(self) -> MaskEmbedding:
        size = self.model.config.get_text_config().vocab_size
        return find_mask_embedding(self.pieces.tokenizer, self._vectors, size)

    def _vectors(self, ids: Int[Tensor, "*K"]) -> Float[Tensor, "*K E"]:
        with torch.no_grad():
            vectors: Tensor = self.embedding(ids.to(self.device))
        return vectors

    def head_values(self, batch: Batch, forward: Forward) -> Float[Tensor, "B T D"] | None:  # noqa: ARG002
        """The values of the head under audit; None where more than one is, or on the tap."""
        head, layer = self.scope.head, self.scope.layer
        if head is None or layer == "all" or self.scope.position == "mean":
            return None
        if self.access.path != "interface":
            return None
        width = forward.states.shape[-1] // forward.maps[layer].shape[1]
        return forward.states[..., head * width : (head + 1) * width]

    def rows_elsewhere(
        self, batch: Batch, forward: Forward, *, layer: int, position: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B R T"], Decoder]:
        """The rows of a layer at one position of each text, and the output under others there."""
        rows = take_rows(forward.maps[layer], batch.present, position)
        return rows, self.full_decoder(batch, RowLocation(layer, position))

    def hold(
        self, batch: Batch, embedded: Float[Tensor, "B T E"], rows: Float[Tensor, "B R T"]
    ) -> Float[Tensor, "B C"]:
        """Logits with all attention held constant, that under audit at the given rows."""
        place = self._places(batch).edit(rows)
        return self.run(batch, lambda call: place_frozen(call, place), embedded=embedded)[0]

    def position(self, batch: Batch) -> Int[Tensor, "B"] | None:
        """The position whose row is read, in each text; None for the mean over all."""
        if self.scope.position == "mean":
            return None
        if self.task == "next target token":
            return torch.full((len(batch),), len(self.prefix) - 1)
        if self.scope.position == "first":
            return torch.zeros(len(batch), dtype=torch.long)
        return last_positions(batch)

    def audited(self, call: AttentionCall, batch: Batch) -> bool:
        """Whether a call is an attention over the text; in an encoder–decoder, the cross ones."""
        queries = batch.ids.shape[1] if self.task != "next target token" else len(self.prefix)
        if self.task == "next target token" and queries == batch.ids.shape[1]:
            return is_cross_attention(call.module)
        return call.weights.shape[-2:] == (queries, batch.ids.shape[1])

    def _places(self, batch: Batch, elsewhere: RowLocation | None = None) -> RowPlacement:
        def audited(call: AttentionCall) -> bool:
            return self.audited(call, batch)

        if elsewhere is None:
            return RowPlacement(batch, audited, self.scope, self.position(batch))
        position = elsewhere.position.repeat(len(batch) // len(elsewhere.position))
        return RowPlacement(batch, audited, Scope(elsewhere.layer), position)

    def full_decoder(self, batch: Batch, elsewhere: RowLocation | None = None) -> Decoder:
        """The output under other rows, by the whole model; also rows that are not under audit."""

        def decode(weights: Tensor) -> Tensor:
            many = weights.reshape(-1, *weights.shape[-3:])
            size = max(1, self.max_batch_tokens // batch.ids.numel())
            found = []
            for some in torch.split(many, size):
                repeat_texts = batch.repeat_texts(len(some))
                edit = self._places(repeat_texts, elsewhere).edit(some.flatten(0, 1))
                logits = self.run(repeat_texts, edit, keep=False)[0]
                found.append(logits.reshape(len(some), len(batch), -1))
            return torch.cat(found).reshape(*weights.shape[:-3], len(batch), -1)

        return decode
