"""The section of `identifiability`: the largest parts without effect, and the numbers by layer."""

from math import isnan

from heedful.core.records import NO_ESTIMATE
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import Cell, Section, Table
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
