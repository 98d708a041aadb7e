"""What plausibility found, in words, and why it says nothing of faithfulness."""

from collections.abc import Mapping

from heedful.core.records import Estimate

NO_EVIDENCE = (
    "This is no evidence of faithfulness: people may point at words that the model does not use, "
    "and a model may use words that nobody points at."
)
KINDS = {
    "auprc_": "The words that people marked come {} in the order of attention, AUPRC {}; in a "
    "random one {}.",
    "rank_human_": "Attention follows the scores that people gave single words {}, τ {}; a random "
    "order {}.",
}


def plausibility_told(found: Mapping[str, Estimate]) -> str:
    """Whether attention points where people do, beside chance, and which method does most."""
    told = [_one(found, start, words) for start, words in KINDS.items()]
    if not any(told):
        return f"No text here has words that people pointed at. {NO_EVIDENCE}"
    return " ".join([*filter(None, told), NO_EVIDENCE])


def _one(found: Mapping[str, Estimate], start: str, words: str) -> str:
    named = {
        name.removeprefix(start): one
        for name, one in found.items()
        if name.startswith(start) and one.n
    }
    own, chance = named.pop("attention", None), named.pop("random", None)
    named.pop("uniform", None)
    if own is None or chance is None:
        return ""
    told = words.format(_beside(own, chance), own, chance)
    if named:
        best = max(named, key=lambda name: named[name].value)
        told += f" Of the other methods {best} is nearest to people, {named[best]}."
    return told


def _beside(own: Estimate, chance: Estimate) -> str:
    """Intervals that do not meet; a paired test would tell more apart."""
    if own.low > chance.high:
        return "better than by chance"
    return "worse than by chance" if own.high < chance.low else "about as by chance"
