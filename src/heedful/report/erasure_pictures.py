"""What the figures of erasure show."""

from math import ceil, floor

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from heedful.report.evidence import Records
from heedful.report.pictures import CELLS, Picture, Row

ORDERS = {  # as they are shown, from top to bottom
    "attention": "attention",
    "gradient": "gradient",
    "attention_x_gradient": "attention × gradient",
    "random": "random (control)",
    "optimal": "optimal (reference)",
}
ENDS = {"low": 10, "from": 25, "middle": 50, "to": 75, "high": 90}  # percentiles of a box
FEWEST = 5  # texts whose median is worth a point
STEP = 0.05  # of the ends of an axis, JSD


def erasure_pictures_of(records: Records) -> tuple[Picture, ...]:
    """How many words must go in each order, and what the top weight does; none without erasure."""
    made = (_sets(records), _single(records))
    return tuple(one for one in made if one is not None)


def _sets(records: Records) -> Picture | None:
    rows = []
    for name, words in ORDERS.items():
        values = _defined(records, f"fraction_to_flip_{name}")
        if len(values):
            ends = np.percentile(values, list(ENDS.values())).round(4).tolist()
            rows.append({"order": words, "name": name, **dict(zip(ENDS, ends, strict=True))})
    if not rows:
        return None
    can = _defined(records, "can_flip")
    return Picture(
        name="fraction_to_flip",
        kind="boxes",
        title="Words to remove until the decision flips",
        caption=f"Share of a text's words, on the {int(can.sum())} of {len(can)} texts that can be "
        "flipped; 1 where an order never does. Boxes: middle half of the texts and median; lines: "
        "10 to 90 %.",
        x="share of words removed",
        span=(0.0, 1.0),
        classes=tuple(row["order"] for row in rows),
        rows=tuple(rows),
    )


def _single(records: Records) -> Picture | None:
    gap = records.column("erasure", "attention_gap")
    moved = records.column("erasure", "js_top_minus_random")
    both = ~np.isnan(gap) & ~np.isnan(moved)
    if not both.any():
        return None
    gap, moved = gap[both], moved[both]
    low, high = floor(moved.min() / STEP) * STEP, max(STEP, ceil(moved.max() / STEP) * STEP)
    span = (round(min(low, 0.0), 2), round(high, 2))
    return Picture(
        name="js_top_minus_random",
        kind="gap",
        title="Without the top weight, and without another",
        caption="Above 0: removing the top weight moves the output farther than removing another "
        f"word's. Line: median in each tenth of the difference. {_flips(records)}",
        x="top weight − weight drawn at random",
        span=span,
        classes=("JSD without top − JSD without random",),
        rows=_cells(gap, moved, span),
        marks=_medians(gap, moved),
    )


def _flips(records: Records) -> str:
    """The published table of two by two, in words."""
    top, other = (records.column("erasure", name) for name in ("flip_top", "flip_random"))
    known = ~np.isnan(top) & ~np.isnan(other)
    one, two = top[known] > 0, other[known] > 0
    shares = {
        "both": one & two,
        "the top one alone": one & ~two,
        "the other alone": ~one & two,
        "neither": ~one & ~two,
    }
    parts = [f"{name} {100 * flips.mean():.1f} %" for name, flips in shares.items()]
    return f"What flips the decision: {', '.join(parts)}."


def _cells(
    x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"], span: tuple[float, float]
) -> tuple[Row, ...]:
    counts, across, up = np.histogram2d(
        np.clip(x, 0, 1), np.clip(y, *span), bins=CELLS, range=((0, 1), span)
    )
    shares = np.sqrt(counts / counts.max())
    return tuple(
        {
            "x": round(float(across[i]), 4),
            "x2": round(float(across[i + 1]), 4),
            "y": round(float(up[j]), 4),
            "y2": round(float(up[j + 1]), 4),
            "texts": int(counts[i, j]),
            "strength": round(float(shares[i, j]), 3),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    )


def _medians(x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"]) -> tuple[Row, ...]:
    tenth = np.clip((x * 10).astype(int), 0, 9)
    return tuple(
        {"x": (int(one) + 0.5) / 10, "y": round(float(np.median(y[tenth == one])), 4)}
        for one in np.unique(tenth)
        if (tenth == one).sum() >= FEWEST
    )


def _defined(records: Records, measure: str) -> Float64[np.ndarray, "n"]:
    values = records.column("erasure", measure)
    defined: NDArray[np.float64] = values[~np.isnan(values)]
    return defined
