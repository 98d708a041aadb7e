"""What the figures of identifiability show."""

from math import ceil, isnan

from heedful.checks.attention.identifiability.sections import CHECK, IdentifiabilityView
from heedful.report.figures.layers import ACROSS, head_dots, mean_rows
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords

LAST = "The last is what leaves the last layer."


def build_identifiability_figures(
    records: RunRecords, found: IdentifiabilityView | None
) -> tuple[FigureData, ...]:
    """Weights without effect, words that can be identified, and a word's own part, by layer."""
    if found is None:
        return ()
    made = (_no_effect(found), _tokens(records, found), _own(found))
    return tuple(one for one in made if one.rows)


def _no_effect(found: IdentifiabilityView) -> FigureData:
    rows = mean_rows((one, one.share) for one in found.layers)
    dots = head_dots(
        (one, head.number, head.share.value) for one in found.layers for head in one.heads
    )
    heights = [row["high"] for row in rows] + [dot["value"] for dot in dots]
    return FigureData(
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


def _tokens(records: RunRecords, found: IdentifiabilityView) -> FigureData:
    return FigureData(
        name="identifiability_tokens",
        kind="layers",
        title="States that point to their own word",
        caption="Words whose state, as it enters the layer, has a larger cosine with their own "
        "word vector than with that of any other token of the text. "
        f"{LAST} {_describe_audited(found)}",
        x=ACROSS,
        span=(0.0, 1.0),
        classes=("share of words",),
        rows=mean_rows((one, one.identified) for one in found.layers),
        marks=_chance(records),
    )


def _own(found: IdentifiabilityView) -> FigureData:
    return FigureData(
        name="identifiability_own",
        kind="layers",
        title="A word's own part in its state",
        caption="The size of a state's slope with its own word vector, as a share of its slopes "
        f"with the vectors of all tokens of the text. {LAST} {_describe_audited(found)}",
        x=ACROSS,
        span=(0.0, 1.0),
        classes=("share of ‖∂e/∂x‖",),
        rows=mean_rows((one, one.own) for one in found.layers),
    )


def _describe_audited(found: IdentifiabilityView) -> str:
    return f"Mean and {100 * found.level:g} % interval."


def _chance(records: RunRecords) -> tuple[FigureRow, ...]:
    checks = records.verdict.checks
    chance = checks[CHECK].estimates.get("identified_by_chance") if CHECK in checks else None
    if chance is None or isnan(chance.value):
        return ()
    return ({"what": "chance", "value": chance.value},)
