"""Forward passes of a transformers model: from a batch to logits and every attention."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import AttentionUnavailable, ModelError
from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.layer_hooks import forward_hooks
from heedful.models.attention_access.recorder import AttentionRecorder, Edit
from heedful.models.attention_access.supported_families import Task
from heedful.models.internals.hidden_states import LogitsAndStates, StateRecorder, find_layers
from heedful.models.transformer.last_layer import FirstPositionOnly

NEAR_TIE_MARGIN = 0.1  # difference in probability of the two likeliest classes
BFLOAT16_TOLERANCE = 0.05  # largest difference of logits computed twice in bfloat16


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformerRunner:
    """Runs a model for one task and records or edits its attention.

    With `bfloat16` it computes in that precision, and again in full for near ties: about twice as
    fast, and accurate to two digits.

    Every pass holds the model's lock: it hooks modules and writes to the config, which all threads
    share, so that passes of several threads run one after the other.
    """

    model: Any
    task: Task
    access: AttentionAccess
    answers: tuple[int, ...] | None = None  # tokens that restrict a language model's output
    prefix: tuple[int, ...] = ()  # what the decoder of an encoder–decoder has generated so far
    bfloat16: bool = False
    first_position_only: FirstPositionOnly | None = None  # None: the output needs all positions

    @cached_property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def tolerance(self) -> float:
        """Largest expected difference of logits that are computed twice."""
        exact = not self.bfloat16 and self.model.dtype in (torch.float32, torch.float64)
        return 1e-4 if exact else BFLOAT16_TOLERANCE

    def full_precision(self) -> Any:
        """The same runner in the model's own precision, as needed to decompose states exactly."""
        return replace(self, bfloat16=False) if self.bfloat16 else self

    def run(
        self,
        batch: Batch,
        edit: Edit | None = None,
        *,
        embedded: Float[Tensor, "B T E"] | None = None,
        keep: bool = True,
    ) -> tuple[Float[Tensor, "B C"], AttentionRecorder]:
        """One pass, with every attention recorded and optionally edited."""
        with self._prepared(batch, embedded), self.access.patched(edit, keep=keep) as recorder:
            logits = self.logits(batch)
        if recorder.count != self.access.calls:
            raise AttentionUnavailable(
                f"The model computed {recorder.count} attentions where {self.access.calls} were "
                "expected; some were not recorded."
            )
        logits = logits.float() if self.bfloat16 else logits
        if self.bfloat16 and edit is None and embedded is None:
            logits = self._recompute_near_ties(batch, logits)
        return logits, recorder

    def run_logits(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The logits of `run` by the model's own, possibly fused, attention, unrecorded."""
        shortcut = self.first_position_only
        with self._prepared(batch, embedded), shortcut.applied() if shortcut else nullcontext():
            logits = self.logits(batch)
        return logits.float() if self.bfloat16 else logits

    def read_states(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> LogitsAndStates:
        """The logits of `run_logits`, the input of the first layer, and each layer's output."""
        watch = StateRecorder(batch, "diffmask", tokens_first=self.access.tokens_first)
        inside = set(self._text_encoder.modules())
        names = [name for name in self.access.modules if self.model.get_submodule(name) in inside]
        layers = find_layers(self.model, names)
        with self._prepared(batch, embedded), watch.recording(layers):
            logits = self.logits(batch)
        states = [one.detach() for one in (watch.layer_inputs[0], *watch.layer_outputs)]
        return (logits.float() if self.bfloat16 else logits), states

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with each token deleted; identical variants are run once, and none is padded."""
        rows, positions = batch.mask.nonzero(as_tuple=True)
        if not len(rows):
            raise ModelError("The batch holds no word, so that none can be deleted.")
        left = batch.present[rows] & (torch.arange(batch.ids.shape[1]) != positions[:, None])
        lengths, parts = left.sum(-1), []
        for length in torch.unique(lengths).tolist():
            here = (lengths == length).nonzero().squeeze(-1)
            for some in torch.split(here, max(1, max_batch_tokens // length)):
                shorter = batch.keep_tokens(rows[some], left[some])
                first, place = shorter.distinct_texts()
                parts.append((some, self._run_precisely(shorter.select(first))[place]))
        logits = torch.cat([part for _, part in parts])
        result = logits.new_zeros(*batch.mask.shape, logits.shape[-1])
        order = torch.cat([some for some, _ in parts])
        result[rows[order], positions[order]] = logits
        return result

    def _run_precisely(self, batch: Batch) -> Float[Tensor, "B C"]:
        """The logits, in bfloat16 with near ties computed again."""
        return self.run(batch, keep=False)[0] if self.bfloat16 else self.run_logits(batch)

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """The model's logits for the classes, with the current attention implementation."""
        inputs: dict[str, Any] = {"input_ids": batch.ids, "attention_mask": batch.present.long()}
        if batch.types is not None:
            inputs["token_type_ids"] = batch.types
        if self.task == "next target token":
            inputs["decoder_input_ids"] = torch.tensor(self.prefix).expand(len(batch), -1)
        inputs = {name: one.to(self.device) for name, one in inputs.items()}
        if self.task != "classification":  # classifiers do not accept it
            inputs["use_cache"] = False
        with (
            model_lock(self.model),
            self._last_position_only(batch),
            self._unused_padding_id(inputs, batch),
        ):
            output = self.model(**inputs)
        logits: Tensor = output.logits if output.logits.dim() == 2 else output.logits[:, -1]
        return logits if self.answers is None else logits[:, list(self.answers)]

    @cached_property
    def embedding(self) -> nn.Module:
        """The embedding table of the text's tokens."""
        table: nn.Module = self._text_encoder.get_input_embeddings()
        return table

    @property
    def _text_encoder(self) -> Any:
        """The part of the model that encodes the text."""
        return self.model.get_encoder() if self.task == "next target token" else self.model

    def _recompute_near_ties(
        self, batch: Batch, logits: Float[Tensor, "B C"]
    ) -> Float[Tensor, "B C"]:
        """Recompute logits in full precision where the two likeliest classes are close."""
        best = logits.detach().softmax(-1).topk(2, dim=-1).values
        near = ((best[:, 0] - best[:, 1]) < NEAR_TIE_MARGIN).nonzero().squeeze(-1)
        if not len(near):
            return logits
        exact, _ = replace(self, bfloat16=False).run(batch.select(near.cpu()), keep=False)
        return logits.index_copy(0, near, exact.to(logits))

    @contextmanager
    def _prepared(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None) -> Iterator[None]:
        """Hold the model's lock, in the wanted precision, with these embeddings for its text."""
        with (
            model_lock(self.model),
            nullcontext() if embedded is None else self._replace_embeddings(embedded, batch),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16),
        ):
            yield

    @contextmanager
    def _replace_embeddings(self, embedded: Float[Tensor, "B T E"], batch: Batch) -> Iterator[None]:
        """Use the given vectors instead of the embeddings the model looks up for its text."""
        used = []

        def put(_: nn.Module, args: tuple[Tensor, ...], __: object, looked_up: Tensor) -> Any:
            given = args[0].cpu()
            for ids, vectors in ((given, embedded), (given.T, embedded.transpose(0, 1))):
                same = ids.shape == batch.ids.shape and (ids == batch.ids)[batch.present].all()
                if same:  # not the decoder's tokens
                    used.append(True)
                    return vectors.to(looked_up)
            return None

        with forward_hooks([self.embedding], leave=put):
            yield
        if not used:
            raise AttentionUnavailable(
                "The model did not look its tokens up in get_input_embeddings(); gradients cannot "
                "be taken there."
            )

    @contextmanager
    def _last_position_only(self, batch: Batch) -> Iterator[None]:
        """Compute the vocabulary-sized output for the last token of each text only."""
        head = None if self.task != "next token" else self.model.get_output_embeddings()

        def cut(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> Any:
            states, *rest = args
            last = last_positions(batch).to(self.device)
            return (states[torch.arange(len(states)), last][:, None], *rest), kwargs

        with forward_hooks([] if head is None else [head], cut):
            yield

    @contextmanager
    def _unused_padding_id(self, inputs: dict[str, Any], batch: Batch) -> Iterator[None]:
        """Pad with a token that no text of the batch holds.

        Classifiers that pool the last token find it by the padding id, which a text may contain.
        While they run, padding is a token that no text of the batch has. The config is shared by
        all threads, so callers hold the model's lock.
        """
        config = self.model.config
        if self.task != "classification":
            yield
            return
        before, used = config.pad_token_id, set(batch.ids[batch.present].tolist())
        config.pad_token_id = next(number for number in count() if number not in used)
        ids = torch.where(batch.present, batch.ids, config.pad_token_id)
        inputs["input_ids"] = ids.to(self.device)
        try:
            yield
        finally:
            config.pad_token_id = before


def last_positions(batch: Batch) -> Int[Tensor, "B"]:
    """The last position of each text that is not padding."""
    places = torch.arange(batch.ids.shape[1])
    return torch.where(batch.present, places, -1).amax(-1)
