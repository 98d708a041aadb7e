"""The sections of `agreement`: methods against methods, layers and heads."""

from collections.abc import Mapping
from math import isnan

from heedful.checks.attention.agreement.compared_methods import build_methods_section
from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.results.audited_attention import is_audited, read_audited_attention
from heedful.results.document import Cell, Section, Table, format_estimate, note_texts
from heedful.results.run_records import RunRecords

LayerEstimates = Mapping[tuple[int, int | None], Estimate]
COLUMNS = {
    ("agreement", "tau_leave_one_out"): "τ with leave-one-out",
    ("agreement", "word_mass"): "share of weight on words",
    ("mechanism", "tau_weighting"): "τ of weights and contributions",
    ("mechanism", "tau_unrolled"): "τ of contributions and leave-one-out",
    ("mechanism", "tau_mixing"): "τ traced to the words",
}


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """Methods against methods where several ran, layers and heads where the model has them."""
    sections = (build_methods_section(records), _build_layers_section(records))
    return tuple(one for one in sections if one is not None)


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
    layers = sorted(
        {layer for column in columns.values() for layer, head in column if head is None}
    )
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
