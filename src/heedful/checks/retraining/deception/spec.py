"""What `deception` asks, measures, concludes and shows."""

from collections.abc import Iterator
from math import isnan

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    weight_rows,
)
from heedful.checks.spec import (
    GAIN,
    HALFWAY,
    RANK,
    CheckSpec,
    ClaimVote,
    Evidence,
    Measure,
    VoteRule,
    always,
    estimate_of,
    not_run,
    setting_of,
)
from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import FigureData, FigurePanel, FigureRow, Table, format_estimate
from heedful.results.figure_data import (
    drop_empty,
    ends,
    interval_row,
    reference_lines,
    rounded_span,
    weight_order,
)
from heedful.results.run_records import RunRecords, sanitise_text

NAME = "deception"
LEFT = 0.1  # words are hidden where their mass falls below this share of what it was
MASS, SCORE = "share of attention on the hidden words", "accuracy"
WITHOUT = "without "  # the name of the control begins with it
BLOCKED = (
    "Hidden words and others attended to their own kind only, in every layer, and the pooled token "
    "to all: what its row does not take up cannot come by another way."
)
UNBLOCKED = (
    "Hidden words were not blocked: other words may carry what they say to the pooled token."
)
_lost, _margin = estimate_of(NAME, "score_lost"), setting_of(NAME, "margin")


def _of(e: Evidence, measure: str) -> Estimate:
    return e.of(NAME, measure)


def _hides(e: Evidence) -> bool:
    return _of(e, "mass_after").high < LEFT * _of(e, "mass_before").low


def _cannot_hide(e: Evidence) -> bool:
    """Whether hiding costs more than the margin, or more than half of the mass stays."""
    stays = _of(e, "mass_after").low > HALFWAY * _of(e, "mass_before").high
    return _lost(e).low > _margin(e) or stays


def _result(e: Evidence) -> str:
    return (
        f"the hidden words' share of attention changes from {_of(e, 'mass_before').value:.3f} to "
        f"{_of(e, 'mass_after')}, and accuracy falls by {_lost(e)}"
    )


RULES = (
    not_run(NAME),
    VoteRule(
        "undecided",
        lambda e: not _of(e, "words_worth").low > _margin(e),
        lambda e: (
            f"Without the words to hide a model loses only {_of(e, 'words_worth')} of accuracy: "
            "they are not decisive, so hiding them shows nothing."
        ),
    ),
    VoteRule(
        "refutes",
        lambda e: _hides(e) and _lost(e).high < _margin(e),
        lambda e: f"Attention can be trained to hide decisive words: {_result(e)}.",
    ),
    VoteRule(
        "undecided",
        lambda e: _of(e, "mass_before").low <= _of(e, "hidden_share").value,
        lambda e: (
            "Attention gives the hidden words no more than their share from the start "
            f"({_of(e, 'mass_before')} for {_of(e, 'hidden_share').value:.3f} of the words): there "
            "is nothing to hide."
        ),
    ),
    VoteRule(
        "supports",
        _cannot_hide,
        lambda e: f"Attention could not be trained to hide decisive words: {_result(e)}.",
    ),
    VoteRule(
        "undecided",
        always,
        lambda e: f"Whether attention can be trained to hide words is open: {_result(e)}.",
    ),
)


def build_figures(records: RunRecords) -> list[FigureData]:
    """Mass and accuracy before and after, λ by λ."""
    result = records.verdict.checks[NAME]
    masses, scores = (
        _before_and_after(result, measure, panel)
        for measure, panel in (("mass", MASS), ("score", SCORE))
    )
    without = reference_lines({"without the words": result.of("score_without_words")})
    rules = [line | {"panel": SCORE} for line in without]
    span = rounded_span([*ends(scores), *(mark["rule"] for mark in rules)])
    panels = ((masses, FigurePanel(MASS, (0.0, 1.0))), (scores, FigurePanel(SCORE, span)))
    figure = FigureData(
        NAME,
        "intervals",
        "Trained to hide words",
        "For every λ: the share of attention on the hidden words, and accuracy, before and after "
        "training. Dashed: accuracy of a model trained without the words.",
        rows=[*masses, *scores],
        marks=rules,
        panels=[panel for rows, panel in panels if rows],
    )
    return drop_empty([figure])


def _before_and_after(result: CheckResult, measure: str, panel: str) -> list[FigureRow]:
    before = result.of(f"{measure}_before").value
    after = {
        row.setting: row.estimate
        for row in result.rows(f"{measure}_after")
        if row.setting and not isnan(row.estimate.value) and not isnan(before)
    }
    rows = list[FigureRow]()
    for weight in sorted(after, key=lambda one: (weight_order(one), one)):
        place = {"panel": panel, "group": weight}
        rows.append(interval_row(after[weight], **place, role="after", before=before))
        rows.append({**place, "role": "before", "value": before, "low": before, "high": before})
    return rows


def _section_content(records: RunRecords, result: CheckResult) -> Content:
    score = result.of("score_without_words")
    control = (
        "The control: a model trained and tested without the words reaches "
        f"{format_estimate(score)}, a loss of {format_estimate(result.of('words_worth'))}. The "
        "words are decisive only if that loses accuracy, and only then does hiding them show "
        "anything."
    )
    rows = (
        estimate_row("before", result.of("mass_before"), result.of("score_before")),
        *weight_rows(result, "mass_after", "score_after"),
        estimate_row("without the words", NO_ESTIMATE, score),
    )
    table = Table(("model", "share of attention", "accuracy"), rows)
    return (*_hidden(records), control), (table,)


def _hidden(records: RunRecords) -> Iterator[str]:
    """Which words were hidden, as the control that does without them is named, and how."""
    names = [sanitise_text(str(one.get("name"))) for one in records.manifest.get("retrained") or ()]
    for name in [name for name in names if name.startswith(WITHOUT)][:1]:
        yield f"Hidden are {name.removeprefix(WITHOUT).rsplit(', seed ', 1)[0]}."
    if read_audited_attention(records.manifest) is not None:
        yield UNBLOCKED if records.settings(NAME).get("blocked") is False else BLOCKED


SPEC = CheckSpec(
    NAME,
    "Can attention be trained to hide the decisive words?",
    (
        Measure("mass_before", "hidden words' share of attention before"),
        Measure("mass_after", "hidden words' share of attention after", "up", by=("setting",)),
        Measure("score_before", "accuracy before", role="reference"),
        Measure("score_after", "accuracy after", by=("setting",)),
        Measure("score_without_words", "accuracy, trained without the words", role="control"),
        Measure("score_lost", "accuracy lost by hiding them", "up", range=GAIN),
        Measure("words_worth", "accuracy lost without them", range=RANK),
        Measure("hidden_share", "the hidden words' share of the words", role="control"),
    ),
    "heedful.checks.retraining.deception.check:Deception",
    claim="robust",
    source="Pruthi et al., 2020",
    leading=("mass_before", "mass_after", "score_lost"),
    rules=RULES,
    votes=(ClaimVote("robust", "deception", _lost, _margin, RULES),),
    quick={"epochs": 8, "patience": 3},
    retrains=True,
    figures=build_figures,
    sections=frame_section(NAME, _section_content),
)
