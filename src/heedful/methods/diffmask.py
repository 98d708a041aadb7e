"""Differentiable masking (De Cao et al., 2020): which words the model can do without."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.diffmask import TRAIN_COMMAND, load_explainer

NO_EXPLAINER = (
    f"diffmask needs an explainer that was trained for this model: {TRAIN_COMMAND}, then --set "
    'diffmask.explainer=DIR, or in a plan [methods.diffmask] explainer = "DIR".'
)


@methods.register("diffmask", kind="saliency", slow=True)
@dataclass(frozen=True)
class DiffMask:
    """P(gate > 0): how likely a word is kept when all that the output does not need is masked.

    An explainer, which is trained for this model and kept in a folder, predicts it from the hidden
    states up to `layer`, by default the last; layer 0 is the word embedding alone. A word of
    several pieces gets the expected number of pieces that are kept.
    """

    explainer: str | None = None
    layer: int = -1

    @property
    def prerequisite_message(self) -> str | None:
        """How to train an explainer, where none is set."""
        return NO_EXPLAINER if self.explainer is None else None

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        if self.explainer is None:
            raise NotApplicable(NO_EXPLAINER)
        explainer = load_explainer(self.explainer)
        layer = explainer.gates.layer_index(self.layer)
        with context.clock("diffmask"):
            vectors = context.embedded.detach()
            kept = explainer.open_probability(context.subject, context.batch, vectors)[layer]
        return explanation_from_scores("diffmask", context, kept.to(context.batch.mask.device))
