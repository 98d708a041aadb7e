"""Attention layer by layer and head by head: where it ranks as deletion does, where it is spent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.report.sections.provenance import AuditedAttention, read_audited_attention
from heedful.results.run_records import RunRecords

SETTING = re.compile(r"layer (\d+)(?:, head (\d+))?")
NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0)
TextValues = Float64[np.ndarray, "n"]
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
    weighting: Estimate = NOTHING
    unrolled: Estimate = NOTHING
    mixing: Estimate = NOTHING


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
    """What the run has measured by layer and head; None where the model has no such thing."""
    taus = group_by_layer_head(records.by_setting("agreement", "tau_leave_one_out"))
    numbers = sorted({layer for layer, head in taus if head is None})
    if not numbers:
        return None
    masses = group_by_layer_head(records.by_setting("agreement", "word_mass"))
    tau = estimate_layer_heads(records, taus)
    mass = estimate_layer_heads(
        records, {place: one for place, one in masses.items() if place[1] is None}
    )
    traced = _traced(records)
    audited = read_audited_attention(records.manifest)
    layers = []
    for layer in numbers:
        heads = sorted(head for one, head in taus if one == layer and head is not None)
        spent = {head: _mean(masses.get((layer, head))) for head in heads}
        made = [
            HeadAgreement(head, tau[layer, head], spent[head], is_audited(audited, layer, head))
            for head in heads
        ]
        layers.append(
            LayerAgreement(
                number=layer,
                tau=tau[layer, None],
                mass=mass.get((layer, None), NOTHING),
                audited=is_audited(audited, layer),
                heads=tuple(made),
                **{name: one.get((layer, None), NOTHING) for name, one in traced.items()},
            )
        )
    return Layers(tuple(layers), records.manifest.get("level", 0.95))


def _traced(records: RunRecords) -> dict[str, dict[LayerHead, Estimate]]:
    """What `mechanism` has measured by layer."""
    names = {f"tau_{name}": name for name in ("weighting", "unrolled", "mixing")}
    found = records.by_every_setting("mechanism", tuple(names))
    return {
        name: estimate_layer_heads(records, group_by_layer_head(found.get(measure, {})))
        for measure, name in names.items()
    }


def summarise_layers(layers: Layers) -> str:
    """Where agreement is highest and lowest, where the audit looked, and how many heads agree."""
    known = [one for one in layers.layers if not isnan(one.tau.value)]
    if not known:
        return "No layer has a τ with leave-one-out on this data."
    high, low = (pick(known, key=lambda one: one.tau.value) for pick in (max, min))
    told = [f"Highest in layer {high.number}, τ {high.tau}"]
    if low is not high:
        told.append(f"lowest in layer {low.number}, τ {low.tau}")
    told += [
        f"in the audited layer {one.number}, τ {one.tau}"
        for one in known
        if one.audited and one not in (high, low)
    ]
    words = f"{'; '.join(told)}. {_describe_heads(layers)} {_describe_traced(layers)}"
    return words.replace("-", "\N{MINUS SIGN}").replace("  ", " ").strip()


def _describe_traced(layers: Layers) -> str:
    known = layers.traced
    if not known:
        return ""
    high, low = (pick(known, key=lambda one: one.weighting.value) for pick in (max, min))
    told = f"Weights rank as what tokens contribute to their layer most in layer {high.number}, "
    told += f"τ {high.weighting}"
    return told + (f", least in layer {low.number}, τ {low.weighting}." if low != high else ".")


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


def group_by_layer_head(by_setting: Mapping[str, TextValues]) -> dict[LayerHead, TextValues]:
    """Columns by layer and head, of equal length; settings of other kinds are left out."""
    longest = max(map(len, by_setting.values()), default=0)
    placed: dict[LayerHead, TextValues] = {}
    for setting, values in by_setting.items():
        if found := SETTING.fullmatch(setting):
            missing = np.full(longest - len(values), np.nan)
            head = None if found[2] is None else int(found[2])
            placed[int(found[1]), head] = np.concatenate((values, missing))
    return placed


def estimate_layer_heads(
    records: RunRecords, columns: Mapping[LayerHead, TextValues]
) -> dict[LayerHead, Estimate]:
    names = {f"{layer} {head}": (layer, head) for layer, head in columns}
    level, seed = records.manifest.get("level", 0.95), records.manifest.get("seed", 0)
    named = {name: columns[place] for name, place in names.items()}
    found = estimate_means(named, seed=seed, level=level)
    return {names[name]: estimate for name, estimate in found.items()}


def _mean(values: TextValues | None) -> float:
    defined = np.empty(0) if values is None else values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def is_audited(audited: AuditedAttention | None, layer: int, head: int | None = None) -> bool:
    """Whether this layer, or this head of it, was chosen for the audit among others."""
    if audited is None or audited.layer != layer:
        return False
    return head is None or audited.head == head
