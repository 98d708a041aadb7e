"""What `roar` asks, measures, describes and shows."""

from functools import partial

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    method_rows,
)
from heedful.checks.spec import GAIN, CheckSpec, Evidence, Measure, VoteRule, always, not_run
from heedful.core.records import NO_ESTIMATE, CheckResult, Series
from heedful.results.document import FigureData, Table
from heedful.results.figure_data import (
    drop_empty,
    ends,
    interval_rows,
    reference_lines,
    rounded_span,
)
from heedful.results.run_records import RunRecords

NAME = "roar"
SHARE = "share "  # the settings of a share begin with it
PATTERN = (
    "Models are trained on such texts, so the remaining words are not off their distribution. But "
    "a retrained model may find other cues, and a gap may itself reveal what was removed."
)
CAVEAT = (
    "A retrained model may use other words, and may infer from what is missing what was there: a "
    "loss shows that the words carried information, no loss does not show that this model did not "
    "use them."
)
_by_share = partial(Measure, by=("method", "setting"))


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


def build_figures(records: RunRecords) -> list[FigureData]:
    """Accuracy by the share of words removed, for each method and the control."""
    result = records.verdict.checks[NAME]
    rows = interval_rows(
        (row.estimate, {"class": str(row.method), "x": float(row.setting.removeprefix(SHARE))})
        for row in result.rows("score")
        if row.setting and row.setting.startswith(SHARE) and row.seed is None
    )
    rows.sort(key=lambda row: (row["class"], row["x"]))
    whole = reference_lines({"whole texts": result.of("score_whole")})
    figure = FigureData(
        NAME,
        "lines",
        "Retrained without the top-ranked words",
        "Accuracy of models retrained without the words that a method ranks highest, with "
        "intervals over seeds and texts. Below random: the removed words carried more than random "
        "words do. Dashed: models trained on whole texts.",
        x="share of the words removed",
        span=(0.0, min(1.0, max((row["x"] for row in rows), default=0.0) + 0.1)),
        rows=rows,
        marks=whole,
        y="accuracy",
        y_span=rounded_span([*ends(rows), *(mark["rule"] for mark in whole)], 0.1),
    )
    return drop_empty([figure])


def _section_content(_: RunRecords, result: CheckResult) -> Content:
    whole = estimate_row("none: whole texts", result.of("score_whole"), NO_ESTIMATE)
    rows = (whole, *method_rows(result, "score", "beyond_random"))
    return (PATTERN,), (Table(("words removed by", "accuracy", "lost beyond random"), rows),)


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
        _by_share(
            "beyond_random", "accuracy lost beyond random removal: {method}", "up", range=GAIN
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
    sections=frame_section(NAME, _section_content),
)
