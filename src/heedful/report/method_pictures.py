"""What the figures of methods against methods show."""

from math import isnan

from heedful.core.records import Estimate
from heedful.report.methods import Methods, Pair
from heedful.report.pictures import Picture, Row, told


def method_pictures_of(methods: Methods | None) -> tuple[Picture, ...]:
    """Rank agreement and shared top words of every two methods; none where none were asked for."""
    if methods is None:
        return ()
    top = "top words" if methods.top is None else f"top {methods.top} words"
    names = {one.name for one in methods.methods}
    chance = " By chance it would be as much as with random." if "random" in names else ""
    made = (
        _matrix(
            methods,
            name="methods_tau",
            title="Agreement of every two methods",
            caption="Mean Kendall's τ-b of the two rankings, by absolute score.",
        ),
        _matrix(
            methods,
            name="methods_overlap",
            title="Top words that two methods share",
            caption=f"Mean share of the {top}, at most half of a text's, that both name.{chance}",
        ),
    )
    return tuple(one for one in made if one.rows)


def _matrix(methods: Methods, *, name: str, title: str, caption: str) -> Picture:
    labels = _labels(methods)
    rows = [
        {**row, "one": labels[row["one"]], "other": labels[row["other"]]}
        for pair in methods.pairs
        for row in _cells(pair, _estimate(pair, name))
    ]
    starts = {one.kind: labels[one.name] for one in reversed(methods.methods)}
    return Picture(
        name=name,
        kind="matrix",
        title=title,
        caption=caption,
        x="",
        span=(-1.0, 1.0),
        classes=tuple(labels[one.name] for one in methods.methods),
        rows=tuple(rows),
        marks=tuple({"one": first, "kind": kind} for kind, first in starts.items()),
    )


def _labels(methods: Methods) -> dict[str, str]:
    """Names, with the number of texts where a method ranked clearly fewer than others."""
    few = {name: f"{name}, n = {one.texts}" for name, one in methods.few.items()}
    return {one.name: few.get(one.name, one.name) for one in methods.methods}


def _estimate(pair: Pair, name: str) -> Estimate:
    return pair.tau if name == "methods_tau" else pair.overlap


def _cells(pair: Pair, estimate: Estimate) -> list[Row]:
    """A number on either side of the diagonal; without an interval it has no colour."""
    if isnan(estimate.value):
        return []
    strength = 0.0 if isnan(estimate.low) else min(1.0, abs(estimate.value))
    cell: Row = {"told": told(estimate.value), "strength": strength}
    cell["sign"] = "minus" if estimate.value < 0 else "plus"
    both = ((pair.one, pair.other), (pair.other, pair.one))
    return [{"one": one, "other": other, **cell} for one, other in both]
