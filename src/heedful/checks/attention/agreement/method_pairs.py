"""Every method against every other: whether references agree before attention is judged by them.

References are the methods of kind saliency, which say what a word adds to the output, of two sorts:
those that erase words (delete or hide one or many) and those that do not (gradients). Within a sort
methods share their arithmetic and agree for that reason, so agreement among references is that of
one sort with the other.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.requested_methods import method_kind
from heedful.core.records import Measurement
from heedful.methods import methods

REFERENCE_KIND = "saliency"
REFERENCE_MEASURES = ("tau_references", "tau_attention_references")


def measure_pairs(
    names: Sequence[str], tau: Float64[Tensor, "B K K"], overlap: Float64[Tensor, "B K K"]
) -> Iterator[Measurement]:
    """τ and the overlap of the top words for every pair of methods; the second is the setting.

    NaN where either method ranks nothing.
    """
    overlap = overlap.masked_fill(tau.isnan(), torch.nan)
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        yield to_measurement("tau_pair", tau[:, i, j], b, method=a)
        yield to_measurement("overlap_pair", overlap[:, i, j], b, method=a)


def reference_agreement(
    names: Sequence[str], tau: Float64[Tensor, "B K K"]
) -> dict[str, Float[Tensor, "B"]]:
    """The mean τ of erasing with other references, and of attention with both sorts alike."""
    every = [place for place, name in enumerate(names) if method_kind(name) == REFERENCE_KIND]
    erasing = [place for place in every if methods.trait(names[place], "erases")]
    others = [place for place in every if not methods.trait(names[place], "erases")]
    attention = tau[:, names.index("attention")]
    both = torch.stack([attention[:, some].nanmean(-1) for some in (erasing, others)])
    across = tau[:, erasing][:, :, others].flatten(1).nanmean(-1)
    return dict(zip(REFERENCE_MEASURES, (across, both.mean(0)), strict=True))
