"""What `roar` asks, measures and describes."""

from heedful.checks.retraining.roar.figures import build_figures
from heedful.checks.retraining.roar.sections import build_sections
from heedful.checks.spec import GAIN, CheckSpec, Evidence, Measure, VoteRule, always, not_run
from heedful.core.records import Series

NAME = "roar"
CAVEAT = (
    "A retrained model may use other words, and may infer from what is missing what was there: a "
    "loss shows that the words carried information, no loss does not show that this model did not "
    "use them."
)


def _describe(e: Evidence) -> str:
    """Accuracy lost without attention's top words, compared with as many random words."""
    result = e.results[NAME]
    shares = " and ".join(f"{share:.0%}" for share in e.setting(NAME, "shares"))
    beyond = result.by_method("beyond_random")
    found = (
        f"Trained and tested without {shares} of the words, models have accuracy "
        f"{result.of('score', method='random').value:.3f} where the words are random (whole texts: "
        f"{result.of('score_whole').value:.3f})"
    )
    if own := beyond.pop("attention", None):
        found += f"; where attention ranks them highest, they lose {own} more"
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        found += f"; of the other methods {best} costs most, {beyond[best]}"
    return f"{found}. {CAVEAT}"


SPEC = CheckSpec(
    NAME,
    "Does retraining without the top-ranked words hurt accuracy?",
    (
        Measure("score_whole", "accuracy, trained on whole texts", role="reference", by=("seed",)),
        Measure(
            "score",
            "accuracy, trained without the top words of {method}",
            by=("method", "seed", "setting"),
        ),
        Measure(
            "beyond_random",
            "accuracy lost beyond random removal: {method}",
            "up",
            range=GAIN,
            by=("method", "setting"),
        ),
    ),
    "heedful.checks.retraining.roar.check:Roar",
    claim="ranks",
    source="ROAR; Hooker et al., 2019",
    title="Retrained without the top-ranked words",
    leading=("beyond_random", "score", "score_whole"),
    rules=(not_run(NAME), VoteRule("no vote", always, _describe)),
    quick={"seeds": 2, "shares": 2, "epochs": 12, "patience": 3},
    retrains=True,
    over_seeds={"score_whole": "mean", "score": "mean"},
    differences={"beyond_random": (Series("score", "random"), Series("score"))},
    takes_methods="named",
    figures=build_figures,
    sections=build_sections,
)
