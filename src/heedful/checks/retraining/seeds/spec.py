"""What `seeds` asks, measures, concludes and shows."""

import numpy as np

from heedful.checks.retraining.section_parts import Content, frame_section
from heedful.checks.spec import (
    JSD,
    JSD_DIFFERENCE,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    PlaceSpec,
    VoteRule,
    halfway,
    not_run,
    rules_by_interval,
)
from heedful.core.records import CheckResult, Estimate, Series
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import FigureData, FigurePanel, format_estimate
from heedful.results.figure_data import drop_empty, ends, percentile_row, rounded_span
from heedful.results.run_records import RunRecords

NAME = "seeds"
FLAT = 0.01  # nats: weights that shuffling moves no farther are nearly equal
LEAST = 0.1  # of the axis of the figure, JSD
BINS = ("0–.25", ".25–.5", ".5–.75", ".75–1")  # of the largest weight


def _place(e: Evidence) -> Estimate:
    return e.place(NAME).place


def _distance(e: Evidence) -> str:
    return (
        f"Retrained with other seeds, attention moves {_place(e)} of the way from the same weights "
        "(0) to shuffled weights (1)"
    )


RULES = (
    not_run(NAME),
    VoteRule(
        "undecided", lambda e: _place(e).n < 2, lambda _: "One text does not show how texts vary."
    ),
    VoteRule(
        "undecided",
        lambda e: not e.place(NAME).gap.low > FLAT,
        lambda _: (
            "This attention is so flat that shuffling hardly changes it: there is no distance to "
            "compare other seeds with."
        ),
    ),
    *rules_by_interval(
        _place,
        halfway,
        above=lambda e: f"{_distance(e)}: far.",
        below=lambda e: f"{_distance(e)}: a little.",
        around=lambda e: f"{_distance(e)}: the interval contains the middle.",
        falls=True,
    ),
)


def build_figures(records: RunRecords) -> list[FigureData]:
    """Distances of other seeds' attention and of the adversary's, by the largest weight."""
    weight = records.number_setting(NAME, "adversary")
    adversary = "adversary" if weight is None else f"adversary, λ {weight:g}"
    measures = {"other seeds": "jsd_seeds", adversary: "jsd_adversary"}
    sources = {name: records.column(NAME, one) for name, one in measures.items()}
    height = records.column(NAME, "max_attention")
    places = np.minimum(np.floor(height * len(BINS)), len(BINS) - 1)  # NaN has none
    panels = _panels(records)
    rows = [
        percentile_row(found, panel=panel, group=f"largest weight {group}")
        | {"class": name, "label": f"n = {len(found)}"}
        for place, group in enumerate(BINS)
        for panel, chosen in panels.items()
        for name, values in sources.items()
        if len(found := values[chosen & ~np.isnan(values) & (places == place)])
    ]
    shuffled = records.column(NAME, "jsd_shuffled")
    means = {
        panel: float(np.nanmean(shuffled[chosen]))
        for panel, chosen in panels.items()
        if not np.isnan(shuffled[chosen]).all()
    }
    span = rounded_span([0.0, LEAST, *ends(rows), *means.values()], 0.1)
    figure = FigureData(
        NAME,
        "intervals",
        "Attention from seed to seed",
        "Distance from the audited attention, by its largest weight. Dots: medians over texts; "
        "boxes: middle half; lines: 10 to 90 %. Dashed: its own weights shuffled, on average.",
        rows=rows,
        marks=[{"panel": one, "rule": mean, "label": "shuffled"} for one, mean in means.items()],
        panels=[FigurePanel(panel, span) for panel in panels],
    )
    return drop_empty([figure])


def _panels(records: RunRecords) -> dict[str, np.ndarray]:
    """The texts of either class where there are two, else all of them."""
    predicted, names = np.array(records.predicted, dtype=object), sorted(set(records.predicted))
    if len(names) != 2:
        return {"distance of attention (JSD)": np.ones(len(predicted), dtype=bool)}
    return {f"JSD, texts predicted {name}": predicted == name for name in names}


SHARED = (
    "These models were fine-tuned from one pretrained encoder. Models that share their pretraining "
    "share much of their attention: the spread from seed to seed is understated."
)


def _section_content(records: RunRecords, result: CheckResult) -> Content:
    seeds, shuffled, uniform, adversary = (
        format_estimate(result.of(f"jsd_{name}"))
        for name in ("seeds", "shuffled", "uniform", "adversary")
    )
    distances = (
        "Distances are between the attention of the audited model and that of models trained with "
        f"other seeds, each text's median over seeds: {seeds} on average. The distance of its own "
        f"weights shuffled is {shuffled}, of uniform weights {uniform}, of an adversary's "
        f"{adversary}."
    )
    tuned = read_audited_attention(records.manifest) is not None
    return (distances, SHARED if tuned else ""), ()


SPEC = CheckSpec(
    NAME,
    "How much does attention vary with the seed?",
    (
        Measure(
            "jsd_seeds", "distance of other seeds' attention, JSD", "down", range=JSD, by=("seed",)
        ),
        Measure(
            "jsd_adversary_beyond_seeds",
            "how much farther an adversary gets",
            "up",
            range=JSD_DIFFERENCE,
        ),
        Measure("jsd_adversary", "distance of the adversary, JSD", role="reference", range=JSD),
        Measure("jsd_shuffled", "distance of shuffled weights, JSD", role="control", range=JSD),
        Measure("jsd_uniform", "distance of uniform weights, JSD", role="control", range=JSD),
        Measure("max_attention", "largest weight", averaged=False),
        Measure("tvd_seeds", "change of output from seed to seed", averaged=False),
    ),
    "heedful.checks.retraining.seeds.check:Seeds",
    claim="robust",
    source="Wiegreffe & Pinter, 2019, section 3.3",
    leading=("jsd_seeds", "jsd_shuffled"),
    rules=RULES,
    votes=(ClaimVote("robust", "seeds", _place, halfway, RULES, falls=True),),
    place=PlaceSpec(Series("jsd_seeds"), None, Series("jsd_shuffled")),
    quick={"seeds": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={"jsd_seeds": "median"},
    differences={"jsd_adversary_beyond_seeds": (Series("jsd_adversary"), Series("jsd_seeds"))},
    figures=build_figures,
    sections=frame_section(NAME, _section_content),
)
