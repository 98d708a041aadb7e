"""Gradients of the target's value: at the inputs and attention maps, or at other word vectors."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue, log_odds_slope, target_value


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of the target's value at the word vectors and at each attention map of the pass.

    A model without maps has only the gradient at the word vectors.
    """

    inputs: Float[Tensor, "B T E"]
    maps: tuple[Float[Tensor, "B H Q K"], ...] = ()
    encoder_maps: tuple[Float[Tensor, "B H K K"], ...] = ()
    decoder_maps: tuple[Float[Tensor, "B H Q Q"], ...] = ()

    def scaled_by(self, factor: Float[Tensor, "B"]) -> "Gradients":
        """All gradients, multiplied by one factor per text."""
        wide = factor[:, None, None, None]
        return Gradients(
            self.inputs * factor[:, None, None].to(self.inputs),
            *(
                tuple(each * wide.to(each) for each in maps)
                for maps in (self.maps, self.encoder_maps, self.decoder_maps)
            ),
        )


def _gradients(
    context: BatchContext, classes: tuple[int, ...], of: TargetValue, *, maps: bool
) -> Gradients:
    """The gradients for one target class per text; probability and log-odds share one pass.

    Without `maps` the pass does not compute attention maps.
    """
    target = torch.tensor(classes)
    if of == "probability":
        shared = context.cached(_gradients, classes, "log_odds", maps=maps)
        return shared.scaled_by(log_odds_slope(context.logits.detach(), target))
    found: tuple[tuple[Tensor, ...], ...] = ()
    logits, kept = _logits_and_retain(context, maps=maps)
    if maps:
        graph = context.forward_with_graph
        found = (graph.maps, graph.encoder_maps, graph.decoder_maps)
    with context.clock("gradient"), torch.enable_grad():
        value = target_value(logits, target.to(logits.device), of).sum()
        leaves = (context.embedded, *(each for kind in found for each in kind))
        # a leaf that the output does not depend on has gradient 0, not None
        inputs, *slopes = autograd.grad(
            value, leaves, retain_graph=kept, allow_unused=True, materialize_grads=True
        )
    ends = iter(slopes)
    return Gradients(inputs, *(tuple(next(ends) for _ in kind) for kind in found))


def _logits_and_retain(context: BatchContext, *, maps: bool) -> tuple[Float[Tensor, "B C"], bool]:
    """The logits, and whether autograd must retain their graph.

    The graph of a logits-only pass is freed, which is faster; another target runs another pass.
    """
    if maps:
        return context.forward_with_graph.logits, True
    if "spent" in context.cache:
        return context.logits_only_pass(), False
    context.cache["spent"] = True
    return context.logits, False


def compute_gradients(
    context: BatchContext, target: Int[Tensor, "B"], of: TargetValue, *, maps: bool = True
) -> Gradients:
    """The gradients at inputs and maps, computed once for all methods."""
    return context.cached(_gradients, tuple(target.tolist()), of, maps=maps)


def input_gradient(
    context: BatchContext, target: Int[Tensor, "B"], of: TargetValue
) -> Float[Tensor, "B T E"]:
    """The gradient at the word vectors, from the same pass unless the context is logits-only."""
    return compute_gradients(context, target, of, maps=not context.logits_only).inputs


def gradients_at(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    vectors: Float[Tensor, "N T E"],
    target: Int[Tensor, "B"],
    of: TargetValue,
) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N"]]:
    """∂f/∂x of texts rows[n] at vectors[n], and f there."""
    slopes: list[Tensor] = []
    values: list[Tensor] = []
    for some, here in context.split_by_budget(rows, vectors):
        with torch.enable_grad():
            leaf = here.detach().requires_grad_()
            logits = context.run_logits(context.batch.select(some), leaf)
            value = target_value(logits, target[some].to(logits.device), of)
            slopes += autograd.grad(value.sum(), leaf)
        values.append(value.detach())
    return torch.cat(slopes), torch.cat(values)
