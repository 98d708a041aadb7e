"""How much each token contributes to each state of a layer, in one pass: ALTI and GlobEnc.

Ferrando et al. (2022) and Modarressi et al. (2022). Layers are looked into while the pass runs, one
after the other, so that no more than one layer's states are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.layer_hooks import removing_hooks
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.batch_context import BatchContext
from heedful.models.internals.attention_blocks import (
    RECONSTRUCTION_TOLERANCE,
    AttentionBlock,
    is_linear_map,
    match_attention_block,
)
from heedful.models.internals.hidden_states import find_attention_layers
from heedful.models.internals.layer_structure import LayerStructure, ModuleCall
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject

ContributionMethod = Literal["alti", "globenc"]


@dataclass(frozen=True)
class ContributionsComputation:
    """For each layer how much each token (column) contributes to each state (row).

    `alti`: max(0, ‖y‖₁ − ‖y − part‖₁) of the states behind attention. `globenc`: ‖part‖₂ of those
    behind the layer's last norm, the feed-forward part left out.
    """

    way: ContributionMethod

    def __call__(self, context: BatchContext) -> list[Float[Tensor, "B T T"]]:
        subject = unwrap_perturbed(context.subject)
        if not isinstance(subject, TransformerSubject):
            raise NotApplicable(
                f"{self.way} follows the states through the layers; this model has one attention."
            )
        if context.forward.decoder_maps:
            raise NotApplicable(
                f"{self.way} follows one stack of layers; this model has an encoder and a decoder."
            )
        watch = _ContributionRecorder(
            self.way, subject.full_precision(), context.batch, context.budget
        )
        with context.clock(self.way):
            return watch.run(context.embedded.detach())


@dataclass(eq=False)
class _ContributionRecorder:
    """What is seen of the layer that runs at the moment, and what was made of those before."""

    way: ContributionMethod
    subject: TransformerSubject
    batch: Batch
    budget: int

    def __post_init__(self) -> None:
        self.found: list[Float[Tensor, "B T T"]] = []
        self.steps: list[ModuleCall] = []
        self.call: AttentionCall | None = None
        self.block: AttentionBlock | None = None
        self.entered: Tensor | None = None
        self.before: Tensor | None = None
        self.mine = get_ident()  # another thread may use the model as it is

    def run(self, vectors: Float[Tensor, "B T E"]) -> list[Float[Tensor, "B T T"]]:
        """One pass with everyone listening."""
        layers = find_attention_layers(self.subject, self.way)
        with model_lock(self.subject.model), removing_hooks(self._hooks(layers)), torch.no_grad():
            self.subject.run(self.batch, self._record_attention, embedded=vectors, keep=False)
        return self.found

    def _hooks(self, layers: Sequence[nn.Module]) -> list[Any]:
        handles: list[Any] = []
        for layer in dict.fromkeys(layers):
            handles.append(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
            inside = [one for one in layer.modules() if one is not layer]
            handles += [one.register_forward_hook(self._step, with_kwargs=True) for one in inside]
            handles.append(layer.register_forward_hook(self._leave))
        return handles

    def _record_attention(self, call: AttentionCall) -> None:
        if self.entered is None:
            raise NotApplicable(f"{self.way} needs attention within layers; {call.module} is not.")
        self.call = call

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if get_ident() != self.mine:
            return
        states = _first_tensor((*args, *kwargs.values()))
        if states is None or states.shape[:2] != self.batch.ids.shape:
            raise NotApplicable(f"{self.way} needs layers that are given one state per token.")
        if self.before is not None:
            gap = float((states - self.before)[self.batch.present].abs().max())
            if not gap <= RECONSTRUCTION_TOLERANCE * max(
                1.0, float(states[self.batch.present].abs().max())
            ):
                raise NotApplicable(f"{self.way} is refused: states change between two layers.")
        self.entered, self.steps, self.call, self.block = states, [], None, None

    def _step(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        given, gave = _first_tensor((*args, *kwargs.values())), _first_tensor(output)
        if self.entered is None or given is None or gave is None or get_ident() != self.mine:
            return
        if self.block is None and self.call is not None and is_linear_map(module):
            self.block = match_attention_block(self.call, module, given, gave)
        shape = self.entered.shape
        if gave.numel() == self.entered.numel():
            same = given.numel() == gave.numel()
            states = given.reshape(shape) if same else None
            self.steps.append(ModuleCall(module, states, gave.reshape(shape)))

    def _leave(self, layer: nn.Module, _: object, output: Any) -> None:
        if get_ident() != self.mine:
            return
        left, entered, number = _first_tensor(output), self.entered, len(self.found)
        name = f"layer {number} ({type(layer).__name__})"
        if self.block is None or entered is None or left is None or left.shape != entered.shape:
            raise NotApplicable(
                f"{self.way} needs the vectors that heads mix and a linear map behind them; none "
                f"is seen in {name}."
            )
        self.entered = None  # what is asked of modules from here on is no step of the layer
        anatomy = LayerStructure(name, entered, left, self.block, self.steps, self.batch.present)
        try:
            self.found.append(self._contributions(anatomy))
        except NotApplicable as reason:
            raise NotApplicable(f"{self.way} is refused: {reason}") from None
        self.before, self.steps = left, []

    def _contributions(self, anatomy: LayerStructure) -> Float[Tensor, "B T T"]:
        if self.way == "globenc":
            return anatomy.passed().norms()
        parts, whole = anatomy.mixed()
        return parts.nearness(whole, vectors=self.budget)


def _first_tensor(given: Any) -> Tensor | None:
    """The first tensor, which by custom are the states."""
    if isinstance(given, Tensor):
        return given
    if isinstance(given, tuple | list):
        return next((one for one in given if isinstance(one, Tensor)), None)
    return None
