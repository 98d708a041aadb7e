"""What plausibility found, in words, and why it says nothing of faithfulness."""

from collections.abc import Iterator, Mapping

from heedful.core.records import Estimate

NO_EVIDENCE = (
    "This is no evidence of faithfulness: people may point at words that the model does not use, "
    "and a model may use words that nobody points at."
)


def describe_plausibility(found: Mapping[str, Estimate]) -> str:
    """Whether attention points where people do, beside chance, and which method does most."""
    told = [*_marks(found), *_scores(found)]
    if not told:
        return f"No text here has words that people pointed at. {NO_EVIDENCE}"
    return " ".join([*told, NO_EVIDENCE])


def _marks(found: Mapping[str, Estimate]) -> Iterator[str]:
    """Texts differ much in how many words are marked, so chance is taken off text by text."""
    beyond = _named(found, "beyond_random_")
    if own := beyond.pop("attention", None):
        area, chance = (found[f"auprc_{name}"] for name in ("attention", "random"))
        yield (
            f"The words that people marked come {_beside(own)} in the order of attention: AUPRC "
            f"{area.value:.3f}, in a random order {chance.value:.3f}, {own} more."
        )
        yield from _best(beyond)


def _scores(found: Mapping[str, Estimate]) -> Iterator[str]:
    taus = _named(found, "rank_human_")
    taus.pop("random", None)
    if own := taus.pop("attention", None):
        yield f"Attention follows the scores that people gave words {_beside(own)}, τ {own}."
        yield from _best(taus)


def _best(named: Mapping[str, Estimate]) -> Iterator[str]:
    if named:
        best = max(named, key=lambda name: named[name].value)
        yield f"Of the other methods {best} is nearest to people, {named[best]}."


def _named(found: Mapping[str, Estimate], start: str) -> dict[str, Estimate]:
    """The estimates of one measure by method."""
    return {
        name.removeprefix(start): one
        for name, one in found.items()
        if name.startswith(start) and one.n
    }


def _beside(own: Estimate) -> str:
    """What is 0 by chance, in words."""
    if own.low > 0:
        return "better than by chance"
    return "worse than by chance" if own.high < 0 else "about as by chance"
