"""How different an attention gives the same output? (Jain & Wallace, 2019, experiment 2.2)"""

from dataclasses import asdict, dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings, checks, measurement
from heedful.core.errors import NotApplicable
from heedful.core.records import Claim
from heedful.interventions.exact import CertifiedAdversary, jsd_bound
from heedful.interventions.search import AdversarialSearch
from heedful.models.sitting import Sitting
from heedful.tensor.divergence import jsd, tvd


@checks.register("adversarial")
@dataclass(frozen=True)
class Adversarial:
    """How different an attention gives the same output?

    `epsilon_max_jsd` is what the published search finds, `certified_jsd` the true maximum (two
    classes, linear decoder), `bound_jsd` what no attention can exceed, `of_bound` the best found
    as a share of it, `output_tvd` the change of output at the best found. It has no vote: models
    of every kind reach nearly the whole bound, and whether the figure can tell honest attention
    from inert has not been shown.
    """

    epsilon: float = 0.05
    candidates: int = 5
    steps: int = 500
    rate: float = 0.01
    penalty: float = 500.0
    hinge: float = 0.01
    claim: ClassVar[Claim | None] = "exclusive"
    votes: ClassVar[bool] = False
    measures: ClassVar[tuple[str, ...]] = (
        "epsilon_max_jsd",
        "certified_jsd",
        "bound_jsd",
        "of_bound",
        "output_tvd",
    )
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        AdversarialSearch(**asdict(self))  # wrong settings are said before the work begins

    def __call__(self, sitting: Sitting) -> Findings:
        own, missing = sitting.forward.attention, {}
        best = sitting.once(AdversarialSearch(**asdict(self)))[0]
        columns = {"epsilon_max_jsd": jsd(best, own)}
        try:
            best = sitting.once(CertifiedAdversary(self.epsilon))[0]
            columns["certified_jsd"] = jsd(best, own)
        except NotApplicable as reason:
            missing["certified_jsd"] = f"No exact adversary for this subject: {reason}."
        bound = jsd_bound(sitting, epsilon=self.epsilon)
        columns["bound_jsd"] = bound
        # one word: nothing else to attend to, so no share of nothing
        columns["of_bound"] = torch.where(bound > 0, jsd(best, own) / bound, torch.nan)
        columns["output_tvd"] = _change(sitting, best)
        measured = (measurement(name, column) for name, column in columns.items())
        return Findings(tuple(measured), missing)

    def best(self, sitting: Sitting) -> Float[Tensor, "B T"]:
        """The farthest attention found: the certified one where there is one."""
        try:
            return sitting.once(CertifiedAdversary(self.epsilon))[0]
        except NotApplicable:
            return sitting.once(AdversarialSearch(**asdict(self)))[0]


def _change(sitting: Sitting, attention: Float[Tensor, "B T"]) -> Float[Tensor, "B"]:
    return tvd(sitting.decode(attention).softmax(-1), sitting.forward.probabilities)
