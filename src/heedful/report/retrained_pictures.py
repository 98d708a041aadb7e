"""What the figures of models made anew show."""

from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor, log

import numpy as np
from jaxtyping import Bool, Float64

from heedful.core.records import Estimate
from heedful.report.evidence import Records
from heedful.report.pictures import Picture, Row
from heedful.report.removed_pictures import copy_picture
from heedful.report.retrained import Found, known, order_of
from heedful.report.roared import curves_of

HEIGHTS = ("0–.25", ".25–.5", ".5–.75", ".75–1")  # of the largest weight
CELLS = 20  # of a distribution of distances
FEWEST = 5  # texts that have a distribution
EVERYONE = "all texts"
Column = Float64[np.ndarray, "n"]


def retrained_pictures_of(records: Records, found: Mapping[str, Found]) -> tuple[Picture, ...]:
    """A figure for each such check that was run and has values."""
    made: dict[str, Callable[[Found], Picture]] = {
        "necessity": lambda one: _scores(one, DIFFERENCES["necessity"]),
        "seeds": lambda one: _spread(records, one),
        "adversary": lambda one: _plane(records, one, found.get("seeds")),
        "guide": lambda one: _scores(one, DIFFERENCES["guide"]),
        "deception": _hidden,
        "roar": lambda one: curves_of(records, one),
        "off_manifold": lambda _: copy_picture(records),
    }
    pictures = (made[name](one) for name, one in found.items())
    return tuple(one for one in pictures if one.rows or one.marks)


DIFFERENCES = {
    "necessity": {"gain": "own attention − uniform"},
    "guide": {
        "base_minus_uniform": "under audit − uniform",
        "base_minus_own": "under audit − its own",
        "base_minus_adversary": "under audit − adversary",
    },
}
TITLES = {"necessity": "Trained with and without attention", "guide": "Led by given weights"}
CAPTIONS = {
    "necessity": "Accuracy of every seed (faint) and mean of each arm with its interval over seeds "
    "and texts; below, the difference of the two.",
    "guide": "Accuracy of a model that sees each word on its own, by whose weights it was led: "
    "every seed (faint), mean and interval over seeds and texts; below, paired differences.",
}


def _scores(found: Found, differences: Mapping[str, str]) -> Picture:
    """Arms from the top down, the seeds of each, and differences between arms."""
    rows = [
        {"arm": place, "value": value, "lift": round((number + 0.5) / len(arm.seeds) - 0.5, 4)}
        for place, arm in enumerate(found.arms)
        for number, value in enumerate(arm.seeds)
    ]
    means = [{"arm": place, **_ends(arm.estimate)} for place, arm in enumerate(found.arms)]
    apart = [
        {"difference": words, **_ends(found.estimate(measure))}
        for measure, words in differences.items()
        if known(found.estimate(measure))
    ]
    margin = found.setting("margin")
    band = [{"margin": margin}] if margin is not None and apart else []
    seen = [row["value"] for row in rows] + [one[end] for one in means for end in ("low", "high")]
    within = f" Shaded: within {margin:g}, which counts as no difference." if band else ""
    return Picture(
        name=found.name,
        kind="scores",
        title=TITLES[found.name],
        caption=f"{CAPTIONS[found.name]}{within}",
        x="accuracy",
        span=around(seen),
        classes=tuple(arm.name for arm in found.arms),
        rows=tuple(rows),
        marks=(*means, *apart, *band),
    )


def around(values: Iterable[float]) -> tuple[float, float]:
    """The twentieths that hold all of these shares, never nothing.

    >>> around([0.81, 0.9]), around([1.0]), around([])
    ((0.8, 0.9), (0.95, 1.0), (0.0, 1.0))
    """
    seen = sorted(values)
    if not seen:
        return 0.0, 1.0
    low, high = floor(20 * seen[0] + 1e-9) / 20, ceil(20 * seen[-1] - 1e-9) / 20
    return (low - 0.05 if low == high else low), high


def _ends(estimate: Estimate) -> Row:
    value = estimate.value
    low, high = (value if end != end else end for end in (estimate.low, estimate.high))
    return {"value": value, "low": low, "high": high}


def _spread(records: Records, found: Found) -> Picture:
    """Distances of other seeds' attention and of the adversary's, by how peaked attention is."""
    height = records.column("seeds", "max_attention")
    weight = found.setting("adversary")
    sources = {
        "jsd_seeds": "other seeds",
        "jsd_adversary": "adversary" if weight is None else f"adversary, λ {weight:g}",
    }
    rows, marks = list[Row](), list[Row]()
    classes = _classes(records)
    for name, chosen in classes.items():
        for measure, source in sources.items():
            values = records.column("seeds", measure)
            for place in range(len(HEIGHTS)):
                here = chosen & ~np.isnan(values) & (_place(height) == place)
                one = {"class": name, "bin": place, "source": source}
                rows += [{**one, **cell} for cell in _cells(values[here])]
                marks += [{**one, **quartiles} for quartiles in _quartiles(values[here])]
        marks += _ruler(name, records.column("seeds", "jsd_shuffled")[chosen])
    return Picture(
        name="seeds",
        kind="spread",
        title="Attention from seed to seed",
        caption="Distance from the attention under audit, by its largest weight: distribution over "
        "texts, median and quartiles. Dashed: its own weights shuffled, on average.",
        x="distance of attention (JSD)",
        span=(0.0, log(2)),
        classes=tuple(classes),
        rows=tuple(rows),
        marks=tuple(marks) if any("median" in mark for mark in marks) else (),
    )


def _classes(records: Records) -> dict[str, Bool[np.ndarray, "n"]]:
    """The texts of either class where there are two, else all of them."""
    predicted = np.array(records.predicted, dtype=object)
    names = sorted(set(records.predicted))
    if len(names) != 2:
        return {EVERYONE: np.ones(len(predicted), dtype=bool)}
    return {name: np.asarray(predicted == name, dtype=bool) for name in names}


def _place(height: Column) -> Float64[np.ndarray, "n"]:
    """The bin of a largest weight; NaN has none."""
    return np.asarray(np.minimum(np.floor(height * len(HEIGHTS)), len(HEIGHTS) - 1))


def _cells(values: Column) -> list[Row]:
    """How many there are along the way, as shares of the most there are anywhere."""
    if len(values) < FEWEST:
        return []
    most = log(2)
    counts, edges = np.histogram(np.clip(values, 0, most), bins=CELLS, range=(0, most))
    middles, shares = (edges[:-1] + edges[1:]) / 2, counts / counts.max()
    return [
        {"x": round(float(x), 4), "height": round(float(share), 4)}
        for x, share in zip(middles, shares, strict=True)
    ]


def _quartiles(values: Column) -> list[Row]:
    if not len(values):
        return []
    low, median, high = (round(float(one), 4) for one in np.quantile(values, (0.25, 0.5, 0.75)))
    return [{"low": low, "median": median, "high": high, "n": len(values)}]


def _ruler(name: str, values: Column) -> list[Row]:
    defined = values[~np.isnan(values)]
    return [{"class": name, "shuffled": round(float(defined.mean()), 4)}] if len(defined) else []


def _plane(records: Records, found: Found, seeds: Found | None) -> Picture:
    """Every adversary by the distance of its attention and of its output; seeds for comparison."""
    rows = [
        {
            "start": f"from {one.start}" if one.start else "adversary",
            "weight": one.weight.removeprefix("λ "),
            "order": order if (order := order_of(one)) < float("inf") else 1e9,
            "told": one.told,
            **{f"jsd_{end}": value for end, value in _ends(one.found["jsd"]).items()},
            **{f"tvd_{end}": value for end, value in _ends(one.found["tvd"]).items()},
        }
        for one in found.tried
        if known(one.found["jsd"]) and known(one.found["tvd"])
    ]
    marks = _cloud(records, seeds)
    epsilon = found.setting("epsilon")
    heights = [row["tvd_high"] for row in rows] + [mark["tvd"] for mark in marks]
    line = [] if epsilon is None else [{"epsilon": epsilon}]
    cloud = " Seeds: each one's mean JSD, at the TVD of all of them." if marks else ""
    return Picture(
        name="adversary",
        kind="plane",
        title="Another attention at what cost",
        caption="Means over texts of adversaries with the λ beside them, with their intervals. To "
        f"the right attention differs, further up the output does.{cloud}",
        x="distance of attention (JSD)",
        span=(0.0, max(0.1, ceil(10 * max([0.0, *heights]) - 1e-9) / 10)),
        classes=tuple(dict.fromkeys(row["start"] for row in rows)),
        rows=tuple(rows),
        marks=(*marks, *line) if rows else (),
    )


def _cloud(records: Records, seeds: Found | None) -> list[Row]:
    moved = records.column("seeds", "tvd_seeds")
    if seeds is None or np.isnan(moved).all():
        return []
    tvd = float(np.nanmean(moved))
    return [{"jsd": value, "tvd": tvd} for arm in seeds.arms for value in arm.seeds]


def _hidden(found: Found) -> Picture:
    """Mass and score before and after, λ by λ."""
    pairs = {"mass": ("mass_before", "mass_after"), "score": ("score_before", "score_after")}
    rows = [
        {
            "of": of,
            "weight": one.weight,
            "before": found.estimate(before).value,
            **_ends(one.found[after]),
        }
        for of, (before, after) in pairs.items()
        for one in found.tried
        if known(one.found[after]) and known(found.estimate(before))
    ]
    without = found.estimate("score_without_words")
    marks = [{"without": without.value}] if known(without) and rows else []
    return Picture(
        name="deception",
        kind="dumbbell",
        title="Taught to hide words",
        caption="For every λ: the hidden words' share of attention, and the accuracy, before and "
        "after. Dashed: accuracy of a model that never had the words.",
        x="",
        span=(0.0, 1.0),
        classes=tuple(dict.fromkeys(row["weight"] for row in rows)),
        rows=tuple(rows),
        marks=tuple(marks),
    )
