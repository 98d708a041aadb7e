"""What `seeds` asks, measures and concludes."""

from heedful.checks.retraining.seeds.figures import build_figures
from heedful.checks.retraining.seeds.sections import build_sections
from heedful.checks.spec import (
    JSD,
    JSD_DIFFERENCE,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    PlaceSpec,
    VoteRule,
    always,
    not_run,
)
from heedful.core.records import Estimate, Series

NAME = "seeds"
FLAT = 0.01  # nats: weights that shuffling moves no farther are nearly equal


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
        "undecided",
        lambda e: _place(e).n < 2,
        lambda _: "One text does not show how texts vary.",
    ),
    VoteRule(
        "undecided",
        lambda e: not e.place(NAME).gap.low > FLAT,
        lambda _: (
            "This attention is so flat that shuffling hardly changes it: there is no distance to "
            "compare other seeds with."
        ),
    ),
    VoteRule(
        "supports", lambda e: _place(e).high < e.halfway, lambda e: f"{_distance(e)}: a little."
    ),
    VoteRule("refutes", lambda e: _place(e).low > e.halfway, lambda e: f"{_distance(e)}: far."),
    VoteRule("undecided", always, lambda e: f"{_distance(e)}: the interval contains the middle."),
)

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
    votes=(ClaimVote("robust", "seeds", _place, lambda e: e.halfway, RULES, falls=True),),
    place=PlaceSpec(Series("jsd_seeds"), None, Series("jsd_shuffled")),
    quick={"seeds": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={"jsd_seeds": "median"},
    differences={"jsd_adversary_beyond_seeds": (Series("jsd_adversary"), Series("jsd_seeds"))},
    figures=build_figures,
    sections=build_sections,
)
