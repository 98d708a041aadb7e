"""Differences with their intervals, check by check, as figures."""

from math import isnan

from heedful.comparing.records import Compared, Difference, Pair
from heedful.report.compared_rows import groups_of, name_of
from heedful.report.evidence import visible
from heedful.report.look import SERIES
from heedful.report.pictures import Picture, Row

MOST = 40  # rows of a figure
MOST_PAIRS = len(SERIES)
ROOM = 1.08  # beyond the widest interval


def forests_of(compared: Compared) -> tuple[Picture, ...]:
    """A figure for each check that both sides have; the degree stands first, on its own."""
    pairs = compared.pairs[:MOST_PAIRS]
    checks = dict.fromkeys(group.check for pair in pairs for group in groups_of(pair))
    made = (_forest(check, place, compared, pairs) for place, check in enumerate(checks))
    return tuple(one for one in made if one is not None)


def _forest(check: str, place: int, compared: Compared, pairs: tuple[Pair, ...]) -> Picture | None:
    rows = [
        row
        for pair in pairs
        for group in groups_of(pair)
        if group.check == check
        for one in group.rows
        if (row := _row(pair, one)) is not None
    ]
    names = list(dict.fromkeys(row["measure"] for row in rows))
    shown = [row for row in rows if row["measure"] in names[:MOST]]
    if not shown:
        return None
    most = ROOM * max(abs(row[end]) for row in shown for end in ("low", "value", "high")) or 1.0
    left = f" The first {MOST} of {len(names)} are drawn." if len(names) > MOST else ""
    told = f"Bars are {100 * compared.level:g} % intervals; filled: certain after correction.{left}"
    return Picture(
        name=f"differences-{place}",
        kind="forest",
        title=check or "Degree",
        caption=told,
        x=f"difference from {visible(compared.pairs[0].first)}",
        span=(-most, most),
        classes=tuple(visible(pair.second) for pair in pairs),
        rows=tuple(shown),
    )


def _row(pair: Pair, one: Difference) -> Row | None:
    difference = one.difference
    if isnan(difference.value):
        return None
    ends = {"low": difference.low, "high": difference.high}
    ends = {name: difference.value if isnan(end) else end for name, end in ends.items()}
    names = {"measure": name_of(one.key), "class": visible(pair.second)}
    return {**names, "value": difference.value, **ends, "certain": one.certain}
