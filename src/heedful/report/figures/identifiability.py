"""What the figures of identifiability show."""

from math import ceil, isnan

from heedful.report.figures.figure_data import Picture, Row
from heedful.report.figures.layers import ACROSS, dots_of, means_of
from heedful.report.run_records import Records
from heedful.report.sections.identifiability import CHECK, Identified

LAST = "The last is what leaves the last layer."


def identified_pictures_of(records: Records, found: Identified | None) -> tuple[Picture, ...]:
    """Weights without effect, words that can be told, and a word's own part, by layer."""
    if found is None:
        return ()
    made = (_no_effect(found), _tokens(records, found), _own(found))
    return tuple(one for one in made if one.rows)


def _no_effect(found: Identified) -> Picture:
    rows = means_of((one, one.share) for one in found.layers)
    dots = dots_of(
        (one, head.number, head.share.value) for one in found.layers for head in one.heads
    )
    heights = [row["high"] for row in rows] + [dot["value"] for dot in dots]
    return Picture(
        name="identifiability_no_effect",
        kind="layers",
        title="Attention without effect by layer",
        caption="Share of the squared weights at the position under audit that no value of their "
        f"head sees: mean over heads and {100 * found.level:g} % interval. Faint: single heads.",
        x=ACROSS,
        span=(0.0, max(0.1, ceil(10 * max(heights, default=0.0)) / 10)),
        classes=("share without effect",),
        rows=rows,
        marks=dots,
    )


def _tokens(records: Records, found: Identified) -> Picture:
    return Picture(
        name="identifiability_tokens",
        kind="layers",
        title="States that point to their own word",
        caption="Words whose state, as it enters the layer, has a larger cosine with their own "
        "word vector than with that of any other token of the text. "
        f"{LAST} {_told(found)}",
        x=ACROSS,
        span=(0.0, 1.0),
        classes=("share of words",),
        rows=means_of((one, one.identified) for one in found.layers),
        marks=_chance(records),
    )


def _own(found: Identified) -> Picture:
    return Picture(
        name="identifiability_own",
        kind="layers",
        title="A word's own part in its state",
        caption="The size of a state's slope with its own word vector, as a share of its slopes "
        f"with the vectors of all tokens of the text. {LAST} {_told(found)}",
        x=ACROSS,
        span=(0.0, 1.0),
        classes=("share of ‖∂e/∂x‖",),
        rows=means_of((one, one.own) for one in found.layers),
    )


def _told(found: Identified) -> str:
    return f"Mean and {100 * found.level:g} % interval."


def _chance(records: Records) -> tuple[Row, ...]:
    checks = records.verdict.checks
    chance = checks[CHECK].estimates.get("identified_by_chance") if CHECK in checks else None
    if chance is None or isnan(chance.value):
        return ()
    return ({"what": "chance", "value": chance.value},)
