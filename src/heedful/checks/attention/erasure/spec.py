"""What `erasure` asks, measures and shows."""

import numpy as np

from heedful.checks.spec import JSD_DIFFERENCE, CheckSpec, Measure, describe_only
from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData
from heedful.results.figure_data import (
    density_cells,
    drop_empty,
    format_two_decimals,
    median_line,
    percentile_row,
    rounded_span,
)
from heedful.results.run_records import RunRecords

NAME = "erasure"
OWN, CONTROL, BEST = (f"fraction_to_flip_{one}" for one in ("attention", "random", "optimal"))
ORDERS = {  # in the order they are shown, with their role
    "attention": ("attention", "method"),
    "gradient": ("gradient", "method"),
    "attention_x_gradient": ("attention × gradient", "method"),
    "random": ("random", "control"),
    "optimal": ("optimal", "reference"),
}
LEAST = 0.05  # of the vertical axis, JSD


def describe(result: CheckResult) -> str:
    """Where attention's order stands between random and optimal, and what the top weight does."""
    can, top = result.of("can_flip"), result.of("flip_top")
    if not can.n:
        return "No text has two words, so no weight can be removed."
    if not result.of(OWN).n:
        tried = "no set of words" if BEST in result.estimates else "none of the orders"
        return f"Removing weights changes no decision: {tried} flips any of {can.n} texts."
    sentence = _describe_orders(result)
    if top.n:
        sentence += (
            f" Without the top weight {top.value:.1%} of decisions flip, without the weight of "
            f"another random word {result.of('flip_random').value:.1%}."
        )
    return sentence


def _describe_orders(result: CheckResult) -> str:
    own, chance = result.of(OWN), result.of(CONTROL)
    sentence = f"To flip a decision, {own} of the words must go in the order of attention, {chance}"
    if BEST not in result.estimates:
        return f"{sentence} in random order: {_compare(own, chance)}."
    least = result.of(BEST)
    return f"{sentence} in random order and at least {least}: {_place(own, chance, least)}."


def _compare(own: Estimate, chance: Estimate) -> str:
    if own.high < chance.low:
        return "fewer than by chance"
    return "more than by chance" if own.low > chance.high else "about as many as by chance"


def _place(own: Estimate, chance: Estimate, least: Estimate) -> str:
    """In words, by the middle between the two; both ends are means over the same texts."""
    gap = chance.value - least.value
    if not gap > 0:
        return "random order needs no more, so there is no scale for attention"
    share = f"{(chance.value - own.value) / gap:.2f} of the way from random to optimal"
    middle = (chance.value + least.value) / 2
    if own.n < 2 or own.low <= middle <= own.high:
        return share
    if own.high < middle:
        return f"{share}, nearer to optimal"
    return f"{share}, {'no better than' if own.high >= chance.low else 'nearer to'} random"


def build_figures(records: RunRecords) -> list[FigureData]:
    """How many words must go in each order, and what the top weight does."""
    return drop_empty([_words_to_flip(records), _top_weight(records)])


def _words_to_flip(records: RunRecords) -> FigureData:
    rows = [
        percentile_row(column, group=group, role=role)
        for name, (group, role) in ORDERS.items()
        if not np.isnan(column := records.column(NAME, f"fraction_to_flip_{name}")).all()
    ]
    can = records.column(NAME, "can_flip")
    return FigureData(
        "fraction_to_flip",
        "intervals",
        "Words to remove until the decision flips",
        f"Share of a text's words, on the {int(np.nansum(can))} of {int((~np.isnan(can)).sum())} "
        "texts that can be flipped; 1 where an order never does. Dots: medians; boxes: middle half "
        "of the texts; lines: 10 to 90 %.",
        x="share of words removed",
        rows=[row | {"label": format_two_decimals(row["value"])} for row in rows],
        marks=[
            {"rule": one["value"], "label": one["group"]}
            for one in rows
            if one["role"] == "reference"
        ],
    )


def _top_weight(records: RunRecords) -> FigureData:
    gap, moved = (records.column(NAME, one) for one in ("attention_gap", "js_top_minus_random"))
    known = ~np.isnan(gap) & ~np.isnan(moved)
    gap, moved = gap[known], moved[known]
    y_span = rounded_span([0.0, LEAST, *moved])
    return FigureData(
        "js_top_minus_random",
        "density",
        "Without the top weight, and without another",
        "Above 0: removing the top weight moves the output farther than removing another word's. "
        f"Line: median in each tenth of the difference. {_describe_flips(records)}",
        x="top weight − weight drawn at random",
        rows=density_cells(gap, moved, (0.0, 1.0), y_span),
        marks=median_line(gap, moved),
        y="JSD without top − JSD without random",
        y_span=y_span,
    )


def _describe_flips(records: RunRecords) -> str:
    """The published table of two by two, in words."""
    top, other = (records.column(NAME, name) for name in ("flip_top", "flip_random"))
    known = ~np.isnan(top) & ~np.isnan(other)
    one, two = top[known] > 0, other[known] > 0
    shares = {
        "both": one & two,
        "the top one alone": one & ~two,
        "the other alone": ~one & two,
        "neither": ~one & ~two,
    }
    count = max(1, len(one))
    parts = [f"{name} {100 * flips.sum() / count:.1f} %" for name, flips in shares.items()]
    return f"What flips the decision: {', '.join(parts)}."


SPEC = CheckSpec(
    NAME,
    "Do the highest attention weights decide the prediction?",
    (
        Measure("flip_top", "decisions that flip without the top weight", "up", kind="share"),
        Measure("flip_random", "the same without another random word's weight", role="control"),
        Measure(
            "js_top_minus_random",
            "how much farther the first moves the output, JSD",
            "up",
            range=JSD_DIFFERENCE,
        ),
        Measure("can_flip", "texts whose decision some removal flips", kind="share"),
        Measure(OWN, "words to remove until the decision flips, by attention", "down"),
        Measure("fraction_to_flip_gradient", "the same by the gradient at the weights"),
        Measure("fraction_to_flip_attention_x_gradient", "the same by attention × gradient"),
        Measure(CONTROL, "the same in random order", role="control"),
        Measure(BEST, "the same for the smallest set there is", role="reference"),
        Measure("attention_gap", "top weight minus that of the random word", averaged=False),
    ),
    "heedful.checks.attention.erasure.check:Erasure",
    claim="ranks",
    source="Serrano & Smith, 2019",
    leading=("flip_top", "flip_random"),
    rules=describe_only(NAME, describe),
    figures=build_figures,
)
