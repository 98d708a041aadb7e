"""How strange texts with words removed are to the model, beside whole texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import measurement
from heedful.checks.faithfulness.removal_metrics import Trial
from heedful.checks.faithfulness.word_removal import Removals
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.attended_state import state_of
from heedful.models.protocols import Whole
from heedful.numerics.tensor.erasure_metrics import bin_sizes

OFF = "off_distribution"
NOBODY = "the texts stand alone: there are no whole texts of the data to hold them against"


def crowd_of(sitting: Sitting) -> Whole:
    """The whole texts of the data."""
    if sitting.crowd is None:
        raise NotApplicable(NOBODY)
    return sitting.crowd


def whole_texts(sitting: Sitting) -> Float64[Tensor, "B"]:
    """How far off the texts are as they stand: ½ on the average, by chance."""
    crowd, states = crowd_of(sitting), state_of(sitting.batch, sitting.forward)
    return crowd.nearer(states, torch.tensor(sitting.batch.instances))


@dataclass(frozen=True, eq=False)
class Strangeness:
    """Texts without their first words in some orders, by one way to remove them."""

    removals: Removals
    bins: Sequence[float]

    def columns(self, place: Int[Tensor, "K B W"]) -> Float64[Tensor, "K B"]:
        """The mean over the bins of the share of whole texts that are nearer to others."""
        words = self.removals.words
        crowd = crowd_of(words.sitting)
        sizes = bin_sizes(words.counts, self.bins)[..., None]
        top = (place[:, None] < sizes) & words.real
        return self._far(crowd, top).mean(1)

    def _far(self, crowd: Whole, gone: Bool[Tensor, "K S B W"]) -> Float64[Tensor, "K S B"]:
        numbers = torch.tensor(self.removals.words.sitting.batch.instances)
        asked = (self.removals.words.counts > 0).expand(gone.shape[:-1])
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        found = torch.full(asked.shape, torch.nan, dtype=torch.float64)
        if len(rows):
            states = self.removals.states(rows, gone[asked])
            found[asked] = crowd.nearer(states, numbers[rows])
        return found


def strange(trials: Sequence[Trial], row: int, bins: Sequence[float]) -> Iterator[Measurement]:
    """How far off distribution texts are, whole and without the first words of one order.

    The same without as many at random has the setting "random".
    """
    yield measurement(f"{OFF}_whole", whole_texts(trials[0].removals.words.sitting))
    for trial in trials:
        orders = torch.stack([trial.place[row], trial.chance[0]])
        far = Strangeness(trial.removals, bins).columns(orders)
        for one, setting in zip(far, (None, "random"), strict=True):
            yield measurement(f"{OFF}_{trial.removals.way}", one, setting)
