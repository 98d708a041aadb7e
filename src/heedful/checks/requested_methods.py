"""The methods a check is asked to use, by name or built, on every text that they apply to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.methods import Method, methods
from heedful.methods.base import ready_methods, warn_left_out
from heedful.models.batch_context import BatchContext

MethodOrName = str | Method
ALL = "all"
# computed whether requested or not
ALWAYS_COMPUTED = ("attention", "one_hot_gradient", "leave_one_out")


def rankable_methods() -> tuple[str, ...]:
    """What "all" stands for."""
    return tuple(
        name
        for name in ready_methods()
        if name not in ALWAYS_COMPUTED and not methods.trait(name, "tied")
    )


def registry_order(
    asked: Iterable[MethodOrName], every: Callable[[], Iterable[str]] = rankable_methods
) -> tuple[MethodOrName, ...]:
    """Each method once, in registry order; one with its default settings by name.

    "all" stands for `every` method that the check can use. A method that needs something to be made
    first is left out unless it is named too, and a warning is logged.

    >>> registry_order(("random", "gradient", "random"))
    ('gradient', 'random')
    """
    found: dict[str, MethodOrName] = {}
    asked = tuple(asked)
    for one in asked:
        if one == ALL:
            found |= {name: found.get(name, name) for name in every()}
        elif isinstance(one, str):
            methods.build(one)  # raises for an unknown name before the work begins
            found.setdefault(one, one)
        else:
            name = methods.name_of(one)
            found[name] = name if one == methods.build(name) else one
    if ALL in asked:
        for name in sorted(set(methods) - {*ready_methods(), *found}):
            warn_left_out(name)
    return tuple(found[name] for name in methods if name in found)


def method_name(one: MethodOrName) -> str:
    """The registered name of a requested method."""
    return one if isinstance(one, str) else methods.name_of(one)


def build_method(one: MethodOrName) -> Method:
    """The requested method, built with its default settings where it is a name."""
    built: Method = methods.build(one) if isinstance(one, str) else one
    return built


def method_kind(name: str) -> str:
    """What a score of this method means; empty for a plug-in that does not declare it."""
    part: Any = methods[name]
    return str(getattr(part, "kind", ""))


@dataclass(frozen=True)
class SingleText:
    """The batch of one text of a batch."""

    row: int

    def __call__(self, context: BatchContext) -> BatchContext:
        batch = context.batch.select(torch.tensor([self.row]))
        budget, clock = context.max_batch_tokens, context.clock
        return BatchContext(context.subject, batch, context.seed, budget, clock)


def score_with_method(
    method: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> tuple[Float64[Tensor, "B T"], str | None]:
    """Scores, and why some texts have none: theirs are NaN throughout.

    A batch that the method refuses is split into single texts, so that no text is without scores
    because another one is too long for the method, say. Checks share the scores.
    """
    return context.cached(_MethodScores(method, tuple(target.tolist())))


@dataclass(frozen=True)
class _MethodScores:
    """A method's scores for the given classes."""

    method: Method
    target: tuple[int, ...]

    def __call__(self, context: BatchContext) -> tuple[Float64[Tensor, "B T"], str | None]:
        target = torch.tensor(self.target, device=context.batch.ids.device)
        try:
            return self.method(context, target).scores.double(), None
        except NotApplicable as reason:
            if len(target) == 1:
                nothing = torch.full(context.batch.mask.shape, torch.nan, dtype=torch.float64)
                return nothing, str(reason)
        rows = [
            score_with_method(self.method, context.cached(SingleText(row)), target[row : row + 1])
            for row in range(len(target))
        ]
        reasons = [reason for _, reason in rows if reason is not None]
        return torch.cat([scores for scores, _ in rows]), reasons[0] if reasons else None
