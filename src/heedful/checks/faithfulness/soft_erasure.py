"""Soft erasure: each element of a word vector is kept at random (Zhao & Aletras, 2023)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.draws import draw_for_elements
from heedful.checks.faithfulness.items import ItemView, random_scores
from heedful.checks.faithfulness.removal import MetricColumns
from heedful.numerics.tensor import erasure_metrics

SOFT_MEASURES = ("soft_sufficiency", "soft_comprehensiveness", "soft_beyond_random")
MIN_DRAWS = 10  # one draw varies as much as what is measured


@dataclass(frozen=True, eq=False)
class SoftErasureMetrics:
    """Every method's scores as probabilities of keeping an element; the last scores are uniform.

    a is |score| as a share of the text's largest. Each element of an item's vectors is kept with
    probability a (sufficiency) or 1 − a (comprehensiveness), else it is 0; all methods share the
    draws. The larger a is overall, the more is kept, or removed, however it ranks items: uniform
    scores keep and remove everything. So the evidence is what a method's scores do beyond the same
    scores shuffled among the items.
    """

    items: ItemView
    scores: Float64[Tensor, "K B I"]
    draws: int

    def columns(self) -> MetricColumns:
        """Every measure: of the methods, of uniform scores, of random scores."""
        own = erasure_metrics.share_of_largest(self.scores, self.items.real.expand_as(self.scores))
        found = torch.stack([self._once(own, draw) for draw in range(self.draws)]).mean(0)
        keeps, takes, shuffled = torch.split(found, [len(own) + 1, len(own) + 1, len(own)])
        beyond = torch.where(self.items.counts > 1, takes[: len(own)] - shuffled, torch.nan)
        return dict(zip(SOFT_MEASURES, (keeps, takes, beyond), strict=True))

    def _once(self, own: Float64[Tensor, "K B I"], draw: int) -> Float64[Tensor, "N B"]:
        """Shares of the effect kept, removed, and removed by shuffled scores, in one draw."""
        real, chance = self.items.real, self._keys[draw]
        random = erasure_metrics.share_of_largest(chance, real)
        staying = torch.cat([own, random[None]])
        donor = erasure_metrics.removal_ranks(chance, real).expand_as(own)  # of an item's score
        sets = torch.cat([staying, 1 - staying, 1 - own.gather(-1, donor)])
        drawn = draw_for_elements(self.items.context, f"elements of faithfulness, draw {draw}")
        p = self._probabilities(sets, drawn)
        whole, nothing = self._ends
        kept, taken = torch.split(p, [len(staying), len(sets) - len(staying)])
        staying_share = erasure_metrics.normalised_change(whole, kept, nothing, keeps=True)
        lost_share = erasure_metrics.normalised_change(whole, taken, nothing, keeps=False)
        return torch.cat([staying_share, lost_share])

    @cached_property
    def _ends(self) -> tuple[Float64[Tensor, "B"], Float64[Tensor, "B"]]:
        """p of the text as it is, and with all its word vectors at zero."""
        context = self.items.context
        chosen = context.predicted.cpu()[:, None]
        whole = context.logits.detach().cpu().double().softmax(-1).gather(-1, chosen)[:, 0]
        rows = torch.arange(len(whole))
        none = torch.zeros(self.items.real.shape, dtype=torch.float64)
        return whole, self._run(rows, none, torch.zeros(context.embedded.shape).double())

    def _probabilities(
        self, staying: Float64[Tensor, "N B I"], drawn: Float64[Tensor, "B T E"]
    ) -> Float64[Tensor, "N B"]:
        """p where elements are kept with these probabilities; 0 and 1 need no pass."""
        whole, nothing = self._ends
        other = ~self.items.real
        all_stay, none_stays = ((staying >= 1) | other).all(-1), ((staying <= 0) | other).all(-1)
        found = torch.where(all_stay, whole, torch.where(none_stays, nothing, torch.nan))
        asked = ~all_stay & ~none_stays & staying.isfinite().all(-1)
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        if len(rows):
            found[asked] = self._run(rows, staying[asked], drawn)
        return found

    def _run(
        self, rows: Tensor, staying: Float64[Tensor, "N I"], drawn: Float64[Tensor, "B T E"]
    ) -> Float64[Tensor, "N"]:
        context, parts = self.items.context, []
        for some, chances in context.split_by_budget(rows, staying):
            item_index = self.items.item_index[some]
            stays = chances.gather(1, item_index.clamp(min=0))
            stays = stays.masked_fill(item_index < 0, torch.inf)
            kept = drawn[some] < stays[..., None]
            with context.clock("dimming"), torch.no_grad():
                vectors = context.embedded.detach()[some]
                logits = context.run_logits(context.batch.select(some), vectors * kept.to(vectors))
            mine = context.predicted.cpu()[some, None]
            parts.append(logits.cpu().double().softmax(-1).gather(-1, mine)[:, 0])
        return torch.cat(parts)

    @cached_property
    def _keys(self) -> Float64[Tensor, "R B I"]:
        """Random scores of the items, new ones for each draw."""
        return random_scores(self.items, "scores of faithfulness", draws=self.draws)
