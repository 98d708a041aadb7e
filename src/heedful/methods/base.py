"""The Method protocol, the registry of methods, and what methods share."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.registry import Registry
from heedful.core.settings import check_on_init
from heedful.core.values import Explanation
from heedful.models.batch_context import BatchContext

ScoreKind = Literal["attention", "sensitivity", "saliency", "control"]
Join = Literal["sum", "norm"]
Erasure = Literal["one", "many"]
PartT = TypeVar("PartT")

PATENT_NOTICE = (
    "Layer-wise relevance propagation is patented; its authors allow personal and scientific use. "
    "For other uses, have your rights examined first."
)


@runtime_checkable
class Method(Protocol):
    """Computes one score per token from a batch context (a subject and a batch).

    `kind` is the meaning of a score: where the model looks (attention), how fast the output changes
    with the input (sensitivity), what this input added to this output (saliency), or nothing
    (control). `join` is how the scores of a word's pieces make the score of the word: their sum, or
    the norm of all of them. A method that does not apply to a subject raises NotApplicable with the
    reason.

    Settings that several methods share have one name: `of` is what is explained (`probability` of
    the target class, its `log_odds` or its `logit`), `players` are what is masked or deleted
    together (`tokens` or `words`); the pieces of a word then share its score equally.
    """

    kind: ClassVar[ScoreKind]

    @property
    def signed(self) -> bool: ...

    @property
    def join(self) -> Join: ...

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"], /) -> Explanation: ...


class MethodRegistry(Registry):
    """Methods by name; what is known of a method without running it is declared with its name."""

    def register(
        self,
        name: str,
        *,
        kind: ScoreKind | None = None,
        join: Join = "sum",
        signed: bool = False,
        slow: bool = False,
        patented: bool = False,
        tied: bool = False,
        erases: Erasure | None = None,
        quick: Mapping[str, int] | None = None,
    ) -> Callable[[PartT], PartT]:
        """Name a method, set its attributes, and check its settings whenever it is made.

        Attributes that the class defines itself (as a property, say) stay as they are.

        slow: takes many passes or must be trained first, so it runs only when it is named.
        patented: not everybody may use it, so it runs only when it is named.
        tied: gives all words of a text the same score, so it ranks nothing.
        erases: compares outputs with `one` player removed at a time, or with `many`.
        quick: upper bounds of settings for `--quick`.
        """
        declared: dict[str, object] = {"join": join, "signed": signed, "slow": slow}
        declared |= {"patented": patented, "tied": tied, "erases": erases, "quick": quick or {}}
        if kind is not None:
            declared["kind"] = kind

        def declare(part: PartT) -> PartT:
            for key, value in declared.items():
                if not hasattr(part, key):
                    setattr(part, key, value)
            if isinstance(part, type):
                check_on_init(part, prefix=f"{name}.")
            remember: Callable[[PartT], PartT] = super(MethodRegistry, self).register(name)
            return remember(part)

        return declare

    def trait(self, name: str, trait: str) -> Any:
        """An attribute that was declared with a method; None where a plug-in does not have it."""
        return getattr(self[name], trait, None)


methods = MethodRegistry("method")


def explanation_from_scores(
    name: str, context: BatchContext, scores: Float[Tensor, "B T"]
) -> Explanation:
    """Keep the scores of words only; those of special tokens and padding become 0."""
    mask = context.batch.mask
    return Explanation(name, scores.detach().masked_fill(~mask, 0.0), mask)


def join_pieces(
    scores: Float[Tensor, "T"], word: Int[Tensor, "T"], words: int, join: Join
) -> Float[Tensor, "W"]:
    """Compute scores of words from those of their pieces; a word without pieces gets 0.

    >>> join_pieces(torch.tensor([1.0, 3.0, 4.0]), torch.tensor([0, 1, 1]), 2, "norm")
    tensor([1., 5.])
    """
    empty = scores.new_zeros(words)
    if join == "norm":
        return empty.index_add(0, word, scores.square()).sqrt()
    return empty.index_add(0, word, scores)


@cache
def warn_patent() -> None:
    """Log the notice on patents as a warning, once per process."""
    logging.getLogger("heedful").warning(PATENT_NOTICE)


def missing_prerequisite(part: Method) -> str | None:
    """What must be made for a method before it can be used, such as an explainer, and how."""
    message: str | None = getattr(part, "prerequisite_message", None)
    return message


def ready_methods() -> tuple[str, ...]:
    """The names of all methods that can be used with their default settings."""
    return tuple(name for name in methods if missing_prerequisite(methods.build(name)) is None)


def default_methods() -> tuple[str, ...]:
    """All methods except slow ones, patented ones and controls."""
    return tuple(
        name
        for name in methods
        if methods.trait(name, "kind") != "control"
        and not methods.trait(name, "slow")
        and not methods.trait(name, "patented")
    )


@cache
def warn_left_out(name: str) -> None:
    """Log a warning that "all" does not include a method, and why; once per process."""
    logging.getLogger("heedful").warning(
        "%s is left out of all methods. %s", name, missing_prerequisite(methods.build(name))
    )
