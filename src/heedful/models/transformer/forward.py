"""Passes through a transformers model by its seam: from a batch to logits and every attention."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from threading import get_ident
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import AttentionUnavailable, ModelError
from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.recorder import AttentionRecorder, Edit
from heedful.models.internals.hidden_states import LogitsAndStates, StateRecorder, find_text_layers
from heedful.models.transformer.first_position_only import FirstPositionOnly

NEAR_TIE_MARGIN = 0.1  # probability between the two likeliest classes
BFLOAT16_TOLERANCE = 0.05  # how far logits may lie apart in bfloat16

Task = Literal["classification", "next token", "next target token"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformerRunner:
    """A model that is run through its seam, for one task.

    `answers` restricts a vocabulary to some of its tokens; `prefix` is what the decoder of an
    encoder–decoder has written so far. `half` computes in bfloat16, and again in full where a
    decision is near: about twice as fast, and good to two digits. `first_position_only` is proved to be all
    that the output needs of the last layer; None where it needs more.

    Every pass holds the model's lock: it hooks modules and writes to the config, which all threads
    share, so that passes of several threads run one after the other.
    """

    model: Any
    task: Task
    access: AttentionAccess
    answers: tuple[int, ...] | None = None
    prefix: tuple[int, ...] = ()
    half: bool = False
    first_position_only: FirstPositionOnly | None = None

    @cached_property
    def device(self) -> torch.device:
        """Where the model lies."""
        found: torch.device = next(self.model.parameters()).device
        return found

    @property
    def tolerance(self) -> float:
        """How far logits computed twice may lie apart."""
        exact = not self.half and self.model.dtype in (torch.float32, torch.float64)
        return 1e-4 if exact else BFLOAT16_TOLERANCE

    def full_precision(self) -> Any:
        """The same in the model's own precision: parts of states must make up the states."""
        return replace(self, half=False) if self.half else self

    def run(
        self,
        batch: Batch,
        edit: Edit | None = None,
        *,
        embedded: Float[Tensor, "B T E"] | None = None,
        keep: bool = True,
    ) -> tuple[Float[Tensor, "B C"], AttentionRecorder]:
        """One pass through the seam, every attention of it heard."""
        with (
            model_lock(self.model),
            self._replace_embeddings(embedded, batch),
            self.access.open(edit, keep=keep) as recorder,
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.half),
        ):
            logits = self.logits(batch)
        if recorder.count != self.access.calls:
            raise AttentionUnavailable(
                f"The model computed {recorder.count} attentions where {self.access.calls} were "
                "expected; some were not heard."
            )
        if self.half:
            logits = logits.float()
            if edit is None and embedded is None:
                logits = self._recompute_near_ties(batch, logits)
        return logits, recorder

    def outputs(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The logits of `run` by the model's own, perhaps fused, attention: nothing is heard."""
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)
        short = (
            nullcontext() if self.first_position_only is None else self.first_position_only.alone()
        )
        with model_lock(self.model), self._replace_embeddings(embedded, batch), short, half:
            logits = self.logits(batch)
        return logits.float() if self.half else logits

    def read_states(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> LogitsAndStates:
        """The logits of `outputs`, what enters the first layer, and what leaves each."""
        watch = StateRecorder(batch, "diffmask", tokens_first=self.access.tokens_first)
        layers = find_text_layers(self.model, self.access.modules, self._reader)
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)
        with (
            model_lock(self.model),
            watch.on(layers),
            self._replace_embeddings(embedded, batch),
            half,
        ):
            logits = self.logits(batch)
        states = [one.detach() for one in (watch.entered[0], *watch.left)]
        return (logits.float() if self.half else logits), states

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with each token deleted; equal variants are run once."""
        rows, positions = batch.mask.nonzero(as_tuple=True)
        if not len(rows):
            raise ModelError("A batch without any word cannot lose one.")
        size = max(1, max_batch_tokens // batch.ids.shape[1])
        parts = [
            self._run_distinct(batch.delete_tokens(*some))
            for some in zip(torch.split(rows, size), torch.split(positions, size), strict=True)
        ]
        logits = torch.cat(parts)
        result = logits.new_zeros(*batch.mask.shape, logits.shape[-1])
        result[rows, positions] = logits
        return result

    def _run_distinct(self, batch: Batch) -> Float[Tensor, "N C"]:
        first, place = batch.distinct_texts()
        return self.run(batch.select(first), keep=False)[0][place]

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """The model's own output for the classes, attention as it is set at the moment."""
        inputs = {"input_ids": batch.ids, "attention_mask": batch.present.long()}
        if batch.types is not None:
            inputs["token_type_ids"] = batch.types
        if self.task == "next target token":
            prefix = torch.tensor(self.prefix).expand(len(batch), -1)
            inputs["decoder_input_ids"] = prefix
        inputs = {name: one.to(self.device) for name, one in inputs.items()}
        with (
            model_lock(self.model),
            self._last_position_only(batch),
            self._unused_padding_id(inputs, batch),
        ):
            output = (
                self.model(**inputs, use_cache=False)
                if self._accepts_use_cache
                else self.model(**inputs)
            )
        logits: Tensor = output.logits if output.logits.dim() == 2 else output.logits[:, -1]
        return logits if self.answers is None else logits[:, list(self.answers)]

    @property
    def _accepts_use_cache(self) -> bool:
        return self.task != "classification"

    @cached_property
    def embedding(self) -> torch.nn.Module:
        """Where the tokens of the text are looked up."""
        found: torch.nn.Module = self._reader.get_input_embeddings()
        return found

    @property
    def _reader(self) -> Any:
        """The part of the model that reads the text."""
        return self.model.get_encoder() if self.task == "next target token" else self.model

    def _recompute_near_ties(
        self, batch: Batch, logits: Float[Tensor, "B C"]
    ) -> Float[Tensor, "B C"]:
        """The logits, in full precision where the two likeliest classes are near each other."""
        best = logits.detach().softmax(-1).topk(2, dim=-1).values
        near = ((best[:, 0] - best[:, 1]) < NEAR_TIE_MARGIN).nonzero().squeeze(-1)
        if not len(near):
            return logits
        exact, _ = replace(self, half=False).run(batch.select(near.cpu()), keep=False)
        return logits.index_copy(0, near, exact.to(logits))

    @contextmanager
    def _replace_embeddings(
        self, embedded: Float[Tensor, "B T E"] | None, batch: Batch
    ) -> Iterator[None]:
        """The given vectors in the place of those the model would look up for its text."""
        if embedded is None:
            yield
            return
        heard = []
        mine = get_ident()  # another thread may use the model as it is

        def put(_: object, args: tuple[Tensor, ...], looked_up: Tensor) -> Tensor:
            if get_ident() != mine:
                return looked_up
            for ids, vectors in ((args[0], embedded), (args[0].T, embedded.transpose(0, 1))):
                if _same_text(ids.cpu(), batch):  # not the decoder's own tokens, say
                    heard.append(True)
                    return vectors.to(looked_up)
            return looked_up

        handle = self.embedding.register_forward_hook(put)
        try:
            yield
        finally:
            handle.remove()
        if not heard:
            raise AttentionUnavailable(
                "The model did not look its tokens up in get_input_embeddings(); no gradient "
                "can be taken there."
            )

    @contextmanager
    def _last_position_only(self, batch: Batch) -> Iterator[None]:
        """A language model computes its huge output for the last token of each text only."""
        head = None if self.task != "next token" else self.model.get_output_embeddings()
        if head is None:
            yield
            return
        last = last_positions(batch).to(self.device)
        mine = get_ident()  # another thread may use the model as it is

        def cut(_: object, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            if get_ident() != mine:
                return args
            states, *rest = args
            return (states[torch.arange(len(states)), last][:, None], *rest)

        handle = head.register_forward_pre_hook(cut)
        try:
            yield
        finally:
            handle.remove()

    @contextmanager
    def _unused_padding_id(self, inputs: dict[str, Tensor], batch: Batch) -> Iterator[None]:
        """Classifiers that pool the last token find it by the padding id, which a text may hold.

        While they run, padding is a token that no text of the batch has. The config is shared by
        all threads: whoever calls this holds the model's lock.
        """
        config = self.model.config
        if self.task != "classification":
            yield
            return
        before = config.pad_token_id
        config.pad_token_id = _unused_token_id(set(batch.ids[batch.present].tolist()))
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


def _same_text(ids: Tensor, batch: Batch) -> bool:
    return ids.shape == batch.ids.shape and bool((ids == batch.ids)[batch.present].all())


def _unused_token_id(ids: set[int]) -> int:
    return next(number for number in range(len(ids) + 1) if number not in ids)
