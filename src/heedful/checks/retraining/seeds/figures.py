"""The figure of `seeds`: distance of other seeds' attention, by how peaked attention is."""

from collections.abc import Iterator, Sequence
from math import log
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import FEWEST, TextValues

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "seeds"
BINS = ("0–.25", ".25–.5", ".5–.75", ".75–1")  # of the largest weight
CELLS = 20  # of a distribution of distances
EVERYONE = "all texts"


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Distances of other seeds' attention and of the adversary's, by the largest weight."""
    weight = records.number_setting(NAME, "adversary")
    sources = {
        "jsd_seeds": "other seeds",
        "jsd_adversary": "adversary" if weight is None else f"adversary, λ {weight:g}",
    }
    classes = _classes(records)
    rows, marks = list[FigureRow](), list[FigureRow]()
    for key, values in _parts(records, classes, sources):
        rows += [key | cell for cell in _distribution(values)]
        marks += [key | quartiles for quartiles in _quartiles(values)]
    if not marks:
        return ()
    shuffled = records.column(NAME, "jsd_shuffled")
    for name, chosen in classes.items():
        if not np.isnan(shuffled[chosen]).all():
            marks.append({"class": name, "rule": round(float(np.nanmean(shuffled[chosen])), 4)})
    figure = FigureData(
        name=NAME,
        kind="violins",
        title="Attention from seed to seed",
        caption="Distance from the audited attention, by its largest weight: distribution over "
        "texts, median and quartiles. Dashed: its own weights shuffled, on average.",
        x="distance of attention (JSD)",
        span=(0.0, log(2)),
        classes=tuple(classes),
        rows=tuple(rows),
        marks=tuple(marks),
        y="largest attention weight",
        y_span=(-0.5, len(BINS) - 0.5),
    )
    return (figure,)


def _classes(records: "RunRecords") -> dict[str, Bool[np.ndarray, "n"]]:
    """The texts of either class where there are two, else all of them."""
    predicted = np.array(records.predicted, dtype=object)
    names = sorted(set(records.predicted))
    if len(names) != 2:
        return {EVERYONE: np.ones(len(predicted), dtype=bool)}
    return {name: np.asarray(predicted == name, dtype=bool) for name in names}


def _parts(
    records: "RunRecords", classes: dict[str, Bool[np.ndarray, "n"]], sources: dict[str, str]
) -> Iterator[tuple[FigureRow, TextValues]]:
    """The distances of each class, source and bin of the largest weight."""
    height = records.column(NAME, "max_attention")
    places = np.minimum(np.floor(height * len(BINS)), len(BINS) - 1)  # NaN has none
    for name, chosen in classes.items():
        for measure, source in sources.items():
            values = records.column(NAME, measure)
            for place, group in enumerate(BINS):
                here = chosen & ~np.isnan(values) & (places == place)
                yield {"class": name, "group": group, "at": place, "source": source}, values[here]


def _distribution(values: TextValues) -> list[FigureRow]:
    """How many there are along the axis, as shares of the most there are anywhere."""
    if len(values) < FEWEST:
        return []
    most = log(2)
    counts, edges = np.histogram(np.clip(values, 0, most), bins=CELLS, range=(0, most))
    middles, shares = (edges[:-1] + edges[1:]) / 2, counts / counts.max()
    return [
        {"x": round(float(x), 4), "height": round(float(share), 4)}
        for x, share in zip(middles, shares, strict=True)
    ]


def _quartiles(values: TextValues) -> list[FigureRow]:
    if not len(values):
        return []
    low, median, high = (round(float(one), 4) for one in np.quantile(values, (0.25, 0.5, 0.75)))
    return [{"low": low, "value": median, "high": high, "n": len(values)}]
