"""What the figures of models made anew show."""

import json
from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor, log
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from heedful.checks.retraining.section_parts import is_known, weight_order
from heedful.core.records import Estimate
from heedful.report.figures.faithfulness import build_copy_figure
from heedful.report.figures.figure_data import format_two_decimals
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.report.sections.retraining import RetrainedCheck
from heedful.report.sections.roar import build_roar_curves
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords

HEIGHTS = ("0–.25", ".25–.5", ".5–.75", ".75–1")  # of the largest weight
CELLS = 20  # of a distribution of distances
FEWEST = 5  # texts that have a distribution
EVERYONE = "all texts"
TextValues = Float64[np.ndarray, "n"]


def build_retraining_figures(
    records: RunRecords, found: Mapping[str, RetrainedCheck]
) -> tuple[FigureData, ...]:
    """A figure for each such check that was run and has values."""
    made: dict[str, Callable[[RetrainedCheck], FigureData]] = {
        "necessity": lambda one: _scores(one, DIFFERENCES["necessity"]),
        "seeds": lambda one: _spread(records, one),
        "adversary": lambda one: _plane(records, one, found.get("seeds")),
        "guide": lambda one: _scores(one, DIFFERENCES["guide"]),
        "deception": _hidden,
        "roar": build_roar_curves,
        "off_manifold": lambda _: build_copy_figure(records),
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


def _scores(found: RetrainedCheck, differences: Mapping[str, str]) -> FigureData:
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
        if is_known(found.estimate(measure))
    ]
    margin = found.setting("margin")
    band = [{"margin": margin}] if margin is not None and apart else []
    seen = [row["value"] for row in rows] + [one[end] for one in means for end in ("low", "high")]
    within = f" Shaded: within {margin:g}, which counts as no difference." if band else ""
    return FigureData(
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


def _ends(estimate: Estimate) -> FigureRow:
    value = estimate.value
    low, high = (value if end != end else end for end in (estimate.low, estimate.high))
    return {"value": value, "low": low, "high": high}


def _spread(records: RunRecords, found: RetrainedCheck) -> FigureData:
    """Distances of other seeds' attention and of the adversary's, by how peaked attention is."""
    height = records.column("seeds", "max_attention")
    weight = found.setting("adversary")
    sources = {
        "jsd_seeds": "other seeds",
        "jsd_adversary": "adversary" if weight is None else f"adversary, λ {weight:g}",
    }
    rows, marks = list[FigureRow](), list[FigureRow]()
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
    return FigureData(
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


def _classes(records: RunRecords) -> dict[str, Bool[np.ndarray, "n"]]:
    """The texts of either class where there are two, else all of them."""
    predicted = np.array(records.predicted, dtype=object)
    names = sorted(set(records.predicted))
    if len(names) != 2:
        return {EVERYONE: np.ones(len(predicted), dtype=bool)}
    return {name: np.asarray(predicted == name, dtype=bool) for name in names}


def _place(height: TextValues) -> Float64[np.ndarray, "n"]:
    """The bin of a largest weight; NaN has none."""
    return np.asarray(np.minimum(np.floor(height * len(HEIGHTS)), len(HEIGHTS) - 1))


def _cells(values: TextValues) -> list[FigureRow]:
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


def _quartiles(values: TextValues) -> list[FigureRow]:
    if not len(values):
        return []
    low, median, high = (round(float(one), 4) for one in np.quantile(values, (0.25, 0.5, 0.75)))
    return [{"low": low, "median": median, "high": high, "n": len(values)}]


def _ruler(name: str, values: TextValues) -> list[FigureRow]:
    defined = values[~np.isnan(values)]
    return [{"class": name, "shuffled": round(float(defined.mean()), 4)}] if len(defined) else []


def _plane(records: RunRecords, found: RetrainedCheck, seeds: RetrainedCheck | None) -> FigureData:
    """Every adversary by the distance of its attention and of its output; seeds for comparison."""
    rows = [
        {
            "start": f"from {one.start}" if one.start else "adversary",
            "weight": one.weight.removeprefix("λ "),
            "order": order if (order := weight_order(one)) < float("inf") else 1e9,
            "reported": one.reported,
            **{f"jsd_{end}": value for end, value in _ends(one.found["jsd"]).items()},
            **{f"tvd_{end}": value for end, value in _ends(one.found["tvd"]).items()},
        }
        for one in found.tried
        if is_known(one.found["jsd"]) and is_known(one.found["tvd"])
    ]
    marks = _cloud(records, seeds)
    epsilon = found.setting("epsilon")
    heights = [row["tvd_high"] for row in rows] + [mark["tvd"] for mark in marks]
    line = [] if epsilon is None else [{"epsilon": epsilon}]
    cloud = " Seeds: each one's mean JSD, at the TVD of all of them." if marks else ""
    return FigureData(
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


def _cloud(records: RunRecords, seeds: RetrainedCheck | None) -> list[FigureRow]:
    moved = records.column("seeds", "tvd_seeds")
    if seeds is None or np.isnan(moved).all():
        return []
    tvd = float(np.nanmean(moved))
    return [{"jsd": value, "tvd": tvd} for arm in seeds.arms for value in arm.seeds]


def _hidden(found: RetrainedCheck) -> FigureData:
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
        if is_known(one.found[after]) and is_known(found.estimate(before))
    ]
    without = found.estimate("score_without_words")
    marks = [{"without": without.value}] if is_known(without) and rows else []
    return FigureData(
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


WIDTH = 380
ROW = 40  # height of an arm
ROOM = 1.15  # beyond the widest interval
SPREAD = 0.68  # of the seeds of an arm


def scores_chart(picture: FigureData) -> Any:
    """Arms as rows with their seeds, means and intervals; differences on a ruler of their own."""
    import altair as alt

    means = [mark for mark in picture.marks if "arm" in mark]
    seeds = [row | {"at": row["arm"] + SPREAD * row["lift"]} for row in picture.rows]
    scale = alt.Scale(domain=picture.span, nice=False, padding=8)
    x = alt.X("value:Q", title=picture.x, scale=scale, axis=alt.Axis(tickCount=5))
    y = _rows("at:Q", picture.classes)
    faint = alt.Chart(chart_data(seeds), width=WIDTH, height=ROW * len(picture.classes))
    faint = faint.mark_circle(size=34, color=SERIES[0], opacity=0.4).encode(x=x, y=y)
    mean = alt.Chart(chart_data(mark | {"at": mark["arm"]} for mark in means))
    spread = mean.mark_rule(color=SERIES[0], strokeWidth=3, opacity=0.75)
    spread = spread.encode(x=alt.X("low:Q", title=picture.x), x2="high:Q", y=y)
    point = mean.mark_circle(color=SERIES[0], size=90, opacity=1).encode(x=x, y=y)
    arms = alt.layer(faint, spread, point, _values(mean, y))
    apart = [mark for mark in picture.marks if "difference" in mark]
    return alt.vconcat(arms, _differences(picture, apart), spacing=14) if apart else arms


def _differences(picture: FigureData, apart: list[FigureRow]) -> Any:
    import altair as alt

    margin = next((mark["margin"] for mark in picture.marks if "margin" in mark), 0.0)
    ends = [0.02, 2 * margin, *(abs(mark[end]) for mark in apart for end in ("low", "high"))]
    most = ROOM * max(ends)
    scale = alt.Scale(domain=(-most, most), nice=True)
    title = "difference of accuracy"
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    rows = [mark | {"at": place} for place, mark in enumerate(apart)]
    y = _rows("at:Q", [mark["difference"] for mark in apart])
    band = alt.Chart(chart_data([{"value": -margin, "to": margin}]))
    band = band.mark_rect(fill=QUIET, opacity=0.18, stroke=None).encode(x=x, x2="to:Q")
    zero = alt.Chart(chart_data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(x=x)
    base = alt.Chart(chart_data(rows), width=WIDTH, height=0.8 * ROW * len(rows))
    spread = base.mark_rule(color=INK, strokeWidth=3, opacity=0.75)
    spread = spread.encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y)
    point = base.mark_circle(color=INK, size=80, opacity=1).encode(x=x, y=y)
    return alt.layer(*([band] if margin else []), zero, spread, point, _values(base, y))


def _values(means: Any, y: Any) -> Any:
    """The mean in numbers, at the right."""
    import altair as alt

    text = means.mark_text(align="left", dx=6, fontSize=11, color=INK)
    return text.encode(x=alt.value("width"), y=y, text=alt.Text("value:Q", format=".3f"))


def _rows(field: str, names: Iterable[str]) -> Any:
    """Rows from the top down, each with its name; heights between them are free."""
    import altair as alt

    listed = list(names)
    bare: dict[str, Any] = {"grid": False, "ticks": False, "domain": False}
    words = f"{json.dumps(listed)}[datum.value]"  # names of ours, never a user's
    places = list(range(len(listed)))
    axis = alt.Axis(values=places, labelExpr=words, labelLimit=220, minExtent=165, **bare)
    scale = alt.Scale(domain=(-0.5, len(listed) - 0.5), reverse=True, nice=False)
    return alt.Y(field, title=None, axis=axis, scale=scale)


def dumbbell_chart(picture: FigureData) -> Any:
    """Two rulers, the one of attention and the one of accuracy, from before to after."""
    import altair as alt

    panels = [_before_after(picture, of, title) for of, title in HIDDEN.items()]
    return alt.hconcat(*panels, spacing=22)


HIDDEN = {"mass": "share of attention on the hidden words", "score": "accuracy"}


def _before_after(picture: FigureData, of: str, title: str) -> Any:
    import altair as alt

    first = of == "mass"
    rows = [row for row in picture.rows if row["of"] == of]
    along = alt.Scale(domain=_span(picture, of), nice=False, zero=False, padding=8)
    x = alt.X("value:Q", title=title, scale=along, axis=alt.Axis(tickCount=5))
    plain = alt.Axis(labels=first, ticks=False, domain=False, grid=False, labelLimit=160)
    y = alt.Y("weight:N", title=None, sort=list(picture.classes), axis=plain)
    base = alt.Chart(chart_data(rows), width=240, height=alt.Step(ROW))
    way = base.mark_rule(color=QUIET, strokeWidth=1.5).encode(x=x, x2="before:Q", y=y)
    spread = base.mark_rule(color=SERIES[0], strokeWidth=4, opacity=0.5)
    spread = spread.encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y)
    scale = alt.Scale(domain=["before", "after"], range=[QUIET, SERIES[0]])
    legend = alt.Legend(title=None, orient="top") if first else None
    colour = alt.Color("when:N", scale=scale, legend=legend)
    dots = alt.Chart(chart_data(row | {"when": "after"} for row in rows))
    dots = dots.mark_circle(size=90, opacity=1).encode(x=x, y=y, color=colour)
    rings = alt.Chart(chart_data(row | {"when": "before"} for row in rows))
    rings = rings.mark_point(shape="circle", size=190, opacity=1, strokeWidth=2.5)
    rings = rings.encode(x=alt.X("before:Q", scale=along, title=title), y=y, color=colour)
    without = _without(picture, alt.X("without:Q", scale=along, title=title)) if not first else []
    return alt.layer(way, *without, rings, spread, dots)


def _span(picture: FigureData, of: str) -> tuple[float, float]:
    """All of the way for shares of attention; accuracies lie closer together."""
    if of == "mass":
        return picture.span
    rows = [row for row in picture.rows if row["of"] == of]
    ends = [row[end] for row in rows for end in ("before", "low", "high")]
    return around([*ends, *(mark["without"] for mark in picture.marks)])


def _without(picture: FigureData, x: Any) -> list[Any]:
    """What is reached without the words."""
    import altair as alt

    marks = [
        mark | {"reported": f"without the words {format_two_decimals(mark['without'])}"}
        for mark in picture.marks
    ]
    base = alt.Chart(chart_data(marks))
    rule = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=SERIES[1]).encode(x=x)
    text = base.mark_text(baseline="bottom", dy=-4, fontSize=11, color=SERIES[1])
    return [rule, text.encode(x=x, y=alt.value(0), text="reported:N")] if marks else []


WIDTH, NARROW, HEIGHT = 420, 250, 280
TALLEST = 0.4  # of a distribution, on either side of its line; lines are 1 apart
SEEDS = "other seeds"
BELOW = 0.06  # of the height, for the λ of points near 0
FARTHEST = 0.7  # JSD ends a little below


def spread_chart(picture: FigureData) -> Any:
    """A panel for each class; in it, from bin to bin, seeds above the line, adversary below."""
    import altair as alt

    panels = [_panel(picture, name, first=place == 0) for place, name in enumerate(picture.classes)]
    return alt.hconcat(*panels, spacing=14)


def _panel(picture: FigureData, name: str, *, first: bool) -> Any:
    import altair as alt

    sources = list(dict.fromkeys(mark["source"] for mark in picture.marks if "source" in mark))
    sides = {one: 1 - 2 * place for place, one in enumerate(sources)}
    here = [row for row in picture.rows if row["class"] == name]
    shapes = [_lifted(row, sides) for row in _closed(here, picture.span)]
    marks = [mark for mark in picture.marks if mark["class"] == name]
    middle = [
        mark | {"at": mark["bin"] + 0.5 + 0.14 * sides[mark["source"]]}
        for mark in marks
        if "median" in mark
    ]
    across = alt.Scale(domain=picture.span, nice=False)
    x = alt.X("x:Q", title=picture.x, scale=across, axis=alt.Axis(tickCount=5, grid=False))
    up, title = alt.Scale(domain=(0, len(HEIGHTS)), nice=False), "largest attention weight"
    y = alt.Y("at:Q", title=title if first else None, axis=_bins(shown=first), scale=up)
    legend = alt.Legend(title=None, orient="top", offset=4, labelLimit=220)
    colours = alt.Scale(domain=sources, range=list(SERIES[: len(sources)]))
    colour = alt.Color("source:N", scale=colours, legend=legend if first else None)
    width = NARROW if len(picture.classes) > 1 else WIDTH
    area = alt.Chart(chart_data(shapes), width=width, height=HEIGHT)
    area = area.mark_area(opacity=0.35, interpolate="monotone")
    area = area.encode(x=x, y=y, y2="to:Q", color=colour, detail="bin:O")
    base = alt.Chart(chart_data(middle))
    rule = base.mark_rule(strokeWidth=2.5, opacity=0.9)
    rule = rule.encode(x=alt.X("low:Q", title=picture.x), x2="high:Q", y=y, color=colour)
    dot = base.mark_circle(size=55, opacity=1).encode(x="median:Q", y=y, color=colour)
    layers = alt.layer(area, *_scale(marks), rule, dot, *_counts(middle, sources, y))
    return layers.properties(title=name if len(picture.classes) == 1 else f"predicted {name}")


def _closed(rows: list[FigureRow], span: tuple[float, float]) -> list[FigureRow]:
    """Distributions that reach the ends of the scale, not the middles of their outer cells."""
    if not rows:
        return []
    ends = {
        pick(row["x"] for row in rows): edge for pick, edge in zip((min, max), span, strict=True)
    }
    return [*rows, *(row | {"x": ends[row["x"]]} for row in rows if row["x"] in ends)]


def _lifted(row: FigureRow, sides: dict[str, int]) -> FigureRow:
    line = row["bin"] + 0.5
    return row | {"at": line, "to": line + sides[row["source"]] * TALLEST * row["height"]}


def _bins(*, shown: bool) -> Any:
    import altair as alt

    middles = [place + 0.5 for place in range(len(HEIGHTS))]
    words = f"{json.dumps(HEIGHTS)}[floor(datum.value)]"
    return alt.Axis(values=middles, labelExpr=words, labels=shown, ticks=False, domain=False)


def _scale(marks: list[FigureRow]) -> list[Any]:
    """Where shuffled weights lie."""
    import altair as alt

    rows = [mark for mark in marks if "shuffled" in mark]
    rule = alt.Chart(chart_data(rows)).mark_rule(strokeDash=[4, 3], strokeWidth=1.2, color=INK)
    return [rule.encode(x=alt.X("shuffled:Q"))] if rows else []


def _counts(middle: list[FigureRow], sources: list[str], y: Any) -> list[Any]:
    """How many texts each bin holds, at the right."""
    import altair as alt

    rows = [
        mark | {"at": mark["bin"] + 0.5, "reported": f"n = {mark['n']}"}
        for mark in middle
        if mark["source"] == sources[0]
    ]
    text = alt.Chart(chart_data(rows)).mark_text(align="left", dx=5, fontSize=10, color=QUIET)
    return [text.encode(x=alt.value("width"), y=y, text="reported:N")] if rows else []


def plane_chart(picture: FigureData) -> Any:
    """Adversaries by start, joined along λ, each with its λ; seeds and ε for comparison."""
    import altair as alt

    few: dict[str, Any] = {"tickCount": 6, "format": "~g"}
    across, up = (
        alt.Scale(domain=(0, FARTHEST), nice=False),
        alt.Scale(domain=(-BELOW * picture.span[1], picture.span[1]), nice=False),
    )
    x = alt.X("jsd_value:Q", title=picture.x, scale=across, axis=alt.Axis(**few))
    y = alt.Y("tvd_value:Q", title="distance of output (TVD)", scale=up, axis=alt.Axis(**few))
    cloud = [mark for mark in picture.marks if "jsd" in mark]
    names = [*picture.classes, *([SEEDS] if cloud else [])]
    legend = alt.Legend(title=None, orient="top", labelLimit=220)
    scale = alt.Scale(domain=names, range=list(SERIES[: len(names)]))
    colour = alt.Color("start:N", scale=scale, legend=legend)
    base = alt.Chart(chart_data(picture.rows), width=WIDTH, height=HEIGHT)
    line = base.mark_line(strokeWidth=1.5, opacity=0.7)
    line = line.encode(x=x, y=y, color=colour, order="order:Q")
    rule = base.mark_rule(strokeWidth=2, opacity=0.6)
    wide = rule.encode(x=alt.X("jsd_low:Q", title=picture.x), x2="jsd_high:Q", y=y, color=colour)
    tall = rule.encode(x=x, y="tvd_low:Q", y2="tvd_high:Q", color=colour)
    dot = base.mark_circle(size=80, opacity=1).encode(x=x, y=y, color=colour)
    seeds = alt.Chart(chart_data(mark | {"start": SEEDS} for mark in cloud))
    seeds = seeds.mark_point(size=60, shape="diamond", filled=True, opacity=0.8)
    seeds = seeds.encode(x="jsd:Q", y="tvd:Q", color=colour)
    points = [seeds, dot] if cloud else [dot]
    return alt.layer(*_same(picture), line, wide, tall, *points, *_weights(picture, x, y))


def _weights(picture: FigureData, x: Any, y: Any) -> list[Any]:
    """The λ of each point: above it on the first line and below on the others, to keep apart."""
    import altair as alt

    drawn = []
    for place, start in enumerate(picture.classes):
        rows = [row for row in picture.rows if row["start"] == start]
        text = alt.Chart(chart_data(rows)).mark_text(
            dy=16 if place else -13, fontSize=11, color=INK
        )
        drawn.append(text.encode(x=x, y=y, text="weight:N"))
    return drawn


def _same(picture: FigureData) -> list[Any]:
    """Below this line an output counts as the same."""
    import altair as alt

    rows = [
        {"tvd": mark["epsilon"], "reported": f"ε {mark['epsilon']:g}"}
        for mark in picture.marks
        if "epsilon" in mark and mark["epsilon"] <= picture.span[1]
    ]
    base = alt.Chart(chart_data(rows))
    rule = base.mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=QUIET).encode(y="tvd:Q")
    text = base.mark_text(align="left", dx=6, fontSize=11, color=QUIET)
    text = text.encode(x=alt.value("width"), y="tvd:Q", text="reported:N")
    return [rule, text] if rows else []
