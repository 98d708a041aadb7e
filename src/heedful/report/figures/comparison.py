"""Differences with their intervals, check by check, as figures."""

from heedful.comparison.records import ComparisonRecord, SidePair
from heedful.report.figures.theme import SERIES
from heedful.report.pages.comparison_rows import display_name, group_differences
from heedful.results.document import FigureData
from heedful.results.figure_data import drop_empty, ends, interval_rows
from heedful.results.run_records import sanitise_text

MOST = 40  # rows of a figure
MOST_PAIRS = len(SERIES)
ROOM = 1.08  # beyond the widest interval


def build_forest_figures(compared: ComparisonRecord) -> tuple[FigureData, ...]:
    """A figure for each check that both sides have; the degree stands first, on its own."""
    pairs = compared.pairs[:MOST_PAIRS]
    checks = dict.fromkeys(group.check for pair in pairs for group in group_differences(pair))
    return tuple(drop_empty(_forest(one, n, compared, pairs) for n, one in enumerate(checks)))


def _forest(
    check: str, place: int, compared: ComparisonRecord, pairs: tuple[SidePair, ...]
) -> FigureData:
    rows = interval_rows(
        (
            one.difference,
            {
                "group": display_name(one.key),
                "class": sanitise_text(pair.second),
                "certain": one.certain,
            },
        )
        for pair in pairs
        for group in group_differences(pair)
        if group.check == check
        for one in group.rows
    )
    names = list(dict.fromkeys(row["group"] for row in rows))
    shown = [row for row in rows if row["group"] in names[:MOST]]
    most = ROOM * max(map(abs, ends(shown)), default=0.0) or 1.0
    left = f" The first {MOST} of {len(names)} are drawn." if len(names) > MOST else ""
    return FigureData(
        f"differences-{place}",
        "intervals",
        check or "Degree",
        f"Bars are {100 * compared.level:g} % intervals; filled: certain after correction.{left}",
        x=f"difference from {sanitise_text(compared.pairs[0].first)}",
        span=(-most, most),
        classes=tuple(sanitise_text(pair.second) for pair in pairs),
        rows=shown,
    )
