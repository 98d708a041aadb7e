"""The Method protocol: ways to explain a prediction, one score per token."""

from typing import ClassVar, Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.core.values import Explanation
from heedful.models.batch_context import BatchContext

ScoreKind = Literal["attention", "sensitivity", "saliency", "control"]
Join = Literal["sum", "norm"]
methods = Registry("method")


@runtime_checkable
class Method(Protocol):
    """Turns a sitting (a subject and a batch) into one score per token, for the target classes.

    `kind` says what the score means: where the model looks (attention), how fast the output moves
    with the input (sensitivity), what this input added to this output (saliency), or nothing
    (control). `join` says how the pieces of a word make its score: by their sum, or as the norm of
    all their parts. A method that cannot serve a subject raises NotApplicable with the reason.

    Settings that several methods share have one name: `of` is what is explained (`probability` of
    the target, its `log_odds_decoder` or its `logit`), `players` are what is hidden or deleted together
    (`tokens` or `words`); the pieces of a word then share its score equally.
    """

    kind: ClassVar[ScoreKind]

    @property
    def signed(self) -> bool: ...

    @property
    def join(self) -> Join: ...

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation: ...


def explanation_from_scores(
    name: str, context: BatchContext, scores: Float[Tensor, "B T"]
) -> Explanation:
    """The scores of the words; what special tokens got has done its part in the arithmetic."""
    mask = context.batch.mask
    return Explanation(name, scores.detach().masked_fill(~mask, 0.0), mask)


def require_one_of(setting: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a setting that is none of the allowed ones."""
    if value not in allowed:
        raise ConfigError(f"{setting} must be {_listed(allowed)}, not {value!r}.")


def _listed(allowed: tuple[object, ...]) -> str:
    *first, last = map(str, allowed)
    return f"{', '.join(first)} or {last}" if first else last


def join_pieces(
    scores: Float[Tensor, "T"], word: Int[Tensor, "T"], words: int, join: Join
) -> Float[Tensor, "W"]:
    """Scores of words from those of their pieces; a word without any piece has 0.

    >>> joined(torch.tensor([1.0, 3.0, 4.0]), torch.tensor([0, 1, 1]), 2, "norm")
    tensor([1., 5.])
    """
    empty = scores.new_zeros(words)
    if join == "norm":
        return empty.index_add(0, word, scores.square()).sqrt()
    return empty.index_add(0, word, scores)
