"""The section of `identifiability`: the largest parts without effect, and the numbers by layer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import Cell, Section, Table
from heedful.results.run_records import RunRecords

CHECK, OUTPUT = "identifiability", "output"
MEASURES = (
    *("no_effect_share", "no_effect_share_distribution", "keys_per_dimension"),
    *("token_identified", "own_share"),
)
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


HEAD = (
    "of",
    "without effect",
    "the same, sum kept",
    "keys for each dimension",
    "point to their word",
    "own part",
)
FIGURES = ("identifiability_no_effect", "identifiability_tokens", "identifiability_own")


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """The heads with the most to spare, what that proves, and a table by layer and head."""
    found = build_identifiability(records)
    if found is None:
        return ()
    table = Table(HEAD, tuple(row for layer in found.layers for row in _rows(layer)))
    numbers = "The numbers by layer, and by head"
    return (
        Section(
            CHECK,
            "What of attention can matter, and whose states does it look at?",
            words=(*found.sentences, PROVES, PROVES_NOT) if found.sentences else (),
            folded=(Section("identifiability-numbers", numbers, tables=(table,)),),
            figure_names=FIGURES,
            short="Identifiability",
        ),
    )


def _rows(layer: "LayerNullSpace") -> Iterator[tuple[str | Cell, ...]]:
    own = (layer.share, layer.kept, layer.keys, layer.identified, layer.own)
    name = Cell(layer.name, answer="under audit" if layer.audited else "")
    yield (name, *(Cell(estimate=one) for one in own))
    for head in layer.heads:
        name = Cell(f"{layer.name}, head {head.number}", muted=True)
        yield (name, Cell(estimate=head.share), "", "", "", "")


@dataclass(frozen=True, slots=True)
class HeadNullSpace:
    """One head and the share of its weights that has no effect.

    `longer` texts have more keys than a head has dimensions, `there` is the mean share in them: in
    the others nothing need be without effect.
    """

    layer: int
    number: int
    share: Estimate
    keys: Estimate
    longer: int
    there: float


@dataclass(frozen=True, slots=True)
class LayerNullSpace:
    """A layer, heads averaged, and its heads; the last is what leaves the model, without weights.

    `keys` are those a row may see, for each dimension of a head; `identified` are states as they
    enter the layer.
    """

    number: int
    name: str
    audited: bool
    share: Estimate
    kept: Estimate
    keys: Estimate
    identified: Estimate
    own: Estimate
    heads: tuple[HeadNullSpace, ...] = ()


@dataclass(frozen=True, slots=True)
class IdentifiabilityView:
    """Every layer from the lowest up, and sentences on the heads with the largest share."""

    layers: tuple[LayerNullSpace, ...]
    level: float
    sentences: tuple[str, ...]


def build_identifiability(records: RunRecords) -> IdentifiabilityView | None:
    """What the run measured of it; None where the check did not run, or could not."""
    result = records.verdict.checks.get(CHECK)
    if result is None:
        return None
    by_place = {measure: result.by_layer(measure) for measure in MEASURES}
    numbers = sorted({layer for one in by_place.values() for layer, head in one if head is None})
    if not numbers:
        return None
    audited = read_audited_attention(records.manifest)
    layers = [
        _layer(records, number, by_place, audited=is_audited(audited, number)) for number in numbers
    ]
    if any(row.setting == OUTPUT for row in result.by):
        identified, own = (result.of(name, setting=OUTPUT) for name in MEASURES[3:])
        layers.append(
            LayerNullSpace(numbers[-1] + 1, OUTPUT, False, *(NO_ESTIMATE,) * 3, identified, own)
        )
    level = records.manifest.get("level", 0.95)
    return IdentifiabilityView(tuple(layers), level, _sentences(layers, level))


def _layer(
    records: RunRecords,
    number: int,
    by_place: Mapping[str, Mapping[tuple[int, int | None], Estimate]],
    *,
    audited: bool,
) -> LayerNullSpace:
    here = {measure: one.get((number, None), NO_ESTIMATE) for measure, one in by_place.items()}
    shares, keys = by_place["no_effect_share"], here["keys_per_dimension"]
    heads = sorted(head for layer, head in shares if layer == number and head is not None)
    return LayerNullSpace(
        number=number,
        name=f"layer {number}",
        audited=audited,
        share=here["no_effect_share"],
        kept=here["no_effect_share_distribution"],
        keys=keys,
        identified=here["token_identified"],
        own=here["own_share"],
        heads=tuple(
            HeadNullSpace(number, head, shares[number, head], keys, *_longer(records, number, head))
            for head in heads
        ),
    )


def _longer(records: RunRecords, layer: int, head: int) -> tuple[int, float]:
    """How many texts have more keys than a head has dimensions, and the mean share in them."""
    keys = records.column(CHECK, "keys_per_dimension", layer=layer)
    share = records.column(CHECK, "no_effect_share", layer=layer, head=head)[keys > 1]
    return len(share), float(share.mean()) if len(share) else 0.0


def _sentences(layers: list[LayerNullSpace], level: float) -> tuple[str, ...]:
    """A sentence for each of the heads whose weights have the largest part without effect."""
    heads = [head for layer in layers for head in layer.heads if head.share.n]
    if not heads:
        return ()
    most = sorted(heads, key=lambda head: -head.share.value)[:MOST]
    named = tuple(_sentence(head, level) for head in most if head.share.value > LEAST)
    return named or (
        "In these texts no head has any weight without effect: the values of the keys that a row "
        f"sees are independent ({most[0].keys.value:.2f} keys for each dimension of a head).",
    )


def _sentence(head: HeadNullSpace, level: float) -> str:
    share, ends = head.share, ""
    if share.n > 1 and share.low == share.low:
        low, high = (f"{100 * max(0.0, end):.1f}" for end in (share.low, share.high))
        ends = f"{100 * level:g} % interval {low} to {high} %, "
    return (
        f"Layer {head.layer}, head {head.number}: {100 * share.value:.1f} % of this head's "
        f"attention has no effect ({ends}n = {share.n}; {head.keys.value:.2f} keys for "
        f"each dimension of a head; {100 * head.there:.1f} % in the {head.longer} texts with more "
        "keys than dimensions)."
    )
