"""The sections of `agreement`: whether methods agree with each other, and layers and heads."""

from heedful.checks.attention.agreement.compared_methods import (
    MethodAgreement,
    build_method_agreement,
    describe_length_limits,
    describe_nearest,
)
from heedful.checks.attention.agreement.layers import (
    TRACED,
    LayerAgreement,
    Layers,
    build_layers,
    summarise_layers,
)
from heedful.results.document import Cell, Section, Table
from heedful.results.run_records import RunRecords

KINDS = (
    "Kinds: attention, where the model looks; sensitivity, how fast the output moves with a word's "
    "vector; saliency, what the word adds to the output; control, nothing. Methods of one kind can "
    "agree because they share their arithmetic: occlusion and leave-one-out both take a word away, "
    "lime, kernel_shap and shapley hide many."
)
LAYER_HEAD = ("layer", "τ with leave-one-out", "n", "share of weight on words", "n")
TRACED_HEAD = (
    "τ of weights and contributions",
    "τ of contributions and leave-one-out",
    "τ traced to the words",
    "n",
)


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """Methods against methods where several ran, layers and heads where the model has them."""
    methods, layers = build_method_agreement(records), build_layers(records)
    return (
        *([_methods_section(methods)] if methods else []),
        *([_layers_section(layers)] if layers else []),
    )


def _methods_section(methods: MethodAgreement) -> Section:
    refused = f"No ranking from {', '.join(methods.refused)}." if methods.refused else ""
    words = (methods.sentence, describe_nearest(methods), describe_length_limits(methods), refused)
    pairs = Section("methods-pairs", "Every pair with its interval", tables=(_pairs(methods),))
    return Section(
        "methods",
        "Do the methods agree with each other?",
        words=(*filter(None, words), KINDS),
        folded=(pairs,),
        figure_names=("methods_tau", "methods_overlap"),
        short="Methods",
    )


def _pairs(methods: MethodAgreement) -> Table:
    rows = tuple(
        (
            f"{pair.one} and {pair.other}",
            Cell(estimate=pair.tau, span=(-1.0, 1.0)),
            Cell(estimate=pair.overlap, span=(0.0, 1.0)),
            str(pair.tau.n),
        )
        for pair in methods.pairs
    )
    return Table(("methods", "Kendall's τ", "shared top words", "n"), rows)


def _layers_section(layers: Layers) -> Section:
    numbers = Section("layers-numbers", "The numbers by layer", tables=(_numbers(layers),))
    return Section(
        "layers",
        "Layers and heads",
        words=(summarise_layers(layers),),
        parts=(_heads_section(layers),) if layers.heads else (),
        folded=(numbers,),
        figure_names=("layers_tau_leave_one_out", "layers_word_mass", "layers_mechanism"),
        short="Layers",
    )


def _numbers(layers: Layers) -> Table:
    return Table(
        LAYER_HEAD + (TRACED_HEAD if layers.traced else ()),
        tuple(
            (
                _name(layer),
                Cell(estimate=layer.tau),
                str(layer.tau.n),
                Cell(estimate=layer.mass),
                str(layer.mass.n),
                *(_traced(layer) if layers.traced else ()),
            )
            for layer in layers.layers
        ),
    )


def _traced(layer: LayerAgreement) -> tuple[str | Cell, ...]:
    return (*(Cell(estimate=getattr(layer, name)) for name in TRACED), str(layer.mixing.n))


def _heads_section(layers: Layers) -> Section:
    """A coloured cell for each head, a row for each layer."""
    most = max(len(layer.heads) for layer in layers.layers)
    rows = tuple(
        (
            _name(layer),
            *(
                Cell(
                    estimate=head.tau,
                    heat=head.tau.value / layers.strongest,
                    strong=head.audited,
                    note=f"layer {layer.number}, head {head.number}",
                )
                for head in layer.heads
            ),
        )
        for layer in layers.layers
    )
    words = (
        "Mean Kendall's τ with leave-one-out of each head's weights at the position under audit, a "
        "column for each head. Blue is above 0, orange below; the deepest colour is "
        f"{layers.strongest:.2f}. Point at a cell for its interval."
    )
    table = Table(("head", *map(str, range(most))), rows)
    return Section("layers-heads", "Agreement by head", words=(words,), tables=(table,))


def _name(layer: LayerAgreement) -> Cell:
    return Cell(f"layer {layer.number}", answer="under audit" if layer.audited else "")
