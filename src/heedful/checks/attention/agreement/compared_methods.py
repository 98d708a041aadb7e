"""Whether methods agree with each other, before attention is compared with any of them."""

from collections.abc import Iterator, Mapping
from itertools import chain
from math import isnan

from heedful.core.records import CheckResult, Estimate
from heedful.results.document import Cell, Section, Table, format_estimate
from heedful.results.run_records import RunRecords, sanitise_text

PairEstimates = Mapping[tuple[str, str], Estimate]
YARDSTICK = "leave_one_out"
COVERED = 0.95  # of the texts: a method that ranks only short ones is listed separately
NEAREST = 3  # methods that are named
KINDS = (
    "Kinds: attention, where the model looks; sensitivity, how fast the output moves with a word's "
    "vector; saliency, what the word adds to the output; control, nothing. Methods of one kind can "
    "agree because they share their arithmetic: occlusion and leave-one-out both take a word away, "
    "lime, kernel_shap and shapley hide many."
)


def build_methods_section(records: RunRecords) -> Section | None:
    """Sentences, figures and a table of pairs; None where no further methods were requested."""
    result = records.verdict.checks["agreement"]
    taus, overlaps = (_pairs(result, measure) for measure in ("tau_pair", "overlap_pair"))
    if not taus:
        return None
    rows = tuple(
        (
            f"{sanitise_text(one)} and {sanitise_text(other)}",
            Cell(estimate=tau, span=(-1.0, 1.0)),
            Cell(estimate=overlaps[one, other], span=(0.0, 1.0)),
            str(tau.n),
        )
        for (one, other), tau in taus.items()
        if (one, other) in overlaps and tau.n
    )
    table = Table(("methods", "Kendall's τ", "shared top words", "n"), rows)
    return Section(
        "methods",
        "Do the methods agree with each other?",
        words=(compare_references(result), *_describe_methods(records, taus), KINDS),
        folded=(Section("methods-pairs", "Every pair with its interval", tables=(table,)),),
        figure_names=("methods_tau", "methods_overlap"),
        short="Methods",
    )


def _pairs(result: CheckResult, measure: str) -> PairEstimates:
    return {(str(row.method), str(row.setting)): row.estimate for row in result.rows(measure)}


def _describe_methods(records: RunRecords, taus: PairEstimates) -> Iterator[str]:
    """Which methods are nearest to leave-one-out, and which ranked only some texts, or none."""
    texts = {
        name: max(tau.n for pair, tau in taus.items() if name in pair)
        for name in chain.from_iterable(taus)
    }
    few = {name: n for name, n in texts.items() if n < COVERED * max(texts.values())}
    nearest = {
        other: tau
        for pair, tau in taus.items()
        for one, other in (pair, pair[::-1])
        if one == YARDSTICK and other not in few
    }
    found = sorted(nearest.items(), key=lambda item: -item[1].value)[:NEAREST]
    if found:
        named = (f"{name} {format_estimate(tau)}" for name, tau in found)
        yield sanitise_text(f"Nearest to leave-one-out, τ: {', '.join(named)}.")
    if some := [f"{name} {n}{_limit(records, name)}" for name, n in few.items() if n]:
        yield sanitise_text(f"Ranked fewer texts: {', '.join(some)}.")
    if refused := [name for name, n in texts.items() if not n]:
        yield sanitise_text(f"No ranking from {', '.join(refused)}.")


def _limit(records: RunRecords, method: str) -> str:
    """The longest text that a method takes, where it has such a limit."""
    at_most = records.manifest.get("methods", {}).get(method, {}).get("at_most")
    return f" (those of at most {at_most})" if at_most else ""


def compare_references(result: CheckResult) -> str:
    """Whether the references are near enough to each other to say anything about attention."""
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
