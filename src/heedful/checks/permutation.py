"""Does shuffled attention change the output? (Jain & Wallace, 2019, experiment 2.1)"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from heedful.checks.base import Findings, checks, measurement
from heedful.core.records import Claim
from heedful.interventions.leverage import Leverage
from heedful.interventions.simple import Permute
from heedful.models.sitting import Sitting
from heedful.tensor.divergence import tvd

NO_LEVERAGE = 1e-9  # below this no attention does anything, and a share of it means nothing


@checks.register("permutation")
@dataclass(frozen=True)
class Permutation:
    """Does shuffled attention change the output?

    `median_tvd` is the median change over the shuffles; `leverage` the largest change that any
    attention could cause on the same states, and `median_of_leverage` the share of it.
    """

    draws: int = 100
    claim: ClassVar[Claim | None] = "used"
    votes: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("median_tvd", "leverage", "median_of_leverage")
    beside: ClassVar[tuple[str, ...]] = ("max_attention",)

    def __post_init__(self) -> None:
        Permute(draws=self.draws)  # wrong settings are said before the work begins

    def __call__(self, sitting: Sitting) -> Findings:
        before = sitting.forward.probabilities
        shuffled = sitting.decode(Permute(draws=self.draws)(sitting)).softmax(-1)
        median = tvd(shuffled, before).quantile(0.5, dim=0)
        extreme = sitting.decode(Leverage()(sitting)).softmax(-1)
        leverage = torch.maximum(tvd(extreme, before)[0], median)
        share = torch.where(leverage > NO_LEVERAGE, median / leverage, torch.nan)
        words = sitting.forward.attention.masked_fill(~sitting.batch.mask, 0.0)
        columns = {
            "median_tvd": median,
            "leverage": leverage,
            "median_of_leverage": share,
            "max_attention": words.amax(-1),
        }
        return Findings(tuple(measurement(name, column) for name, column in columns.items()))
