"""Rules of the checks that have models made anew."""

from collections.abc import Mapping
from typing import Any

from heedful.core.records import Estimate
from heedful.pipeline.verdict.evidence import HALFWAY, Evidence, VoteRule, not_run_rule
from heedful.pipeline.verdict.sentences.faithfulness import describe_masked_copy
from heedful.pipeline.verdict.sentences.roar import describe_roar

ALPHA = 0.05  # of each of the two one-sided tests
FLAT = 0.01  # nats: weights that shuffling moves no farther are as good as equal
LEFT = 0.1  # a mass that is brought below this share of what it was is hidden


def _setting(e: Evidence, check: str, name: str) -> Any:
    return getattr(e.checks[check], name)


def _gain(e: Evidence) -> Estimate:
    return e.of("necessity", "gain")


def _margin(e: Evidence) -> float:
    return float(_setting(e, "necessity", "margin"))


def _scores(e: Evidence) -> str:
    return (
        f"accuracy {e.of('necessity', 'score_trained').value:.3f} with learned and "
        f"{e.of('necessity', 'score_uniform').value:.3f} with uniform attention"
    )


def _swap(e: Evidence) -> Estimate:
    return e.of("necessity", "uniform_swap_tvd")


def _drift(e: Evidence) -> Estimate:
    assert e.drift is not None  # noqa: S101 - seeds was examined, or its rules would not run
    return e.drift.place


def _gap(e: Evidence) -> Estimate:
    assert e.drift is not None  # noqa: S101 - as above
    return e.drift.gap


def _apart(e: Evidence) -> str:
    return (
        f"retrained with other seeds, attention moves {_drift(e)} of the way from the same "
        "weights (0) to the weights shuffled (1)"
    )


def _deceived(e: Evidence) -> str:
    before, after = e.of("deception", "mass_before"), e.of("deception", "mass_after")
    return (
        f"the hidden words' share of attention goes from {before.value:.3f} to {after}, and the "
        f"score loses {e.of('deception', 'score_lost')}"
    )


def _hides(e: Evidence) -> bool:
    before, after = e.of("deception", "mass_before"), e.of("deception", "mass_after")
    return after.high < LEFT * before.low


def _kept(e: Evidence) -> bool:
    return e.of("deception", "score_lost").high < float(_setting(e, "deception", "margin"))


def _lost(e: Evidence) -> bool:
    return e.of("deception", "score_lost").low > float(_setting(e, "deception", "margin"))


def _needed_words(e: Evidence) -> bool:
    return e.of("deception", "words_worth").low > float(_setting(e, "deception", "margin"))


def _adversary(e: Evidence) -> str:
    found = {name: e.of("adversary", name) for name in e.checks["adversary"].measures}
    return (
        f"A model trained to attend elsewhere gets {found['jsd']} away in JSD with outputs "
        f"{found['tvd']} apart and accuracy {found['score'].value:.3f} (the model: "
        f"{found['score_base'].value:.3f}); one merely trained with another seed gets "
        f"{found['jsd_another_seed']} away with outputs {found['tvd_another_seed']} apart."
    )


def _guide(e: Evidence) -> str:
    scores = {
        one: e.of("guide", f"score_{one}").value for one in ("uniform", "own", "base", "adversary")
    }
    return (
        f"A model without context reaches {scores['base']:.3f} when led by this attention, "
        f"{scores['uniform']:.3f} by uniform weights (difference "
        f"{e.of('guide', 'base_minus_uniform')}), {scores['own']:.3f} by its own and "
        f"{scores['adversary']:.3f} by an adversary's. This tells where texts say what they say, "
        "not what this model's output depends on."
    )


RETRAINING_RULES: Mapping[str, tuple[VoteRule, ...]] = {
    "necessity": (
        not_run_rule("necessity"),
        VoteRule(
            "undecided",
            lambda e: (
                e.of("necessity", "score_trained").high
                < e.of("necessity", "score_base").value - _margin(e)
            ),
            lambda e: (
                "The models made anew are not the model's like: accuracy "
                f"{e.of('necessity', 'score_trained')} where the model itself has "
                f"{e.of('necessity', 'score_base').value:.3f}. More training texts or epochs are "
                "needed before attention can be."
            ),
        ),
        VoteRule(
            "against",
            lambda e: e.of("necessity", "p_not_worse").value < ALPHA,
            lambda e: (
                f"Trained with uniform attention the model does as well: {_scores(e)}, a gain of "
                f"{_gain(e)} that stays below {_margin(e):g} (p "
                f"{e.of('necessity', 'p_not_worse').value:.2g})."
            ),
        ),
        VoteRule(
            "for",
            lambda e: _gain(e).low > _margin(e),
            lambda e: (
                f"Trained with uniform attention the model does worse: {_scores(e)}, a gain of "
                f"{_gain(e)}, more than {_margin(e):g}."
            ),
        ),
        VoteRule(
            "undecided",
            lambda e: _gain(e).low > 0,
            lambda e: (
                f"Learned attention helps ({_scores(e)}, a gain of {_gain(e)}), but these texts do "
                f"not settle whether by more than {_margin(e):g}."
            ),
        ),
        VoteRule(
            "undecided",
            lambda _: True,
            lambda e: (
                f"These texts and seeds do not settle whether learned attention helps by more than "
                f"{_margin(e):g}: {_scores(e)}, a gain of {_gain(e)}."
            ),
        ),
    ),
    "seeds": (
        not_run_rule("seeds"),
        VoteRule(
            "undecided",
            lambda e: e.drift is None or e.drift.place.n < 2,
            lambda _: "One text says nothing of how others vary.",
        ),
        VoteRule(
            "undecided",
            lambda e: not _gap(e).low > FLAT,
            lambda _: (
                "Shuffling moves this attention no distance, so flat is it: there is nothing to "
                "hold other seeds against."
            ),
        ),
        VoteRule("for", lambda e: _drift(e).high < e.halfway, lambda e: f"{_apart(e)}: little."),
        VoteRule("against", lambda e: _drift(e).low > e.halfway, lambda e: f"{_apart(e)}: far."),
        VoteRule(
            "undecided", lambda _: True, lambda e: f"{_apart(e)}: the interval holds the middle."
        ),
    ),
    "deception": (
        not_run_rule("deception"),
        VoteRule(
            "undecided",
            lambda e: not _needed_words(e),
            lambda e: (
                "Without the words that were to be hidden a model loses "
                f"{e.of('deception', 'words_worth')} only: they were not decisive, so hiding them "
                "shows nothing."
            ),
        ),
        VoteRule(
            "against",
            lambda e: _hides(e) and _kept(e),
            lambda e: f"Attention can be taught to hide decisive words: {_deceived(e)}.",
        ),
        VoteRule(
            "undecided",
            lambda e: (
                e.of("deception", "mass_before").low <= e.of("deception", "hidden_share").value
            ),
            lambda e: (
                "Attention gave the hidden words no more than their share from the start "
                f"({e.of('deception', 'mass_before')} for "
                f"{e.of('deception', 'hidden_share').value:.3f} of the words): there is nothing to "
                "hide."
            ),
        ),
        VoteRule(
            "for",
            lambda e: (
                _lost(e)
                or e.of("deception", "mass_after").low
                > HALFWAY * e.of("deception", "mass_before").high
            ),
            lambda e: f"Attention could not be taught to hide decisive words: {_deceived(e)}.",
        ),
        VoteRule(
            "undecided",
            lambda _: True,
            lambda e: f"Whether attention can be taught to hide words is open: {_deceived(e)}.",
        ),
    ),
    "adversary": (not_run_rule("adversary"), VoteRule("no vote", lambda _: True, _adversary)),
    "guide": (not_run_rule("guide"), VoteRule("no vote", lambda _: True, _guide)),
    "off_manifold": (
        not_run_rule("off_manifold"),
        VoteRule(
            "no vote",
            lambda _: True,
            lambda e: describe_masked_copy(e.results["off_manifold"].estimates),
        ),
    ),
    "roar": (not_run_rule("roar"), VoteRule("no vote", lambda _: True, describe_roar)),
}
SWAP_RULES: tuple[VoteRule, ...] = (
    VoteRule(
        "for",
        lambda e: _swap(e).low > e.epsilon,
        lambda e: (
            f"Uniform attention imposed on the model as it is moves the output by {_swap(e)}."
        ),
    ),
    VoteRule(
        "against",
        lambda e: _swap(e).high < e.epsilon,
        lambda e: (
            f"Uniform attention imposed on the model as it is moves the output by {_swap(e)} only."
        ),
    ),
    VoteRule(
        "undecided",
        lambda _: True,
        lambda e: (
            f"Uniform attention imposed on the model as it is moves the output by {_swap(e)}, "
            f"which straddles {e.epsilon:g}."
        ),
    ),
)
