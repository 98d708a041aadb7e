"""Figures of `influence`: the places of attention, and how often predictions change."""

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

from heedful.checks.influence.names import (
    BEST_SET,
    HALF,
    MASKING,
    MEAN,
    NAME,
    NEAR_FULL,
    RANDOM,
    SHUFFLED,
)
from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import drop_empty, ends, interval_row, rounded_span

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

ATTENTION, HALF_ROLE, SHUFFLED_ROLE = (
    "attention",
    "control: half of the orders",
    "control: shuffled attention",
)
PLACE_GROUPS = {  # measure and reading, by the name of the line
    "order of all words": ("order", None),
    "order, mean over texts": ("order", MEAN),
    "order, words masked": ("order", MASKING),
    "order, nearly all words left": ("order", NEAR_FULL),
    "top words together": ("top_set", None),
    "top word": ("top_word", None),
}
RANKINGS = (  # method and setting of the rows of each role
    (ATTENTION, "attention", None),
    (HALF_ROLE, None, HALF),
    (SHUFFLED_ROLE, "attention", SHUFFLED),
)
LIFT = 0.3  # of the points of one line from each other, as a share of its height
ALL_TEXTS = "all texts"
MOST_CLASSES = 4  # with a colour of their own


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Every figure for which the run has values."""
    return drop_empty([_places(records), _flips(records)])


def place_of(
    result: CheckResult, measure: str, method: str | None, setting: str | None
) -> Estimate:
    """A place of a ranking; one without a value where it was not taken."""
    keys = {"method": method, "setting": setting}
    return result.of(measure, **{name: one for name, one in keys.items() if one is not None})


def _places(records: "RunRecords") -> FigureData:
    """Attention and the two controls between chance and a ranking by influence itself."""
    rows = [*_place_rows(records.verdict.checks[NAME])]
    return FigureData(
        "influence_places",
        "intervals",
        "Places of attention and of the controls",
        "0 is chance, 1 a ranking by influence itself, the line the middle. Influence estimated "
        "from half of the orders must come out above the middle, shuffled attention must not. "
        f"Bars are {100 * records.level:g} % intervals.",
        x="place",
        span=rounded_span([0.0, 1.0, *ends(rows)], 0.1),
        rows=rows,
        marks=[{"rule": 0.5, "label": "middle"}] if rows else [],
    )


def _place_rows(result: CheckResult) -> Iterator[FigureRow]:
    for group, (measure, reading) in PLACE_GROUPS.items():
        for place, (role, method, setting) in enumerate(RANKINGS):
            asked = ", ".join(filter(None, (setting, reading))) or None
            found = place_of(result, measure, method, asked)
            if not isnan(found.value):
                yield interval_row(found, group=group, role=role, lift=LIFT * (place - 1))


def _flips(records: "RunRecords") -> FigureData:
    """The share of the texts whose prediction changes, overall and by predicted class."""
    result = records.verdict.checks[NAME]
    named = result.classes if len(result.classes) <= MOST_CLASSES else ()
    rows = [
        interval_row(found, **{"group": group, "class": name})
        for group, whole, method in flip_series(records)
        for name, found in {ALL_TEXTS: whole, **_by_class(result, named, method)}.items()
        if not isnan(found.value)
    ]
    return FigureData(
        "influence_flips",
        "intervals",
        "Texts whose prediction changes without 20 % of their words",
        "Words removed: those that a method ranks highest, or as many at random. The best set "
        "found is a search bound that no method is expected to reach.",
        x="share of the texts",
        span=(0.0, 1.0),
        classes=(ALL_TEXTS, *named) if named else (),
        rows=rows,
    )


def flip_series(records: "RunRecords") -> Iterator[tuple[str, Estimate, str | None]]:
    """What is removed, the share of all texts, and the method whose rows are by class."""
    flips = records.verdict.flips
    if flips is None:
        return
    yield "random words", flips.random, RANDOM
    yield "attention", flips.attention, "attention"
    if best := flips.best_method:
        yield f"best method: {best.method}", best.estimate, best.method
    yield f"{BEST_SET} (a bound)", flips.best_set, None


def _by_class(
    result: CheckResult, classes: tuple[str, ...], method: str | None
) -> dict[str, Estimate]:
    """The share of each class; the best set has none."""
    found = result.by_class("flip_top", method=method) if method else {}
    return {name: found[name] for name in classes if name in found}
