"""Attention layer by layer and head by head: where it ranks as deletion does, where it is spent."""

from dataclasses import dataclass
from math import isnan

from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.report.sections.provenance import AuditedAttention, read_audited_attention
from heedful.results.run_records import RunRecords

LayerHead = tuple[int, int | None]  # layer and head; None for the mean over heads


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
    def columns(self) -> range:
        """A number for each head of the layer that has the most."""
        return range(max(len(layer.heads) for layer in self.layers))

    @property
    def strongest(self) -> float:
        """The largest mean |τ| of a head: the end of the scale of colours."""
        return max((abs(head.tau.value) for head in self.heads), default=0.0) or 1.0


def build_layers(records: RunRecords) -> Layers | None:
    """What the run measured by layer and head; None where the model has no layers."""
    agreement = records.verdict.checks.get("agreement")
    if agreement is None:
        return None
    taus = estimates_by_layer(agreement, "tau_leave_one_out")
    numbers = sorted({layer for layer, head in taus if head is None})
    if not numbers:
        return None
    masses = estimates_by_layer(agreement, "word_mass")
    mechanism = records.verdict.checks.get("mechanism")
    traced = {
        name: estimates_by_layer(mechanism, f"tau_{name}") if mechanism else {}
        for name in ("weighting", "unrolled", "mixing")
    }
    audited = read_audited_attention(records.manifest)
    layers = []
    for layer in numbers:
        heads = sorted(head for one, head in taus if one == layer and head is not None)
        layers.append(
            LayerAgreement(
                number=layer,
                tau=taus[layer, None],
                mass=masses.get((layer, None), NO_ESTIMATE),
                audited=is_audited(audited, layer),
                heads=tuple(
                    HeadAgreement(
                        head,
                        taus[layer, head],
                        masses.get((layer, head), NO_ESTIMATE).value,
                        is_audited(audited, layer, head),
                    )
                    for head in heads
                ),
                **{name: one.get((layer, None), NO_ESTIMATE) for name, one in traced.items()},
            )
        )
    return Layers(tuple(layers), records.manifest.get("level", 0.95))


def estimates_by_layer(result: CheckResult, measure: str) -> dict[LayerHead, Estimate]:
    """The estimates of a measure by layer and head; head None is the whole layer."""
    return {
        (row.layer, row.head): row.estimate
        for row in result.rows(measure)
        if row.layer is not None and row.predicted is None and row.method is None
    }


def summarise_layers(layers: Layers) -> str:
    """Where agreement is highest and lowest, where the audit looked, and how many heads agree."""
    known = [one for one in layers.layers if not isnan(one.tau.value)]
    if not known:
        return "No layer has a τ with leave-one-out on this data."
    high, low = (pick(known, key=lambda one: one.tau.value) for pick in (max, min))
    parts = [f"Highest in layer {high.number}, τ {high.tau}"]
    if low is not high:
        parts.append(f"lowest in layer {low.number}, τ {low.tau}")
    parts += [
        f"in the audited layer {one.number}, τ {one.tau}"
        for one in known
        if one.audited and one not in (high, low)
    ]
    words = f"{'; '.join(parts)}. {_describe_heads(layers)} {_describe_traced(layers)}"
    return words.replace("-", "\N{MINUS SIGN}").replace("  ", " ").strip()


def _describe_traced(layers: Layers) -> str:
    known = layers.traced
    if not known:
        return ""
    high, low = (pick(known, key=lambda one: one.weighting.value) for pick in (max, min))
    sentence = (
        "Weights agree most with what tokens contribute to their layer in layer "
        f"{high.number}, τ {high.weighting}"
    )
    return sentence + (f", least in layer {low.number}, τ {low.weighting}." if low != high else ".")


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


def is_audited(audited: AuditedAttention | None, layer: int, head: int | None = None) -> bool:
    """Whether this layer, or this head of it, was chosen for the audit among others."""
    if audited is None or audited.layer != layer:
        return False
    return head is None or audited.head == head
