"""What the figures show, binned: their size does not grow with the number of texts."""

from collections.abc import Iterable
from math import isnan, log

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords

BINS = 40
CELLS = 24  # of a density, along either side
MOST_CLASSES = 6
OTHER = "other classes"
LINE = 0.075  # height of a line of words in a flow, in units of τ


def build_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """Every figure for which the run has measures."""
    made = (*_histograms(records), *_densities(records), _flow(records))
    return tuple(one for one in made if one is not None)


def _histograms(records: RunRecords) -> Iterable[FigureData | None]:
    for measure, title in (
        ("tau_leave_one_out", "Attention and leave-one-out"),
        ("tau_gradient", "Attention and gradient"),
        ("tau_gradient_leave_one_out", "Gradient and leave-one-out"),
    ):
        values = records.column("agreement", measure)
        if np.isnan(values).all():
            continue
        classes, groups = _grouped(records)
        rows = [row for one in classes for row in _bars(one, values[groups == one])]
        mean = float(np.nanmean(values))
        yield FigureData(
            name=measure,
            kind="histogram",
            title=title,
            caption=f"Kendall's τ per text, mean {format_two_decimals(mean)}; share of the texts "
            "of each class.",
            x="Kendall's τ",
            span=(-1.0, 1.0),
            classes=classes,
            rows=tuple(rows),
            marks=({"x": mean, "what": f"mean {format_two_decimals(mean)}"},),
        )


def _bars(name: str, values: Float64[np.ndarray, "n"]) -> list[FigureRow]:
    defined = values[~np.isnan(values)]
    counts, edges = np.histogram(np.clip(defined, -1, 1), bins=BINS, range=(-1, 1))
    shares = counts / max(len(defined), 1)
    return [
        {"class": name, "x": round(float(x), 4), "x2": round(float(x2), 4), "share": float(share)}
        for x, x2, share in zip(edges[:-1], edges[1:], shares.round(5), strict=True)
    ]


def _densities(records: RunRecords) -> Iterable[FigureData | None]:
    height = records.column("permutation", "max_attention")
    for check, measure, title, x, most in (
        (
            "permutation",
            "median_tvd",
            "Shuffling the weights",
            "median change of output (TVD)",
            1.0,
        ),
        ("adversarial", "epsilon_max_jsd", "Farthest attention found", "ε-max JSD", log(2)),
        ("adversarial", "ascent_jsd", "Farthest attention found by programs", "JSD", log(2)),
        ("adversarial", "certified_jsd", "Farthest attention there is", "certified JSD", log(2)),
    ):
        values = records.column(check, measure)
        both = ~np.isnan(values) & ~np.isnan(height)
        if not both.any():
            continue
        classes, groups = _grouped(records)
        rows, marks = [], []
        for one in classes:
            chosen = both & (groups == one)
            rows += _cells(one, values[chosen], height[chosen], most=most)
            marks += _medians(one, values[chosen], height[chosen])
        yield FigureData(
            name=measure,
            kind="density",
            title=title,
            caption=f"{CAPTIONS[measure]} Line: median in each tenth of the largest weight.",
            x=x,
            span=(0.0, most),
            classes=classes,
            rows=tuple(rows),
            marks=tuple(marks),
        )


CAPTIONS = {
    "median_tvd": "To the left: the output stays although the weights are shuffled.",
    "epsilon_max_jsd": "To the right: the published search finds distant weights, same output.",
    "ascent_jsd": "To the right: linear programs find distant weights, same output.",
    "certified_jsd": "To the right: distant weights with the same output exist.",
}


def _cells(
    name: str, x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"], *, most: float
) -> list[FigureRow]:
    counts, across, up = np.histogram2d(
        np.clip(x, 0, most), np.clip(y, 0, 1), bins=CELLS, range=((0, most), (0, 1))
    )
    shares = counts / max(counts.max(), 1)
    return [
        {
            "class": name,
            "x": round(float(across[i]), 4),
            "x2": round(float(across[i + 1]), 4),
            "y": round(float(up[j]), 4),
            "y2": round(float(up[j + 1]), 4),
            "texts": int(counts[i, j]),
            "strength": round(float(np.sqrt(shares[i, j])), 3),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]


def _medians(
    name: str, x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"]
) -> list[FigureRow]:
    tenth = np.minimum((y * 10).astype(int), 9)
    return [
        {"class": name, "x": float(np.median(x[tenth == one])), "y": (one + 0.5) / 10}
        for one in np.unique(tenth)
        if (tenth == one).sum() >= 5  # a median of fewer would draw a line through noise
    ]


def _flow(records: RunRecords) -> FigureData | None:
    """τ of attention's ranking with what comes after it: itself, contributions, leave-one-out."""
    checks = records.verdict.checks
    if not {"mechanism", "agreement"} <= checks.keys():
        return None
    found = {**checks["agreement"].estimates, **checks["mechanism"].estimates}
    stations = ("tau_weighting", "tau_leave_one_out")
    if any(one not in found or isnan(found[one].value) for one in stations):
        return None
    rows = [{"station": 0, "tau": 1.0, "low": 1.0, "high": 1.0}]
    rows += [{"station": i, **_ends(found[one])} for i, one in enumerate(stations, 1)]
    of_layers = {"tau_unrolled": "contributions", "tau_mixing": "contributions, traced"}
    rulers = {
        "tau_gradient_leave_one_out": "gradient (reference)",
        **(of_layers if "tau_unrolled" in found else {"tau_mixing": "contributions"}),
        "tau_shuffled_leave_one_out": "shuffled (control)",
    }
    marks = _apart(
        {"what": f"{words} {format_two_decimals(found[one].value)}"} | _ends(found[one])
        for one, words in rulers.items()
        if one in found and not isnan(found[one].value)
    )
    return FigureData(
        name="mechanism",
        kind="flow",
        title="Where influence is lost",
        caption="How much of attention's order of the words is left (τ) at each station on the way "
        "to their influence. At the right: what else reaches leave-one-out.",
        x="",
        span=(min(0.0, *(row["low"] for row in rows), *(mark["tau"] for mark in marks)), 1.0),
        classes=(),
        rows=tuple(rows),
        marks=marks,
    )


def format_two_decimals(value: float, sign: str = "") -> str:
    """Two decimals with a true minus sign, and no minus zero.

    >>> [format_two_decimals(x) for x in (-0.25, -0.001, 0.5)]
    ['−0.25', '0.00', '0.50']
    """
    return f"{round(value, 2) + 0.0:{sign}.2f}".replace("-", "\N{MINUS SIGN}")


def _apart(marks: Iterable[FigureRow]) -> tuple[FigureRow, ...]:
    """Marks from the lowest up, each with a height for its words that leaves room for the next."""
    placed: list[FigureRow] = []
    for mark in sorted(marks, key=lambda one: float(one["tau"])):
        free = placed[-1]["words_at"] + LINE if placed else mark["tau"]
        placed.append(mark | {"words_at": max(mark["tau"], free)})
    return tuple(placed)


def _ends(estimate: Estimate) -> FigureRow:
    low, high = (estimate.value if isnan(end) else end for end in (estimate.low, estimate.high))
    return {"tau": estimate.value, "low": low, "high": high}


def _grouped(records: RunRecords) -> tuple[tuple[str, ...], np.ndarray]:
    """The classes to draw and the class of each instance; rare ones beyond the sixth are joined."""
    predicted = np.array(records.predicted, dtype=object)
    names, counts = np.unique(predicted.astype(str), return_counts=True)
    if len(names) <= MOST_CLASSES:
        return tuple(map(str, names)), predicted
    kept = set(names[np.argsort(-counts, kind="stable")][: MOST_CLASSES - 1].tolist())
    groups = np.array([one if one in kept else OTHER for one in predicted], dtype=object)
    return (*sorted(kept), OTHER), groups
