"""What `mechanism` asks, measures and shows; it has no vote."""

from functools import partial
from math import isnan

from heedful.checks.spec import RANK, CheckSpec, Measure, VoteRule, always
from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    FigureWords,
    drop_empty,
    ends,
    interval_row,
    layer_figure,
    layer_rows,
    reference_lines,
    rounded_span,
)
from heedful.results.run_records import RunRecords

NAME = "mechanism"
BY_LAYER = {
    "tau_weighting": "weights and contributions",
    "tau_unrolled": "contributions and leave-one-out",
    "tau_mixing": "the same, traced to the words",
}
_by_layer = partial(Measure, direction="up", range=RANK, by=("layer",))


def describe(result: CheckResult) -> str:
    """Whether more agreement is lost in the weights or in the encoder, where that is certain."""
    if "tau_weighting" not in result.estimates:
        reasons = [one.reason for one in result.missing if one.measure == "tau_unrolled"]
        return reasons[0] if reasons else "What each state adds is not known for this decoder."
    weighting, mixing = result.of("tau_weighting"), result.of("tau_mixing")
    if not weighting.n or not mixing.n:
        return "No text has two words that differ, so nothing can be ranked."
    if "tau_unrolled" in result.estimates:
        return _describe_layers(weighting, mixing, result.of("tau_unrolled"))
    mixed = "in the encoder: a hidden state carries more than its own word"
    lost = _where_lost(weighting, mixing, of="a state", mixed=mixed)
    return (
        f"Weights agree with what states contribute at τ {weighting}, contributions with "
        f"leave-one-out at τ {mixing}: {lost}."
    )


def _describe_layers(weighting: Estimate, mixing: Estimate, unrolled: Estimate) -> str:
    mixed = "after the layer: what tokens contribute to it differs from the effect of deleting them"
    lost = _where_lost(weighting, mixing, of="a token", mixed=mixed)
    if unrolled.high < mixing.low:
        lost += "; tracing through the layers recovers some of what they mix"
    elif mixing.high < unrolled.low:
        lost += "; tracing through the layers below loses more"
    return (
        f"Weights agree with what tokens contribute to the layer at τ {weighting}; contributions "
        f"agree with leave-one-out at τ {unrolled}, and at τ {mixing} once traced through the "
        f"layers: {lost}."
    )


def _where_lost(weighting: Estimate, mixing: Estimate, *, of: str, mixed: str) -> str:
    if weighting.high < mixing.low:
        return (
            f"most disagreement arises in the weights, which do not reflect how much {of} "
            "contributes"
        )
    if mixing.high < weighting.low:
        return f"most disagreement arises {mixed}"
    return "about as much is lost in the weights as in the encoder"


def build_figures(records: RunRecords) -> list[FigureData]:
    """What is left of attention's order at each station, and three τ from layer to layer."""
    result = records.verdict.checks[NAME]
    words = FigureWords(
        "layers_mechanism",
        "Weights and contributions by layer",
        "Kendall's τ of a layer's weights with what tokens contribute to its state at the audited "
        "position; of these contributions with leave-one-out; and of contributions traced down to "
        f"the words: mean and {100 * records.level:g} % interval. Contributions are by ALTI, or by "
        "value zeroing where ALTI is refused.",
        "Kendall's τ",
    )
    rows = [
        row | {"class": label}
        for measure, label in BY_LAYER.items()
        for row in layer_rows(result.by_layer(measure))
    ]
    return drop_empty([_flow(records), layer_figure(records, words, rows)])


def _flow(records: RunRecords) -> FigureData:
    """τ of attention's ranking with what comes after it; empty without `agreement`."""
    checks = records.verdict.checks
    found = {
        name: one
        for check in ("agreement", NAME)
        if check in checks
        for name, one in checks[check].estimates.items()
        if not isnan(one.value)
    }
    rows: list[FigureRow] = []
    weighting, deletion = (found.get(f"tau_{one}") for one in ("weighting", "leave_one_out"))
    if weighting and deletion:
        rows = [
            {"station": 0, "name": "attention", "value": 1.0, "low": 1.0, "high": 1.0},
            interval_row(weighting, station=1, name="contributions", loss="weighting"),
            interval_row(deletion, station=2, name="leave-one-out", loss="mixing"),
        ]
    traced = ", traced" if "tau_unrolled" in checks[NAME].estimates else ""
    rulers = {
        "tau_gradient_leave_one_out": "gradient (reference)",
        "tau_unrolled": "contributions",
        "tau_mixing": f"contributions{traced}",
        "tau_shuffled_leave_one_out": "shuffled (control)",
    }
    marks = reference_lines({label: found[one] for one, label in rulers.items() if one in found})
    heights = [0.0, 1.0, *ends(rows), *(mark["rule"] for mark in marks)]
    return FigureData(
        NAME,
        "flow",
        "Where influence is lost",
        "How much of attention's order of the words is left (τ) at each station on the way to "
        "their influence. At the right: what else reaches leave-one-out.",
        rows=rows,
        marks=marks,
        y="Kendall's τ",
        y_span=(rounded_span(heights, 0.1)[0], 1.0),
    )


SPEC = CheckSpec(
    NAME,
    "Where do attention and influence diverge: in the weights or in the encoder's mixing of words?",
    (
        _by_layer("tau_weighting", "attention and contributions, τ"),
        _by_layer("tau_mixing", "contributions and leave-one-out, τ"),
        _by_layer("tau_unrolled", "contributions to one layer and leave-one-out, τ"),
        Measure("conicity", "how alike the states are (mean cosine)", range=RANK),
    ),
    "heedful.checks.attention.mechanism.check:Mechanism",
    title="Where agreement is lost",
    leading=("tau_weighting", "tau_mixing"),
    rules=(VoteRule("no vote", always, lambda e: describe(e.results[NAME])),),
    figures=build_figures,
)
