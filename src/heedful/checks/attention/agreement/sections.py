"""The sections of `agreement`: methods against methods, layers and heads."""

from collections.abc import Iterator, Mapping
from math import isnan

from heedful.checks.attention.agreement.figures import (
    COVERED,
    PairEstimates,
    pair_estimates,
    texts_by_method,
)
from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import Cell, Section, Table, format_estimate, note_texts
from heedful.results.run_records import RunRecords, sanitise_text

LayerEstimates = Mapping[tuple[int, int | None], Estimate]
COLUMNS = {
    ("agreement", "tau_leave_one_out"): "τ with leave-one-out",
    ("agreement", "word_mass"): "share of weight on words",
    ("mechanism", "tau_weighting"): "τ of weights and contributions",
    ("mechanism", "tau_unrolled"): "τ of contributions and leave-one-out",
    ("mechanism", "tau_mixing"): "τ traced to the words",
}
YARDSTICK = "leave_one_out"
NEAREST = 3  # methods that are named
KINDS = (
    "Kinds: attention, where the model looks; sensitivity, how fast the output moves with a word's "
    "vector; saliency, what the word adds to the output; control, nothing. Methods of one kind can "
    "agree because they share their arithmetic: occlusion and leave-one-out both take a word away, "
    "lime, kernel_shap and shapley hide many."
)


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """Methods against methods where several ran, layers and heads where the model has them."""
    sections = (_build_methods_section(records), _build_layers_section(records))
    return tuple(one for one in sections if one is not None)


def _build_methods_section(records: RunRecords) -> Section | None:
    """Sentences, figures and a table of pairs; None where no further methods were requested."""
    result = records.verdict.checks["agreement"]
    taus, overlaps = (pair_estimates(result, measure) for measure in ("tau_pair", "overlap_pair"))
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


def _describe_methods(records: RunRecords, taus: PairEstimates) -> Iterator[str]:
    """Which methods are nearest to leave-one-out, and which ranked only some texts, or none."""
    texts = texts_by_method(taus)
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


def _build_layers_section(records: RunRecords) -> Section | None:
    checks = records.verdict.checks
    taus = checks["agreement"].by_layer("tau_leave_one_out")
    if not any(head is None for _, head in taus):
        return None
    columns = {
        words: checks[check].by_layer(measure)
        for (check, measure), words in COLUMNS.items()
        if check in checks and checks[check].by_layer(measure)
    }
    table = _tabulate_layers(records, columns)
    return Section(
        "layers",
        "Layers and heads",
        words=tuple(describe_layers(records)),
        parts=tuple(_heads_part(records, taus)),
        folded=(Section("layers-numbers", "The numbers by layer", tables=(table,)),),
        figure_names=("layers_tau_leave_one_out", "layers_word_mass", "layers_mechanism"),
        short="Layers",
    )


def describe_layers(records: RunRecords) -> list[str]:
    """Where agreement is highest and lowest, where the audit looked, and how many heads agree."""
    checks = records.verdict.checks
    taus = checks["agreement"].by_layer("tau_leave_one_out")
    known = {n: tau for (n, head), tau in taus.items() if head is None and not isnan(tau.value)}
    if not known:
        return ["No layer has a τ with leave-one-out on this data."]
    ends, audited = _ends(known), read_audited_attention(records.manifest)
    named = dict(zip(ends, ("Highest in layer", "lowest in layer"), strict=False))
    named |= {n: "in the audited layer" for n in known if n not in ends and is_audited(audited, n)}
    found = (f"{words} {n}, τ {format_estimate(known[n])}" for n, words in named.items())
    sentences = [f"{'; '.join(found)}.", *_count_heads(records, taus)]
    if "mechanism" in checks:
        traced = checks["mechanism"].by_layer("tau_weighting")
        weights = {n: tau for (n, _), tau in traced.items() if not isnan(tau.value)}
        sentences += _describe_traced(weights)
    return sentences


def _ends(layers: Mapping[int, Estimate]) -> list[int]:
    """The layer with the highest value and the one with the lowest, once if they are the same."""
    values = sorted(layers, key=lambda layer: layers[layer].value)
    return list(dict.fromkeys((values[-1], values[0])))


def _count_heads(records: RunRecords, taus: LayerEstimates) -> list[str]:
    heads = [tau for (_, head), tau in taus.items() if head is not None and not isnan(tau.value)]
    if not heads:
        return []
    above = sum(tau.low > 0 for tau in heads)
    below = sum(tau.high < 0 for tau in heads)
    chance = len(heads) * (1 - records.level) / 2
    return [
        f"Of {len(heads)} heads, {above} have their whole interval above 0 and {below} below; "
        f"by chance alone about {chance:.2g} would on either side."
    ]


def _describe_traced(weights: Mapping[int, Estimate]) -> list[str]:
    if not weights:
        return []
    named = dict(zip(_ends(weights), ("", "least "), strict=False))
    found = (f"{words}in layer {n}, τ {format_estimate(weights[n])}" for n, words in named.items())
    return [f"Weights agree most with what tokens contribute to their layer {', '.join(found)}."]


def _tabulate_layers(records: RunRecords, columns: Mapping[str, LayerEstimates]) -> Table:
    """A row for each layer, heads averaged."""
    layers = sorted({n for column in columns.values() for n, head in column if head is None})
    rows: list[tuple[str | Cell, ...]] = []
    for layer in layers:
        found = [column.get((layer, None), NO_ESTIMATE) for column in columns.values()]
        n = max(one.n for one in found)
        cells = (Cell(estimate=one, note=note_texts(one, n)) for one in found)
        rows.append((_name(records, layer), *cells, str(n)))
    return Table(("layer", *columns, "n"), tuple(rows))


def _heads_part(records: RunRecords, taus: LayerEstimates) -> list[Section]:
    """A coloured cell for each head, a row for each layer; nothing where no head has a τ."""
    heads = sorted((layer, head) for layer, head in taus if head is not None)
    known = [abs(taus[place].value) for place in heads if not isnan(taus[place].value)]
    if not known:
        return []
    strongest = max(known) or 1.0
    audited = read_audited_attention(records.manifest)
    rows: dict[int, list[str | Cell]] = {}
    for layer, head in heads:
        tau = taus[layer, head]
        cell = Cell(
            estimate=tau,
            heat=tau.value / strongest,
            strong=is_audited(audited, layer, head),
            note=f"layer {layer}, head {head}",
        )
        rows.setdefault(layer, [_name(records, layer)]).append(cell)
    words = (
        "Mean Kendall's τ with leave-one-out of each head's weights at the position under audit, a "
        "column for each head. Blue is above 0, orange below; the deepest colour is "
        f"{strongest:.2f}. Point at a cell for its interval."
    )
    names = ("head", *map(str, range(max(map(len, rows.values())) - 1)))
    table = Table(names, tuple(map(tuple, rows.values())))
    return [Section("layers_heads", "Agreement by head", words=(words,), tables=(table,))]


def _name(records: RunRecords, layer: int) -> Cell:
    audited = is_audited(read_audited_attention(records.manifest), layer)
    return Cell(f"layer {layer}", answer="under audit" if audited else "")
