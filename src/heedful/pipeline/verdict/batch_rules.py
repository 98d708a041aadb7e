"""Rules of the checks that look at a batch: when each answers what, and the sentence for it.

A check answers from where attention stands between a control and a reference, by its interval,
never from an absolute τ: an honest model with one decisive word in twenty has τ ≈ 0.3 only.
"""

from collections.abc import Callable, Mapping

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.verdict.evidence import NO_ESTIMATE, NO_PLACE, Evidence, VoteRule
from heedful.pipeline.verdict.sentences.erasure import describe_erasure
from heedful.pipeline.verdict.sentences.faithfulness import describe_faithfulness


def _shuffled(e: Evidence) -> Estimate:
    return e.of("permutation", "median_tvd")


def _leverage(e: Evidence) -> Estimate:
    return e.of("permutation", "leverage")


def _place(e: Evidence) -> Place:
    assert e.place is not None  # noqa: S101 - agreement was examined, or its rules would not run
    return e.place


def _ties(e: Evidence) -> bool:
    """Whether attention has no order on any text that deletion orders."""
    other = e.of("agreement", "tau_gradient_leave_one_out").n
    return other > 1 and not e.of("agreement", "tau_leave_one_out").n


def weak(e: Evidence) -> bool:
    """Whether the gradient is less than halfway from chance to leave-one-out's own ranking.

    Then nearly all words are ranked by noise: attention may come near so poor a reference, and
    the question is whether it finds the word that counts.
    """
    return _place(e).gap.high < e.halfway


def top_word(e: Evidence) -> Estimate:
    """How often attention's top word is the one whose deletion moves the output most."""
    return e.of("agreement", "top1_leave_one_out")


def rank_estimate(e: Evidence) -> Estimate:
    """The figure that the answer on ranks goes by."""
    if e.place is None:
        return NO_ESTIMATE
    return top_word(e) if weak(e) else e.place.place


def _by_top_word(e: Evidence) -> str:
    return (
        f"the gradient agrees with leave-one-out by no more than {_place(e).gap} beyond chance, "
        "too weak a reference to rank all words by; attention’s top word is the one whose "
        f"deletion moves the output most in {top_word(e)} of the texts"
    ) + "."


def _between(e: Evidence) -> str:
    return (
        f"attention ranks words {_place(e).place} of the way from shuffled attention (0) to the "
        "gradient (1), measured by agreement with leave-one-out"
    )


def _reached(e: Evidence) -> Estimate:
    return e.of("adversarial", "of_bound")


def _distant(e: Evidence) -> str:
    return f"the farthest attention with the same output reaches {_reached(e)} of what is possible"


def _distant_open(e: Evidence) -> str:
    return f"{_distant(e)}: the interval holds the middle."


def _by_place(check: str, told: Callable[[Mapping[str, Estimate]], str]) -> tuple[VoteRule, ...]:
    """Rules of a check that places attention between chance (0) and the best (1)."""

    def place(e: Evidence) -> Place:
        return e.places.get(check, NO_PLACE)

    def why(e: Evidence) -> str:
        return told(e.results[check].estimates)

    return (
        VoteRule("undecided", lambda e: not place(e).gap.low > 0, why),
        VoteRule("for", lambda e: place(e).place.low > e.halfway, why),
        VoteRule("against", lambda e: place(e).place.high < e.halfway, why),
        VoteRule("undecided", lambda _: True, why),
    )


BATCH_RULES: Mapping[str, tuple[VoteRule, ...]] = {
    "permutation": (
        VoteRule(
            "against",
            lambda e: _leverage(e).high < e.epsilon,
            lambda e: (
                f"No attention whatever moves the output by {e.epsilon:g}: "
                f"the most any could do is {_leverage(e)}."
            ),
        ),
        VoteRule(
            "against",
            lambda e: _shuffled(e).high < e.epsilon,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, less than the "
                f"{e.epsilon:g} that counts as the same output (at most possible: {_leverage(e)})."
            ),
        ),
        VoteRule(
            "for",
            lambda e: _shuffled(e).low > e.epsilon,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, more than the "
                f"{e.epsilon:g} that counts as the same output."
            ),
        ),
        VoteRule(
            "undecided",
            lambda _: True,
            lambda e: (
                f"Shuffling the weights moves the output by {_shuffled(e)}, "
                f"which straddles {e.epsilon:g}."
            ),
        ),
    ),
    "agreement": (
        VoteRule(
            "against",
            _ties,
            lambda e: (
                "Attention gives all words of a text the same weight, so it ranks none above "
                f"another, while deleting them moves the output by more or less (on "
                f"{e.of('agreement', 'tau_gradient_leave_one_out').n} texts)."
            ),
        ),
        VoteRule(
            "undecided",
            lambda e: not _place(e).gap.low > 0,
            lambda e: (
                "Gradient and leave-one-out do not agree with each other beyond chance "
                f"(by {_place(e).gap}), so there is nothing to hold attention against."
            ),
        ),
        VoteRule("for", lambda e: weak(e) and top_word(e).low > e.halfway, _by_top_word),
        VoteRule("against", lambda e: weak(e) and top_word(e).high < e.halfway, _by_top_word),
        VoteRule("undecided", weak, _by_top_word),
        VoteRule(
            "for",
            lambda e: _place(e).place.low > 1.0,
            lambda e: (
                f"On this data {_between(e)}: nearer to deletion than the gradient itself, which "
                "makes the gradient a weak reference here and this answer a mild one."
            ),
        ),
        VoteRule(
            "for",
            lambda e: _place(e).place.low > e.halfway,
            lambda e: f"On this data {_between(e)}: nearer to the gradient.",
        ),
        VoteRule(
            "against",
            lambda e: _place(e).place.high < e.halfway,
            lambda e: f"On this data {_between(e)}: nearer to chance.",
        ),
        VoteRule(
            "undecided",
            lambda _: True,
            lambda e: f"On this data {_between(e)}: the interval straddles the middle.",
        ),
    ),
    "adversarial": (
        VoteRule("for", lambda e: _reached(e).high < e.halfway, lambda e: f"{_distant(e)}: near."),
        VoteRule(
            "against", lambda e: _reached(e).low > e.halfway, lambda e: f"{_distant(e)}: far."
        ),
        VoteRule("undecided", lambda _: True, _distant_open),
    ),
    "erasure": _by_place("erasure", describe_erasure),
    "faithfulness": _by_place("faithfulness", describe_faithfulness),
}
LEVERAGE_RULES: tuple[VoteRule, ...] = (
    VoteRule(
        "against",
        lambda e: _leverage(e).high < e.epsilon,
        lambda e: (
            "Any attention whatever gives the same output: the most one could move it by is "
            f"{_leverage(e)}."
        ),
    ),
    VoteRule(
        "undecided",
        lambda _: True,
        lambda e: (
            f"Some attention moves the output, by {_leverage(e)} at the most: that leaves open "
            "how far one with the same output may lie."
        ),
    ),
)
