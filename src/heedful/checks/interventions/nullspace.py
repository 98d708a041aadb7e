"""Other weights with the same output of a head: what the null space of its values allows.

The output of a head is Σ α_t v_t. Over T tokens with values of d < T − 1 dimensions there are other
distributions α′ with the same Σ α′_t v_t (Brunner et al., 2020), so everything after the head is
the same too. A linear program finds those with the most weight on a token that has little. They are
exact in output but not the farthest in JSD, so they are not called certified; and since T ≫ d makes
them nearly free, their distance is reported with T/d.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor

from heedful.checks.interventions.base import interventions
from heedful.core.errors import NotApplicable
from heedful.core.settings import Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasHeadValues
from heedful.numerics.tensor.distributions import jsd

RANK_TOLERANCE = 1e-9  # singular values below this share of the largest count as none


@interventions.register("nullspace")
@check_on_init
@dataclass(frozen=True)
class NullSpace:
    """The farthest alternative that puts most weight on one of the `targets` least tokens."""

    targets: Repeats = 3

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B R T"]:
        values, rows = require_head_values(context), context.rows
        found = rows.clone()
        for text in range(len(rows)):
            words = context.attendable_words[text, 0]
            own = rows[text, 0, words].double()
            for other in self._alternatives(own.numpy(), values[text, words].double().numpy()):
                candidate = rows[text : text + 1].clone()
                candidate[0, 0, words] = torch.from_numpy(other).to(rows)
                farthest = _jsd_from_own(context, text, found[text : text + 1])
                if _jsd_from_own(context, text, candidate) > farthest:
                    found[text] = candidate[0]
        return found[None]

    def _alternatives(
        self, own: NDArray[np.float64], values: NDArray[np.float64]
    ) -> list[NDArray[np.float64]]:
        """Most weight on each of the least attended tokens, head output and mass unchanged."""
        if len(own) < 2:
            return []
        same = np.column_stack([_column_space(values), np.ones(len(own))]).T
        found = []
        for target in np.argsort(own, kind="stable")[: self.targets]:
            goal = np.zeros(len(own))
            goal[target] = -1.0
            answer = linprog(goal, A_eq=same, b_eq=same @ own, bounds=(0, None), method="highs")
            if answer.success and answer.x is not None:
                found.append(np.maximum(answer.x, 0.0))
        return found


def require_head_values(context: BatchContext) -> Float[Tensor, "B T D"]:
    """The values of the audited head; raises NotApplicable where there is no single one."""
    subject = context.subject
    if not isinstance(subject, HasHeadValues):
        raise NotApplicable("it has no heads")
    values = subject.head_values(context.batch, context.forward)
    if values is None:
        raise NotApplicable("it needs one head of one layer, whose values can be seen")
    return values


def _column_space(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis of the values: equal sums in it are equal sums of the values."""
    basis, sizes, _ = np.linalg.svd(values, full_matrices=False)
    space: NDArray[np.float64] = basis[:, sizes > RANK_TOLERANCE * sizes.max(initial=0.0)]
    return space


def _jsd_from_own(context: BatchContext, text: int, row: Float[Tensor, "1 1 T"]) -> float:
    mask = context.batch.mask[text : text + 1]
    weights = row[:, 0] * mask
    own = context.forward.attention[text : text + 1]
    return float(jsd(weights / weights.sum(-1, keepdim=True).clamp(min=1e-30), own))
