"""The figure of `seeds`: distance of other seeds' attention, by how peaked attention is."""

from typing import TYPE_CHECKING

import numpy as np

from heedful.results.document import FigureData, FigurePanel
from heedful.results.figure_data import (
    drop_empty,
    ends,
    percentile_row,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "seeds"
LEAST = 0.1  # of the axis, JSD
BINS = ("0–.25", ".25–.5", ".5–.75", ".75–1")  # of the largest weight


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Distances of other seeds' attention and of the adversary's, by the largest weight."""
    weight = records.number_setting(NAME, "adversary")
    sources = {
        "other seeds": records.column(NAME, "jsd_seeds"),
        "adversary" if weight is None else f"adversary, λ {weight:g}": records.column(
            NAME, "jsd_adversary"
        ),
    }
    height = records.column(NAME, "max_attention")
    places = np.minimum(np.floor(height * len(BINS)), len(BINS) - 1)  # NaN has none
    panels = _panels(records)
    rows = [
        percentile_row(found, panel=panel, group=f"largest weight {group}")
        | {"class": name, "label": f"n = {len(found)}"}
        for place, group in enumerate(BINS)
        for panel, chosen in panels.items()
        for name, values in sources.items()
        if len(found := values[chosen & ~np.isnan(values) & (places == place)])
    ]
    shuffled = records.column(NAME, "jsd_shuffled")
    means = {
        panel: float(np.nanmean(shuffled[chosen]))
        for panel, chosen in panels.items()
        if not np.isnan(shuffled[chosen]).all()
    }
    span = rounded_span([0.0, LEAST, *ends(rows), *means.values()], 0.1)
    figure = FigureData(
        NAME,
        "intervals",
        "Attention from seed to seed",
        "Distance from the audited attention, by its largest weight. Dots: medians over texts; "
        "boxes: middle half; lines: 10 to 90 %. Dashed: its own weights shuffled, on average.",
        rows=rows,
        marks=[
            {"panel": panel, "rule": mean, "label": "shuffled"} for panel, mean in means.items()
        ],
        panels=[FigurePanel(panel, span) for panel in panels],
    )
    return drop_empty([figure])


def _panels(records: "RunRecords") -> dict[str, np.ndarray]:
    """The texts of either class where there are two, else all of them."""
    predicted, names = np.array(records.predicted, dtype=object), sorted(set(records.predicted))
    if len(names) != 2:
        return {"distance of attention (JSD)": np.ones(len(predicted), dtype=bool)}
    return {f"JSD, texts predicted {name}": predicted == name for name in names}
