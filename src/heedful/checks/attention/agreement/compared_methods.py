"""Whether methods agree with each other, before attention is compared with any of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

from heedful.core.records import Estimate
from heedful.results.document import format_estimate
from heedful.results.run_records import RunRecords, sanitise_text

KINDS = ("attention", "sensitivity", "saliency", "control")
YARDSTICK = "leave_one_out"
COVERED = 0.95  # of the texts: a method that ranks only short ones is listed apart


@dataclass(frozen=True, slots=True)
class ComparedMethod:
    """A method: its name, its kind, the longest text it takes and how many texts it ranked."""

    name: str
    kind: str
    at_most: str
    texts: int


@dataclass(frozen=True, slots=True)
class MethodPair:
    """Two methods: how alike they rank, and how many of their top words they share."""

    one: str
    other: str
    tau: Estimate
    overlap: Estimate


@dataclass(frozen=True, slots=True)
class MethodAgreement:
    """All methods by kind, their pairs, and a sentence on whether the references agree.

    `refused` ranked no text, `top` is how many top words are compared where that is known.
    """

    methods: tuple[ComparedMethod, ...]
    pairs: tuple[MethodPair, ...]
    refused: tuple[str, ...]
    sentence: str
    top: int | None
    level: float

    @property
    def few(self) -> dict[str, ComparedMethod]:
        """The methods that ranked clearly fewer texts than others."""
        most = max((one.texts for one in self.methods), default=0)
        return {one.name: one for one in self.methods if one.texts < COVERED * most}

    def with_yardstick(self) -> dict[str, Estimate]:
        """Each method's τ with leave-one-out, the nearest first; of those that rank most texts."""
        found = {
            other: pair.tau
            for pair in self.pairs
            for one, other in ((pair.one, pair.other), (pair.other, pair.one))
            if one == YARDSTICK and other not in self.few
        }
        return dict(sorted(found.items(), key=lambda item: -item[1].value))


def build_method_agreement(records: RunRecords) -> MethodAgreement | None:
    """How the methods of a run agree; None where no further methods were requested."""
    taus = _pairs(records, "tau_pair")
    if not taus:
        return None
    overlaps = _pairs(records, "overlap_pair")
    texts: dict[str, int] = {}
    for names, tau in taus.items():
        for name in names:
            texts[name] = max(texts.get(name, 0), tau.n)
    described = records.manifest.get("methods", {})
    top = records.setting("agreement", "top")
    compared = [
        ComparedMethod(sanitise_text(name), *_described(described, name), texts=n)
        for name, n in texts.items()
        if n
    ]
    pairs = [
        MethodPair(sanitise_text(one), sanitise_text(other), tau, overlaps[one, other])
        for (one, other), tau in taus.items()
        if texts[one] and texts[other] and (one, other) in overlaps
    ]
    return MethodAgreement(
        methods=tuple(sorted(compared, key=_by_kind)),
        pairs=tuple(pairs),
        refused=tuple(sanitise_text(name) for name, n in texts.items() if not n),
        sentence=_sentence(records),
        top=top if isinstance(top, int) else None,
        level=records.manifest.get("level", 0.95),
    )


def _pairs(records: RunRecords, measure: str) -> dict[tuple[str, str], Estimate]:
    result = records.verdict.checks.get("agreement")
    rows = result.rows(measure) if result else []
    return {(str(row.method), str(row.setting)): row.estimate for row in rows}


def _described(known: Mapping[str, Mapping[str, str]], name: str) -> tuple[str, str]:
    own = known.get(name, {})
    return sanitise_text(str(own.get("kind", ""))), sanitise_text(str(own.get("at_most", "")))


def _by_kind(one: ComparedMethod) -> int:
    """Kinds in their order, unknown ones last; within a kind methods stay as registered."""
    return KINDS.index(one.kind) if one.kind in KINDS else len(KINDS)


def _sentence(records: RunRecords) -> str:
    """Whether the references are near enough to each other to say anything of attention."""
    result = records.verdict.checks["agreement"]
    among, attention, gap = (
        result.of(name) for name in ("tau_references", "tau_attention_references", "references_gap")
    )
    if isnan(among.value) or isnan(attention.value):
        return "No text has words that differ, so nothing can be ranked."
    return (
        "Methods that erase words and methods that follow gradients agree with each other at τ "
        f"{format_estimate(among)}; attention agrees with them at τ {format_estimate(attention)}. "
        f"{_meaning(among, gap)}"
    )


def _meaning(among: Estimate, gap: Estimate) -> str:
    if isnan(among.low) or isnan(gap.low):
        return "Too few texts to say more."
    if among.low <= 0:
        return (
            "These references do not agree with each other beyond chance, so agreement with them "
            "proves nothing about attention, and neither does disagreement."
        )
    if gap.low > 0:
        return (
            "They are nearer to each other than attention is to them, by "
            f"{format_estimate(gap)}: attention is the outlier."
        )
    return (
        "They are no nearer to each other than attention is to them (difference "
        f"{format_estimate(gap)}). Where references differ this much, low agreement with attention "
        "proves little, and so does a verdict that supports it."
    )


def describe_nearest(methods: MethodAgreement, most: int = 3) -> str:
    """The methods that rank most as leave-one-out does, in words."""
    taus = methods.with_yardstick()
    some = [f"{name} {format_estimate(tau)}" for name, tau in list(taus.items())[:most]]
    return f"Nearest to leave-one-out, τ: {', '.join(some)}." if some else ""


def describe_length_limits(methods: MethodAgreement) -> str:
    """Which methods ranked only some of the texts, and why."""
    some = [
        f"{one.name} {one.texts}" + (f" (those of at most {one.at_most})" if one.at_most else "")
        for one in methods.few.values()
    ]
    return f"Ranked fewer texts: {', '.join(some)}." if some else ""
