"""The same questions asked of parts of the data: by class, by length, by correctness."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import estimate_means, estimate_place
from heedful.results.run_records import RunRecords

MOST_CLASSES = 12
MEANS = {
    "τ with leave-one-out": ("agreement", "tau_leave_one_out"),
    "change of output when shuffled": ("permutation", "median_tvd"),
    "farthest attention, of the bound": ("adversarial", "of_bound"),
}
DEGREE = "degree"
PLACE = ("tau_leave_one_out", "tau_shuffled_leave_one_out", "tau_gradient_leave_one_out")


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of the data and what was found in it."""

    group: str
    name: str
    texts: int
    estimates: dict[str, Estimate]


def build_slices(records: RunRecords) -> tuple[Slice, ...]:
    """Each part with the degree and the means of MEANS, as far as the run has them.

    Parts are described, not tested: no correction for looking at many of them is made.
    """
    columns = {name: records.column(*which) for name, which in MEANS.items()}
    columns = {name: one for name, one in columns.items() if not np.isnan(one).all()}
    place = [records.column("agreement", measure) for measure in PLACE]
    level, seed = records.manifest.get("level", 0.95), records.manifest.get("seed", 0)
    found = []
    for group, name, chosen in _parts(records):
        estimates: dict[str, Estimate] = {}
        if not np.isnan(place).all(1).any():
            subject, control, reference = (one[chosen] for one in place)
            placed = estimate_place(subject, control, reference, seed=seed, level=level)
            estimates[DEGREE] = placed.place
        inside = {name: one[chosen] for name, one in columns.items()}
        estimates |= estimate_means(inside, seed=seed, level=level)
        found.append(Slice(group, name, int(chosen.sum()), estimates))
    return tuple(found)


def _parts(records: RunRecords) -> Iterator[tuple[str, str, Bool[np.ndarray, "n"]]]:
    predicted = np.array(records.predicted, dtype=object)
    classes, counts = np.unique(predicted.astype(str), return_counts=True)
    for name in sorted(classes[np.argsort(-counts, kind="stable")][:MOST_CLASSES]):
        yield "Predicted class", str(name), predicted == name
    right = predicted == np.array(records.label, dtype=object)
    if not any(records.label):  # texts without labels are neither
        right = np.zeros(0, dtype=bool)
    for name, chosen in (("correct", right), ("wrong", ~right)):
        if len(right) and chosen.any():
            yield "Prediction", name, chosen
    yield from _by_length(records.lengths)


def _by_length(
    lengths: Float64[np.ndarray, "n"],
) -> Iterator[tuple[str, str, Bool[np.ndarray, "n"]]]:
    known = lengths[~np.isnan(lengths)]
    if not len(known):
        return
    # equal lengths stay together, so quarters of short texts may be uneven, or fewer than four
    edges = np.unique(np.quantile(known, (0.25, 0.5, 0.75), method="inverted_cdf"))
    quarter = np.searchsorted(edges, lengths)
    for which in range(len(edges) + 1):
        chosen = (quarter == which) & ~np.isnan(lengths)
        if chosen.any():
            least, most = int(lengths[chosen].min()), int(lengths[chosen].max())
            yield "Length", f"{least}–{most} words" if least < most else f"{least} words", chosen
