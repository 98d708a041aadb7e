"""What `labels` asks and measures; it has no vote."""

from functools import partial

from heedful.checks.sanity.randomisation.spec import NO_PROOF, RANK_CORRELATION, describe_unchanged
from heedful.checks.spec import RANK, CheckSpec, Measure, defined_by_method, describe_only
from heedful.core.records import CheckResult, Series

NAME = "labels"


def describe(result: CheckResult) -> str:
    """How similar the rankings are in models trained on shuffled and on true labels."""
    shuffled = defined_by_method(result, RANK_CORRELATION)
    if not shuffled:
        return "No ranking can be compared with that of a model trained on shuffled labels."
    sentence = ""
    if "attention" in shuffled:
        sentence = (
            "Trained on shuffled labels, attention ranks words as the model's own does at ρ "
            f"{shuffled['attention']}, trained on the true labels at ρ "
            f"{result.of('with_labels', method='attention')}. "
        )
    learned = result.by_method("learned")
    same = [name for name, one in learned.items() if one.n and not one.low > 0]
    if same:
        sentence += f"No nearer to the model with the labels than without: {', '.join(same)}. "
    return f"{sentence}{describe_unchanged(shuffled, 'the labels')} {NO_PROOF}"


_rho = partial(Measure, range=RANK, by=("method", "seed"))
SPEC = CheckSpec(
    NAME,
    "Does the explanation depend on the training labels?",
    (
        _rho(
            RANK_CORRELATION,
            "{method} on the model and after shuffled labels, ρ",
            short="with labels shuffled, ρ",
        ),
        _rho(
            "with_labels", "the same after the true labels: {method}", short="with true labels, ρ"
        ),
        _rho(
            "learned", "what the labels add: {method}", by=("method",), short="what the labels add"
        ),
    ),
    "heedful.checks.sanity.labels.check:Labels",
    source="Adebayo et al., 2018",
    title="What the labels add",
    rules=describe_only(NAME, describe),
    quick={"seeds": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={RANK_CORRELATION: "mean", "with_labels": "mean"},
    differences={"learned": (Series("with_labels"), Series(RANK_CORRELATION))},
    by_default=False,
    takes_methods="always",
)
