"""What `identifiability` asks, measures and shows; it has no vote."""

from functools import partial
from math import isnan

from heedful.checks.spec import CheckSpec, Measure, describe_only
from heedful.core.records import NO_ESTIMATE, CheckResult
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import Cell, FigureData, FigureRow, Section, Table
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
from heedful.results.run_records import RunRecords

NAME, OUTPUT = "identifiability", "output"
COLUMNS = {
    "no_effect_share": "without effect",
    "no_effect_share_distribution": "the same, sum kept",
    "keys_per_dimension": "keys for each dimension",
    "token_identified": "point to their word",
    "own_share": "own part",
}
LEAST = 1e-6  # of a row: anything less is rounding
MOST = 3  # heads that are named
PROVES = (
    "What this proves. That part of the weights can be removed, or replaced by another of its null "
    "space: the output of the head, and of the model, stays exactly the same. An interpretation "
    "that rests on that part has no basis."
)
PROVES_NOT = (
    "What it does not prove. That the rest matters, or that the model attends badly. A head of d "
    "dimensions sees a row of T weights through d numbers at most, so where T is above d some part "
    "has no effect in any model, trained or not, and the share grows with the length of the text, "
    "at once where heads attend to a token that carries next to nothing. Read it together with the "
    "keys per dimension, and compare texts of similar length only."
)
_by_head = partial(Measure, direction="down", by=("layer", "head"))
_by_layer = partial(Measure, direction="up", by=("layer", "setting"))


def describe(result: CheckResult) -> str:
    """One sentence for each question that has an answer."""
    share, identified, own = (
        result.of(name) for name in ("no_effect_share", "token_identified", "own_share")
    )
    sentences = []
    if share.n:
        sentences.append(
            f"A share of {share} of the audited weights cannot affect the output of their heads, "
            f"at {result.of('keys_per_dimension')} keys per dimension of a head: the more keys, "
            "the larger it must be."
        )
    if identified.n:
        sentences.append(
            f"Of the states they attend to, {identified} still point to their own word (by chance "
            f"{result.of('identified_by_chance').value:.3f})."
        )
    if own.n:
        sentences.append(f"A word makes up {own} of its own state.")
    return " ".join(sentences) or "Nothing of this could be measured for this model."


def build_figures(records: RunRecords) -> list[FigureData]:
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


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """The heads with the most to spare, what that proves, and a table by layer and head."""
    table, sentences = _tabulate(records), describe_heads(records)
    if not table.rows:
        return ()
    numbers = Section(f"{NAME}-numbers", "The numbers by layer, and by head", tables=(table,))
    return (
        Section(
            NAME,
            "What of attention can matter, and whose states does it look at?",
            words=(*sentences, PROVES, PROVES_NOT) if sentences else (),
            folded=(numbers,),
            figure_names=tuple(f"{NAME}_{name}" for name in ("no_effect", "tokens", "own")),
            short="Identifiability",
        ),
    )


def _tabulate(records: RunRecords) -> Table:
    """A row for each layer and each head, and one for the states that leave the last layer."""
    result, audited = records.verdict.checks[NAME], read_audited_attention(records.manifest)
    columns = [result.by_layer(measure) for measure in COLUMNS]
    rows: list[tuple[str | Cell, ...]] = []
    for layer in sorted({layer for column in columns for layer, head in column if head is None}):
        badge = "under audit" if is_audited(audited, layer) else ""
        found = (column.get((layer, None), NO_ESTIMATE) for column in columns)
        rows.append((Cell(f"layer {layer}", answer=badge), *(Cell(estimate=one) for one in found)))
        for head in sorted(h for n, h in columns[0] if n == layer and h is not None):
            name = Cell(f"layer {layer}, head {head}", muted=True)
            found = (column.get((layer, head), NO_ESTIMATE) for column in columns)
            rows.append((name, *(Cell(estimate=one) if one.n else "" for one in found)))
    if any(row.setting == OUTPUT for row in result.by):
        found = (result.of(measure, setting=OUTPUT) for measure in COLUMNS)
        rows.append((OUTPUT, *(Cell(estimate=one) if one.n else "" for one in found)))
    return Table(("of", *COLUMNS.values()), tuple(rows))


def describe_heads(records: RunRecords) -> tuple[str, ...]:
    """A sentence for each of the heads whose weights have the largest part without effect."""
    result = records.verdict.checks[NAME]
    shares = {
        (layer, head): share
        for (layer, head), share in result.by_layer("no_effect_share").items()
        if head is not None and share.n
    }
    if not shares:
        return ()
    most = sorted(shares, key=lambda place: -shares[place].value)[:MOST]
    named = tuple(_sentence(records, *place) for place in most if shares[place].value > LEAST)
    keys = result.of("keys_per_dimension", layer=most[0][0])
    return named or (
        "In these texts no head has any weight without effect: the values of the keys that a row "
        f"sees are independent ({keys.value:.2f} keys for each dimension of a head).",
    )


def _sentence(records: RunRecords, layer: int, head: int) -> str:
    """The share of a head; in texts with no more keys than dimensions it may well be nothing."""
    result = records.verdict.checks[NAME]
    share = result.of("no_effect_share", layer=layer, head=head)
    keys = result.of("keys_per_dimension", layer=layer)
    ends = ""
    if share.n > 1 and not isnan(share.low):
        low, high = (f"{100 * max(0.0, end):.1f}" for end in (share.low, share.high))
        ends = f"{100 * records.level:g} % interval {low} to {high} %, "
    longer = records.column(NAME, "keys_per_dimension", layer=layer) > 1
    there = records.column(NAME, "no_effect_share", layer=layer, head=head)[longer]
    mean = float(there.mean()) if len(there) else 0.0
    return (
        f"Layer {layer}, head {head}: {100 * share.value:.1f} % of this head's attention has no "
        f"effect ({ends}n = {share.n}; {keys.value:.2f} keys for each dimension of a head; "
        f"{100 * mean:.1f} % in the {len(there)} texts with more keys than dimensions)."
    )


SPEC = CheckSpec(
    NAME,
    "Which part of attention can affect the output, and do states still represent their own word?",
    (
        _by_head("no_effect_share", "share of squared weight without effect on the head"),
        _by_head("no_effect_share_distribution", "the same, the sum of weights kept"),
        Measure(
            "keys_per_dimension", "keys per dimension of a head", range=(0.0, 2.0), by=("layer",)
        ),
        _by_layer("token_identified", "states that point to their own word"),
        Measure("identified_by_chance", "the same by chance", role="control"),
        _by_layer("own_share", "a word's own part in its state"),
        _by_layer("own_largest", "words that are the largest part of their own state"),
    ),
    "heedful.checks.attention.identifiability.check:Identifiability",
    source="Brunner et al., 2020",
    title="What attention cannot affect",
    leading=("no_effect_share", "token_identified"),
    rules=describe_only(NAME, describe),
    by_default=False,
    figures=build_figures,
    sections=build_sections,
)
