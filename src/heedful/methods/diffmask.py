"""Differentiable masking (De Cao et al., 2020): which words the model can do without."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.diffmask import TRAIN_COMMAND, load_explainer

NO_EXPLAINER = (
    f"diffmask needs an explainer that was trained for this model: {TRAIN_COMMAND}, then --set "
    'diffmask.explainer=DIR, or in a plan [methods.diffmask] explainer = "DIR".'
)


@methods.register("diffmask")
@dataclass(frozen=True)
class DiffMask:
    """P(gate > 0): how likely a word stays when all that the output does not need is hidden.

    An explainer trained for this model on texts of its kind foresees it from the hidden states,
    and is kept in a folder. `layer` says up to which layer it may look: the last unless said; from
    0, which knows the word alone, on, more is known to be unimportant. A word of several pieces has
    the number of them that stay.
    """

    explainer: str | None = None
    layer: int = -1
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    @property
    def lacks(self) -> str | None:
        """An explainer, unless one is set."""
        return NO_EXPLAINER if self.explainer is None else None

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - all classes' probabilities are to stay
    ) -> Explanation:
        if self.explainer is None:
            raise NotApplicable(NO_EXPLAINER)
        found = load_explainer(self.explainer)
        layer = found.gates.layer_index(self.layer)
        with context.clock("diffmask"):
            vectors = context.embedded.detach()
            kept = found.open_probability(context.subject, context.batch, vectors)[layer]
        return explanation_from_scores("diffmask", context, kept.to(context.batch.mask.device))
