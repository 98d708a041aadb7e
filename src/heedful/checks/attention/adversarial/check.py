"""How far can attention change without changing the output? (Jain & Wallace, 2019, exp. 2.2)"""

from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings
from heedful.checks.interventions.base import replace_texts
from heedful.checks.interventions.certified_optimum import CertifiedAdversary, jsd_bound
from heedful.checks.interventions.gradient_search import AdversarialSearch
from heedful.checks.interventions.lp_ascent import Ascent
from heedful.checks.interventions.nullspace import NullSpace, require_head_values
from heedful.checks.interventions.random_at_distance import RandomAtDistance
from heedful.core.errors import NotApplicable
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, tvd


@dataclass(frozen=True)
class Adversarial:
    """How far can attention change without changing the output?

    `epsilon_max_jsd` is what the published search finds, `certified_jsd` the true maximum (two
    classes, linear decoder), `ascent_jsd` what linear programs find where no certificate exists,
    `bound_jsd` an upper bound for any attention, `of_bound` the best found as a share of the
    bound, `output_tvd` the change of output at the best found, and `random_tvd`, for scale, that
    of random attentions at the same distance. For a single head `nullspace_jsd` is how far its
    weights can move while its output stays exactly the same.
    """

    epsilon: float = 0.05
    candidates: int = 5
    steps: int = 500
    rate: float = 0.01
    penalty: float = 500.0
    hinge: float = 0.01

    def __post_init__(self) -> None:
        AdversarialSearch(**asdict(self))  # refuses wrong settings early

    def __call__(self, context: BatchContext) -> Findings:
        own, attempts = context.forward.attention, self._found(context)
        missing = {name: rows for name, rows in attempts.items() if isinstance(rows, str)}
        columns = {
            name: jsd(context.read_attention(rows), own)
            for name, rows in attempts.items()
            if isinstance(rows, Tensor)
        }
        best = self._farthest(context)
        bound = jsd_bound(context, epsilon=self.epsilon)
        columns["bound_jsd"] = bound
        # with one word there is nothing else to attend to
        found = jsd(context.read_attention(best), own)
        columns["of_bound"] = torch.where(bound > 0, found / bound, torch.nan)
        columns["output_tvd"] = _output_change(context, best)
        columns["random_tvd"] = _output_change(context, RandomAtDistance()(context, found)).mean(0)
        if getattr(getattr(context.subject, "scope", None), "head", None) is not None:
            try:
                columns |= self._same_head_output(context)
            except NotApplicable as reason:
                missing["nullspace_jsd"] = f"No alternative with the same head output: {reason}."
        return Findings.from_columns(columns, missing)

    def _same_head_output(self, context: BatchContext) -> dict[str, Float[Tensor, "B"]]:
        """How far the weights can move while the head's output stays exactly the same."""
        values = require_head_values(context)
        other = context.cached(NullSpace())[0]
        return {
            "nullspace_jsd": jsd(context.read_attention(other), context.forward.attention),
            "tokens_per_dimension": context.batch.lengths / values.shape[-1],
        }

    def word_scores(self, context: BatchContext) -> dict[str, Float[Tensor, "B T"]]:
        """The farthest attention found: the certified one where there is one."""
        return {"adversarial": context.read_attention(self._farthest(context))}

    def _found(self, context: BatchContext) -> dict[str, Tensor | str]:
        """Attention rows by every search, or the reason why a search is not possible."""
        found: dict[str, Tensor | str] = {
            "epsilon_max_jsd": context.cached(AdversarialSearch(**asdict(self)))[0]
        }
        try:
            found["certified_jsd"] = context.cached(CertifiedAdversary(self.epsilon))[0]
            found["ascent_jsd"] = "The exact adversary is known: certified_jsd."
        except NotApplicable as reason:
            found["certified_jsd"] = f"No exact adversary for this model: {reason}."
            try:
                found["ascent_jsd"] = context.cached(Ascent(self.epsilon))[0]
            except NotApplicable as why:
                found["ascent_jsd"] = f"No linear program for this model: {why}."
        return found

    def _farthest(self, context: BatchContext) -> Float[Tensor, "B *R T"]:
        """The farthest of all searches, text by text; the exact one where it exists."""
        found = self._found(context)
        if isinstance(exact := found["certified_jsd"], Tensor):
            return exact
        ways = [rows for rows in found.values() if isinstance(rows, Tensor)]
        away = [jsd(context.read_attention(rows), context.forward.attention) for rows in ways]
        best, distance = ways[0], away[0]
        for rows, other in zip(ways[1:], away[1:], strict=True):
            better = other > distance
            best = replace_texts(better, rows, best)
            distance = torch.where(better, other, distance)
        return best


def _output_change(context: BatchContext, rows: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return tvd(context.decode(rows).softmax(-1), context.forward.probabilities)
