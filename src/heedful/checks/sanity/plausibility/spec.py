"""What `plausibility` asks and measures; it has no vote."""

from collections.abc import Iterator, Mapping
from functools import partial

from heedful.checks.spec import RANK, CheckSpec, Measure, defined_by_method, describe_only
from heedful.core.records import CheckResult, Estimate

NAME = "plausibility"
NOT_FAITHFULNESS = (
    "This is no evidence of faithfulness: people may point at words that the model does not use, "
    "and a model may use words that people do not point at."
)


def describe(result: CheckResult) -> str:
    """Whether attention points where people do, compared with chance, and the best method."""
    sentences = [*_describe_rationales(result), *_describe_scores(result)]
    if not sentences:
        return f"No text has words that people pointed at. {NOT_FAITHFULNESS}"
    return " ".join([*sentences, NOT_FAITHFULNESS])


def _describe_rationales(result: CheckResult) -> Iterator[str]:
    """Texts differ much in how many words are marked, so chance is subtracted text by text."""
    beyond = defined_by_method(result, "beyond_random")
    if own := beyond.pop("attention", None):
        area, chance = (result.of("auprc", method=name) for name in ("attention", "random"))
        yield (
            f"Attention ranks the words that people marked {_compare(own)}: AUPRC "
            f"{area.value:.3f}, in random order {chance.value:.3f}, {own} more."
        )
        yield from _best(beyond)


def _describe_scores(result: CheckResult) -> Iterator[str]:
    taus = defined_by_method(result, "rank_human")
    taus.pop("random", None)
    if own := taus.pop("attention", None):
        yield f"Attention agrees with the scores that people gave words {_compare(own)}, τ {own}."
        yield from _best(taus)


def _best(estimates: Mapping[str, Estimate]) -> Iterator[str]:
    if estimates:
        best = max(estimates, key=lambda name: estimates[name].value)
        yield f"Of the other methods {best} is nearest to people, {estimates[best]}."


def _compare(own: Estimate) -> str:
    """In words, for an estimate that is 0 by chance."""
    if own.low > 0:
        return "better than chance"
    return "worse than chance" if own.high < 0 else "about as chance does"


_by_method = partial(Measure, by=("method",))
SPEC = CheckSpec(
    NAME,
    "Do people point at the same words?",
    (
        _by_method("auprc", "people’s words ranked early by {method}, AUPRC", short="AUPRC"),
        _by_method(
            "beyond_random",
            "the same minus random orders: {method}",
            range=RANK,
            short="AUPRC beyond random",
        ),
        _by_method(
            "token_f1",
            "people’s words among those chosen by {method}, F1",
            short="words chosen, F1",
        ),
        _by_method(
            "iou_f1", "people’s spans among those chosen by {method}, F1", short="spans chosen, F1"
        ),
        _by_method(
            "top_k",
            "people’s words among as many top words of {method}",
            short="among as many top words",
        ),
        _by_method(
            "rank_human",
            "absolute scores of {method} and of people, τ",
            range=RANK,
            short="absolute scores, τ",
        ),
        _by_method(
            "sign_human", "words to which {method} and people give the same sign", short="same sign"
        ),
    ),
    "heedful.checks.sanity.plausibility.check:Plausibility",
    title="What people point at",
    rules=describe_only(NAME, describe),
    by_default=False,
    takes_methods="always",
)
