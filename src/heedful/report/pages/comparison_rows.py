"""A comparison as rows: for data frames, for CSV and for pages."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from heedful.checks.spec import Measure
from heedful.comparison.records import (
    DEGREE_KEY,
    MAIN_FAMILY,
    ComparisonRecord,
    Difference,
    SidePair,
)
from heedful.core.records import KEY_COLUMNS, MeasureKey, describe_key
from heedful.report.check_specs import find_spec
from heedful.results.run_records import sanitise_text

SIDES = ("first", "second", "difference")
COMPARISON_COLUMNS = (
    *("first", "second", "check", "measure", *KEY_COLUMNS, "n"),
    *(f"{side}_{part}" for side in SIDES for part in ("value", "low", "high")),
    *("p", "p_corrected", "certain", "family", "over", "undefined_first", "undefined_second"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
DEGREE_WORDS = "attention between shuffled (0) and gradient (1)"
FEW = 20  # rows of a check by setting that are shown beside its measures
THE_METHOD = "the method"


@dataclass(frozen=True, slots=True)
class DifferenceGroup:
    """One check's differences: the measures, and of those by setting as many as can be read."""

    check: str
    rows: tuple[Difference, ...]
    more: tuple[Difference, ...] = ()

    @property
    def note(self) -> str:
        """What is left out here, in a sentence."""
        if not self.more:
            return ""
        certain = sum(one.certain for one in self.more)
        return (
            f"{len(self.more)} more by setting (layers, heads, pairs), {certain} of them certain."
        )


def group_differences(pair: SidePair) -> tuple[DifferenceGroup, ...]:
    """The differences of a pair, check by check; the degree has no check."""
    found = []
    for check in dict.fromkeys(one.key.check for one in pair.differences):
        rows = [one for one in pair.differences if one.key.check == check]
        main = [one for one in rows if one.family == MAIN_FAMILY]
        rest = [one for one in rows if one.family != MAIN_FAMILY]
        shown, more = ((*main, *rest), ()) if len(rest) <= FEW else (tuple(main), tuple(rest))
        found.append(DifferenceGroup(sanitise_text(check), shown, more))
    return tuple(found)


def find_measure(key: MeasureKey, kind: str) -> Measure:
    """How to read a row; where methods are compared, measures are those of any method.

    >>> find_measure(MeasureKey("faithfulness", "flip"), "methods").direction
    'down'
    """
    if key == DEGREE_KEY:
        return Measure(key.measure, DEGREE_WORDS, "up")
    method = THE_METHOD if kind == "methods" else key.method
    return find_spec(key.check).measure(key.measure, method)


def display_name(key: MeasureKey) -> str:
    """The measure with what it is keyed by, fit for a page."""
    keys = describe_key(key)
    return sanitise_text(f"{key.measure} [{keys}]" if keys else key.measure)


def format_p_value(p: float) -> str:
    """A p-value to three decimals, or that it is smaller; a dash where there is none.

    >>> format_p_value(0.0004), format_p_value(0.25), format_p_value(float("nan"))
    ('<0.001', '0.250', '–')
    """
    if p != p:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def describe_correction(compared: ComparisonRecord) -> str:
    """How the p-values were corrected, in a sentence."""
    how = {"holm": "Holm's correction", "bh": "Benjamini and Hochberg's correction"}
    counts: dict[str, int] = {}
    for _, one in compared.rows:
        counts[one.family] = counts.get(one.family, 0) + 1
    if compared.correction == "none":
        return f"p-values are not corrected, though {sum(counts.values())} tests are made."
    families = ", ".join(f"{count} ({sanitise_text(name)})" for name, count in counts.items())
    return f"p-values by {how[compared.correction]} over each family of tests: {families}."


def describe_intervals(compared: ComparisonRecord) -> str:
    """Where intervals and p-values come from, in a sentence."""
    paired = all(pair.pairing.paired for pair in compared.pairs)
    how = "sign flips" if paired else "relabelling texts"
    return (
        f"{100 * compared.level:g} % expanded percentile bootstrap over "
        f"{'texts, paired' if paired else 'the texts of each'}, {compared.resamples} resamples; "
        f"p-values by {how}; measures of retrained models also over their seeds."
    )


def flatten_rows(compared: ComparisonRecord) -> Iterator[dict[str, Any]]:
    """One row per pair and measure, with the columns above."""
    for pair, one in compared.rows:
        row: dict[str, Any] = {"first": pair.first, "second": pair.second}
        row |= {"check": one.key.check or None, "measure": one.key.measure}
        row |= {name: getattr(one.key, name) for name in KEY_COLUMNS}
        row["n"] = one.difference.n
        for side in SIDES:
            estimate = getattr(one, side)
            row |= {f"{side}_{part}": getattr(estimate, part) for part in ("value", "low", "high")}
        row |= {"p": one.p, "p_corrected": one.corrected, "certain": one.certain}
        row |= {"family": one.family, "over": one.over}
        row |= {"undefined_first": one.undefined[0], "undefined_second": one.undefined[1]}
        yield row


def render_csv(compared: ComparisonRecord) -> str:
    """The rows as CSV; numbers in full, nothing where there is none."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COMPARISON_COLUMNS)
    for row in flatten_rows(compared):
        writer.writerow(_cell(row[name]) for name in COMPARISON_COLUMNS)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    if isinstance(value, str):  # a name may come from others, and a spreadsheet may run it
        return f"'{sanitise_text(value)}" if value.startswith(FORMULA) else sanitise_text(value)
    return repr(value) if isinstance(value, float) else value


def join_names(keys: Sequence[str], *, most: int = 8) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(map(sanitise_text, keys[:most]))
    return shown if len(keys) <= most else f"{shown} and {len(keys) - most} more"


def describe_missing(pair: SidePair) -> Iterator[str]:
    """What was not compared, and why, a sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for key, why in pair.only_one.items():
        reasons.setdefault(why, []).append(key)
    for why, keys in reasons.items():
        yield f"Not compared: {join_names(keys)} ({sanitise_text(why)})."
