"""What `deception` asks, measures and concludes."""

from heedful.checks.retraining.deception.figures import build_figures
from heedful.checks.retraining.deception.sections import build_sections
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
    not_run,
)
from heedful.core.records import Estimate

NAME = "deception"
LEFT = 0.1  # words are hidden where their mass falls below this share of what it was


def _of(e: Evidence, measure: str) -> Estimate:
    return e.of(NAME, measure)


def _margin(e: Evidence) -> float:
    return float(e.setting(NAME, "margin"))


def _lost(e: Evidence) -> Estimate:
    return _of(e, "score_lost")


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
    sections=build_sections,
)
