"""What of attention has no effect, and whose states it looks at, layer by layer."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.core.records import Estimate
from heedful.report.sections.layers import (
    NOTHING,
    LayerHead,
    TextValues,
    estimate_layer_heads,
    group_by_layer_head,
    is_audited,
)
from heedful.report.sections.provenance import read_audited_attention
from heedful.results.run_records import RunRecords

CHECK, OUTPUT = "identifiability", "output"
MEASURES = (
    *("no_effect_share", "no_effect_share_distribution", "keys_per_dimension"),
    *("token_identified", "own_share"),
)
LEAST = 1e-6  # of a row: what is less is rounding
MOST = 3  # heads that are named
PROVES = (
    "That part of the weights can be left out, or replaced by any other of its null space: the "
    "head gives out the very same, and so the model says the very same. A reading of the weights "
    "that rests on that part rests on nothing."
)
PROVES_NOT = (
    "It does not prove that the rest matters, nor that the model attends badly. A head of d "
    "dimensions sees a row of T weights through d numbers at most, so where T is above d some part "
    "has no effect in any model, trained or not, and the share grows with the length of the text, "
    "at once where heads rest on a token that carries next to nothing. Read it beside the keys for "
    "each dimension, and compare texts of like length only."
)


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
    """Every layer from the lowest up, and what is said of the heads with the most to spare."""

    layers: tuple[LayerNullSpace, ...]
    level: float
    sentences: tuple[str, ...]
    proves: str
    proves_not: str


def build_identifiability(records: RunRecords) -> IdentifiabilityView | None:
    """What the run has measured of it; None where it was not asked, or could not be."""
    found = records.by_every_setting(CHECK, MEASURES)
    by_place = {
        measure: estimate_layer_heads(records, group_by_layer_head(found.get(measure, {})))
        for measure in MEASURES
    }
    numbers = sorted({layer for one in by_place.values() for layer, head in one if head is None})
    if not numbers:
        return None
    audited = read_audited_attention(records.manifest)
    layers = [
        _layer(number, by_place, found, audited=is_audited(audited, number)) for number in numbers
    ]
    if any(OUTPUT in one for one in found.values()):
        layers.append(_output(records, numbers[-1] + 1))
    level = records.manifest.get("level", 0.95)
    said = _sentences(layers, level)
    return IdentifiabilityView(
        tuple(layers), level, said, *((PROVES, PROVES_NOT) if said else ("", ""))
    )


def _layer(
    number: int,
    by_place: Mapping[str, Mapping[LayerHead, Estimate]],
    found: Mapping[str, Mapping[str, TextValues]],
    *,
    audited: bool,
) -> LayerNullSpace:
    here = {measure: one.get((number, None), NOTHING) for measure, one in by_place.items()}
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
            HeadNullSpace(number, head, shares[number, head], keys, *_longer(found, number, head))
            for head in heads
        ),
    )


def _longer(
    found: Mapping[str, Mapping[str, TextValues]], layer: int, head: int
) -> tuple[int, float]:
    """How many texts have more keys than a head has dimensions, and the mean share in them."""
    keys = found["keys_per_dimension"][f"layer {layer}"]
    share = found["no_effect_share"][f"layer {layer}, head {head}"][keys > 1]
    return len(share), float(share.mean()) if len(share) else 0.0


def _output(records: RunRecords, number: int) -> LayerNullSpace:
    """What leaves the last layer."""
    found = records.by_every_setting(CHECK, MEASURES[3:])
    names: dict[LayerHead, str] = {(place, None): name for place, name in enumerate(MEASURES[3:])}
    columns = {key: found[name][OUTPUT] for key, name in names.items() if name in found}
    told = estimate_layer_heads(records, columns)
    identified, own = (told.get(key, NOTHING) for key in names)
    return LayerNullSpace(number, OUTPUT, False, *(NOTHING,) * 3, identified, own)


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
        f"attention has no effect whatever ({ends}n = {share.n}; {head.keys.value:.2f} keys for "
        f"each dimension of a head; {100 * head.there:.1f} % in the {head.longer} texts with more "
        "keys than dimensions)."
    )
