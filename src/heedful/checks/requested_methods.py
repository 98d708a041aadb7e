"""The methods a check is asked to use: by name or ready made, on every text that they can serve."""

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
ALWAYS_COMPUTED = (
    "attention",
    "one_hot_gradient",
    "leave_one_out",
)  # computed whether asked for or not


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
    """Each method once, in the order they are registered; one with its usual settings by name.

    "all" stands for `every` method that the check can use; one that lacks what must be made for it
    first is left out, unless it is named too, and that is logged.

    >>> in_order(("random", "gradient", "random"))
    ('gradient', 'random')
    """
    found: dict[str, MethodOrName] = {}
    asked = tuple(asked)
    for one in asked:
        if one == ALL:
            found |= {name: found.get(name, name) for name in every()}
        elif isinstance(one, str):
            methods.build(one)  # an unknown name is said before the work begins
            found.setdefault(one, one)
        else:
            name = methods.name_of(one)
            found[name] = name if one == methods.build(name) else one
    if ALL in asked:
        for name in sorted(set(methods) - {*ready_methods(), *found}):
            warn_left_out(name)
    return tuple(found[name] for name in methods if name in found)


def method_name(one: MethodOrName) -> str:
    """The registered name of a method that was asked for."""
    return one if isinstance(one, str) else methods.name_of(one)


def build_method(one: MethodOrName) -> Method:
    """The method that was asked for, made."""
    made: Method = methods.build(one) if isinstance(one, str) else one
    return made


def method_kind(name: str) -> str:
    """What a score of this method means; a plug-in may not say."""
    part: Any = methods[name]
    return str(getattr(part, "kind", ""))


@dataclass(frozen=True)
class SingleText:
    """One text of a sitting, apart from the others; asked of a sitting `once`."""

    row: int

    def __call__(self, context: BatchContext) -> BatchContext:
        batch = context.batch.select(torch.tensor([self.row]))
        budget, clock = context.max_batch_tokens, context.clock
        return BatchContext(context.subject, batch, context.seed, budget, clock)


def absolute_scores(
    method: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> tuple[Float64[Tensor, "B T"], str | None]:
    """Scores without their sign, and why some texts have none: theirs are 0 throughout."""
    scores, reason = score_with_method(method, context, target)
    return scores.abs().nan_to_num(0.0), reason


def score_with_method(
    method: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> tuple[Float64[Tensor, "B T"], str | None]:
    """Scores, and why some texts have none: theirs are NaN throughout.

    A batch that is refused is asked again text by text, so that none goes without a score because
    of the company it is in: of a text that is too long for the method, say. Checks that ask for
    the same scores share them.
    """
    return context.cached(_MethodScores(method, tuple(target.tolist())))


@dataclass(frozen=True)
class _MethodScores:
    """A method's scores for the given classes; asked of a sitting `once`."""

    method: Method
    target: tuple[int, ...]

    def __call__(self, context: BatchContext) -> tuple[Float64[Tensor, "B T"], str | None]:
        target = torch.tensor(self.target, device=context.batch.ids.device)
        return _score_batch_or_texts(self.method, context, target)


def _score_batch_or_texts(
    method: Method, context: BatchContext, target: Int[Tensor, "B"]
) -> tuple[Float64[Tensor, "B T"], str | None]:
    try:
        return method(context, target).scores.double(), None
    except NotApplicable as reason:
        if len(context.batch) == 1:
            nothing = torch.full(context.batch.mask.shape, torch.nan, dtype=torch.float64)
            return nothing, str(reason)
    rows = [
        score_with_method(method, context.cached(SingleText(row)), target[row : row + 1])
        for row in range(len(target))
    ]
    reasons = [reason for _, reason in rows if reason is not None]
    return torch.cat([scores for scores, _ in rows]), reasons[0] if reasons else None
