"""Agreement layer by layer and head by head, with what the mechanism check finds by layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan

from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import format_estimate
from heedful.results.run_records import RunRecords

TRACED = ("weighting", "unrolled", "mixing")  # measures of the mechanism check


@dataclass(frozen=True, slots=True)
class HeadAgreement:
    """One head: its τ with leave-one-out, and the share of its weight that is on words."""

    number: int
    tau: Estimate
    mass: float
    audited: bool


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """The same of one layer with its heads averaged, and each of them.

    `weighting` is the τ of its weights with what tokens contribute to it, `unrolled` that of those
    contributions with leave-one-out, `mixing` the same of contributions traced down to the words.
    """

    number: int
    tau: Estimate
    mass: Estimate
    audited: bool
    heads: tuple[HeadAgreement, ...]
    weighting: Estimate = NO_ESTIMATE
    unrolled: Estimate = NO_ESTIMATE
    mixing: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class Layers:
    """Every layer from the lowest up; `level` is that of the intervals."""

    layers: tuple[LayerAgreement, ...]
    level: float

    @property
    def heads(self) -> tuple[HeadAgreement, ...]:
        """The heads of all layers that have a τ."""
        every = (head for layer in self.layers for head in layer.heads)
        return tuple(head for head in every if not isnan(head.tau.value))

    @property
    def traced(self) -> tuple[LayerAgreement, ...]:
        """The layers of which is known what tokens contribute to them."""
        return tuple(layer for layer in self.layers if not isnan(layer.weighting.value))

    @property
    def strongest(self) -> float:
        """The largest mean |τ| of a head: the end of the scale of colours."""
        return max((abs(head.tau.value) for head in self.heads), default=0.0) or 1.0


def build_layers(records: RunRecords) -> Layers | None:
    """What the run measured by layer and head; None where the model has no layers."""
    agreement = records.verdict.checks.get("agreement")
    mechanism = records.verdict.checks.get("mechanism")
    if agreement is None:
        return None
    taus, masses = agreement.by_layer("tau_leave_one_out"), agreement.by_layer("word_mass")
    traced = {name: mechanism.by_layer(f"tau_{name}") if mechanism else {} for name in TRACED}
    audited = read_audited_attention(records.manifest)

    def read_head(layer: int, head: int) -> HeadAgreement:
        mass = masses.get((layer, head), NO_ESTIMATE).value
        return HeadAgreement(head, taus[layer, head], mass, is_audited(audited, layer, head))

    layers = tuple(
        LayerAgreement(
            number=layer,
            tau=taus[layer, None],
            mass=masses.get((layer, None), NO_ESTIMATE),
            audited=is_audited(audited, layer),
            heads=tuple(
                read_head(layer, head)
                for head in sorted(h for one, h in taus if one == layer and h is not None)
            ),
            **{name: one.get((layer, None), NO_ESTIMATE) for name, one in traced.items()},
        )
        for layer in sorted({layer for layer, head in taus if head is None})
    )
    return Layers(layers, records.manifest.get("level", 0.95)) if layers else None


def summarise_layers(layers: Layers) -> str:
    """Where agreement is highest and lowest, where the audit looked, and how many heads agree."""
    known = [one for one in layers.layers if not isnan(one.tau.value)]
    if not known:
        return "No layer has a τ with leave-one-out on this data."
    high, low = _ends(known, lambda one: one.tau)
    parts = [f"Highest in layer {high.number}, τ {format_estimate(high.tau)}"]
    if low is not high:
        parts.append(f"lowest in layer {low.number}, τ {format_estimate(low.tau)}")
    parts += [
        f"in the audited layer {one.number}, τ {format_estimate(one.tau)}"
        for one in known
        if one.audited and one not in (high, low)
    ]
    sentences = (f"{'; '.join(parts)}.", _describe_heads(layers), _describe_traced(layers))
    return " ".join(filter(None, sentences))


def _ends(
    layers: Sequence[LayerAgreement], value: Callable[[LayerAgreement], Estimate]
) -> tuple[LayerAgreement, LayerAgreement]:
    """The layers with the highest and with the lowest value."""
    ordered = sorted(layers, key=lambda one: value(one).value)
    return ordered[-1], ordered[0]


def _describe_traced(layers: Layers) -> str:
    if not layers.traced:
        return ""
    high, low = _ends(layers.traced, lambda one: one.weighting)
    sentence = (
        "Weights agree most with what tokens contribute to their layer in layer "
        f"{high.number}, τ {format_estimate(high.weighting)}"
    )
    least = f", least in layer {low.number}, τ {format_estimate(low.weighting)}"
    return f"{sentence}{least if low is not high else ''}."


def _describe_heads(layers: Layers) -> str:
    heads = layers.heads
    if not heads:
        return ""
    above = sum(head.tau.low > 0 for head in heads)
    below = sum(head.tau.high < 0 for head in heads)
    chance = len(heads) * (1 - layers.level) / 2
    return (
        f"Of {len(heads)} heads, {above} have their whole interval above 0 and {below} below; "
        f"by chance alone about {chance:.2g} would on either side."
    )
