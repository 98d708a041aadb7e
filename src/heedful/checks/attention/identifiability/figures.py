"""Figures of `identifiability`: weights without effect and words in their states, by layer."""

from typing import TYPE_CHECKING

from heedful.core.records import CheckResult
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    FigureWords,
    drop_empty,
    ends,
    head_dots,
    interval_rows,
    layer_figure,
    layer_rows,
    reference_lines,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME, OUTPUT = "identifiability", "output"


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Weights without effect, words that can be identified, and a word's own part, by layer."""
    result = records.verdict.checks[NAME]
    level = f"{100 * records.level:g} % interval"
    shares = result.by_layer("no_effect_share")
    rows, dots = layer_rows(shares), head_dots(shares)
    most = rounded_span([0.0, *ends(rows), *(dot["value"] for dot in dots)], 0.1)[1]
    chance = reference_lines({"chance": result.of("identified_by_chance")})
    no_effect = FigureWords(
        "identifiability_no_effect",
        "Attention without effect by layer",
        "Share of the squared weights at the audited position that no value of their head sees: "
        f"mean over heads and {level}. Faint: single heads.",
        "share without effect",
    )
    tokens = FigureWords(
        "identifiability_tokens",
        "States that point to their own word",
        "Words whose state, as it enters the layer, has a larger cosine with their own word vector "
        "than with that of any other token of the text. The last is what leaves the last layer. "
        f"Mean and {level}.",
        "share of words",
    )
    own = FigureWords(
        "identifiability_own",
        "A word's own part in its state",
        "The norm of the gradient of a state with respect to its own word vector, as a share of "
        "the norms for all tokens of the text. The last is what leaves the last layer. "
        f"Mean and {level}.",
        "share of ‖∂e/∂x‖",
    )
    identified, parts = (_states(result, name) for name in ("token_identified", "own_share"))
    figures = (
        layer_figure(records, no_effect, rows, dots, y_span=(0.0, most)),
        layer_figure(records, tokens, identified, chance, y_span=(0.0, 1.0)),
        layer_figure(records, own, parts, y_span=(0.0, 1.0)),
    )
    return drop_empty(figures)


def _states(result: CheckResult, measure: str) -> list[FigureRow]:
    """A row for each layer, and one for what leaves the last layer."""
    rows = layer_rows(result.by_layer(measure))
    after = max((row["x"] for row in rows), default=-1) + 1
    return [*rows, *interval_rows([(result.of(measure, setting=OUTPUT), {"x": after})])]
