"""Differences with their intervals, check by check, as figures."""

from math import isnan

from heedful.comparison.records import ComparisonRecord, Difference, SidePair
from heedful.report.figures.theme import SERIES
from heedful.report.pages.comparison_rows import display_name, group_differences
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import ends, interval_row
from heedful.results.run_records import sanitise_text

MOST = 40  # rows of a figure
MOST_PAIRS = len(SERIES)
ROOM = 1.08  # beyond the widest interval


def build_forest_figures(compared: ComparisonRecord) -> tuple[FigureData, ...]:
    """A figure for each check that both sides have; the degree stands first, on its own."""
    pairs = compared.pairs[:MOST_PAIRS]
    checks = dict.fromkeys(group.check for pair in pairs for group in group_differences(pair))
    made = (_forest(check, place, compared, pairs) for place, check in enumerate(checks))
    return tuple(one for one in made if one is not None)


def _forest(
    check: str, place: int, compared: ComparisonRecord, pairs: tuple[SidePair, ...]
) -> FigureData | None:
    rows = [
        row
        for pair in pairs
        for group in group_differences(pair)
        if group.check == check
        for one in group.rows
        if (row := _row(pair, one)) is not None
    ]
    names = list(dict.fromkeys(row["group"] for row in rows))
    shown = [row for row in rows if row["group"] in names[:MOST]]
    if not shown:
        return None
    most = ROOM * max(map(abs, ends(shown))) or 1.0
    left = f" The first {MOST} of {len(names)} are drawn." if len(names) > MOST else ""
    caption = (
        f"Bars are {100 * compared.level:g} % intervals; filled: certain after correction.{left}"
    )
    return FigureData(
        name=f"differences-{place}",
        kind="intervals",
        title=check or "Degree",
        caption=caption,
        x=f"difference from {sanitise_text(compared.pairs[0].first)}",
        span=(-most, most),
        classes=tuple(sanitise_text(pair.second) for pair in pairs),
        rows=tuple(shown),
    )


def _row(pair: SidePair, one: Difference) -> FigureRow | None:
    if isnan(one.difference.value):
        return None
    names = {"group": display_name(one.key), "class": sanitise_text(pair.second)}
    return interval_row(one.difference, **names, certain=one.certain)
