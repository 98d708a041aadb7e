"""Relevance handed down through a transformer, layer by layer, from its logits to its words.

All rules in one backward pass through the model made linear where it is (`linearised`):
relevance is then input × gradient. What does not reach the words belongs to biases, positions and
whatever else is no word: it is what the same linear model says of a text of zeros. Both together
must be the value explained; where they are not, some part is not linear, and the model is refused.

- `cp`: attention weights are constants too, so that relevance goes by the values alone (Ali et al.,
  2022).
- `attn`: it goes by the weights as well, half of every product to each of its factors, softmax by
  its tangent (Achtibat et al., 2024).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.edits import as_leaf
from heedful.models.attention_access.recorder import Call
from heedful.models.batch_context import Sitting
from heedful.models.internals.linearised import frozen, held_at, hold
from heedful.models.perturbed.perturbed_embeddings import given_vectors
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import Linear, direction

Rule = Literal["cp", "attn"]
RULES: tuple[Rule, ...] = get_args(Rule)
NEAR = 1e-3  # the share of all relevance that may be lost to rounding
NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Relevance:
    """How much of a value each number of each word vector has, and how much all else together.

    `maps` is the relevance of the attention weights themselves, where it goes by them.
    """

    inputs: Float[Tensor, "B T E"]
    rest: Float[Tensor, "B"]
    value: Float[Tensor, "B"]
    maps: tuple[Float[Tensor, "B H _ _"], ...] = ()

    @property
    def gap(self) -> Float[Tensor, "B"]:
        """What was lost or made up on the way; 0 where relevance is conserved."""
        return self.inputs.sum((-1, -2)) + self.rest - self.value

    def conserved(self, tolerance: float) -> "Relevance":
        """Itself, if no more than such a share is lost of all that there is on both sides."""
        there = self.value.abs() + self.rest.abs() + self.inputs.sum(-1).abs().sum(-1)
        lost = float((self.gap.abs() / there.clamp(min=NOTHING)).max())
        if not lost <= tolerance:
            raise NotApplicable(
                f"Relevance is not conserved on its way through this model ({lost:.1%} is lost): "
                "some part of it is neither linear nor known, as the choice among experts."
            )
        return self


@dataclass(frozen=True)
class RelevanceOf:
    """Relevance for one target class per text, computed once however many methods ask."""

    target: tuple[int, ...]
    of: Linear
    rule: Rule

    def __call__(self, sitting: Sitting) -> Relevance:
        subject = given_vectors(sitting.subject)
        if not isinstance(subject, TransformerSubject):
            raise RuntimeError(f"{type(subject).__name__} is no transformer.")
        with sitting.clock("relevance"):
            exact: TransformerSubject = subject.in_full()
            return self._handed_down(exact, sitting).conserved(max(NEAR, 2 * exact.tolerance))

    def _handed_down(self, subject: TransformerSubject, sitting: Sitting) -> Relevance:
        batch, held = sitting.batch, self.rule == "cp"
        vectors = sitting.embedded.detach().clone().requires_grad_()
        with frozen(subject.model) as parts:
            logits, heard = subject.run(batch, hold if held else _leading, embedded=vectors)
        maps = () if held else tuple(call.weights for call in heard.calls)
        weights = direction(logits.detach(), torch.tensor(self.target).to(logits.device), self.of)
        slope, *slopes = autograd.grad(
            logits, (vectors, *maps), weights, allow_unused=True, materialize_grads=True
        )
        again = held_at(heard.calls) if held else _leading
        with torch.no_grad(), parts.replayed():
            none, _ = subject.run(batch, again, embedded=torch.zeros_like(vectors), keep=False)
        return Relevance(
            (vectors * slope).detach(),
            (weights * none).sum(-1),
            (weights * logits.detach()).sum(-1),
            tuple((one * down).detach() for one, down in zip(maps, slopes, strict=True)),
        )


def relevance(sitting: Sitting, target: Int[Tensor, "B"], *, of: Linear, rule: Rule) -> Relevance:
    """What of the explained value each word has, in a transformer."""
    return sitting.once(RelevanceOf(tuple(target.tolist()), of, rule))


def _leading(call: Call) -> Tensor:
    """The weights themselves, as what the next product is made of."""
    leaf = as_leaf(call)
    return leaf if isinstance(leaf, Tensor) else call.weights
