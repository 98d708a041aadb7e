"""Kinds whose states know their own word only: z = Σ αₜ·sₜ.

Deleting word t hands its weight to the others, so that for all of them
z − z₋ₜ = αₜ / (1 − αₜ) · (sₜ − z), in log-odds.
"""

import numpy as np

from heedful.planted.closed_form.base import PlantedSubject, Setting, WordNumbers, register_kind
from heedful.planted.closed_form.composed_subject import compose_subject, read_per_word
from heedful.planted.hand_built import CUE_WORDS


def peaked_numbers(setting: Setting, says: float) -> tuple[WordNumbers, WordNumbers]:
    """Scores and sayings: cues say ± `says`, and the others little.

    A cue weighs at least 40, 16 or 8 times as much as all other words of a text together; those
    say up to 0, 0.15 or 0.3 in either direction, by difficulty.
    """
    scores = setting.even(-2.0, 0.0)
    noise = setting.pick(0.0, 0.15, 0.3)
    sayings = setting.even(-1.0, 1.0) * noise
    scores[:CUE_WORDS] = np.log(setting.pick(40.0, 16.0, 8.0) * setting.longest)
    sayings[:CUE_WORDS] = says * setting.signs()[:CUE_WORDS]
    return scores, sayings


def graded_numbers(setting: Setting) -> tuple[WordNumbers, WordNumbers, float]:
    """Scores log x, sayings ±x, and the bound of |z|: 0.15·g, 0.3·g or 0.4·g by difficulty."""
    size = 2.5 * setting.growth
    x = setting.even(0.5, 4.0) * size
    return np.log(x), x * setting.signs(), setting.pick(0.15, 0.3, 0.4) * size


@register_kind("honest-peaked", used=True, ranks=True, exclusive=True)
def honest_peaked(setting: Setting) -> PlantedSubject:
    """One decisive word a text says ±2, and attention is on it: at least 8/9 of it.

    Used: without weight on the cue |z| is at most 0.3, with it at least 1.74.
    Ranks: other words say |s| ≤ δ < |z|, so deleting one moves z by αₜ/(1 − αₜ)·(|z| ± δ): words
    whose weights differ by more than (|z| + δ)/(|z| − δ), at most 1.42, are ordered as their
    weights are. Deleting the cue moves z by 1.4 or more, deleting any other by 0.3 at most.
    Exclusive: whoever comes within 0.05 of the output must give the cue (|z′| − δ)/(2 − δ) of the
    weight, at least 0.64: no such attention lies farther than 0.36 (TVD).
    """
    return PlantedSubject(
        compose_subject(setting, read_per_word, *peaked_numbers(setting, 2.0)), CUE_WORDS
    )


@register_kind("honest-graded", used=True, ranks=True, exclusive=None)
def honest_graded(setting: Setting) -> PlantedSubject:
    """Words say sₜ = ±xₜ, x between 0.5·g and 4·g, and attention is in proportion to x.

    Texts are drawn so that praise and blame nearly balance: |z| ≤ ζ, which is 0.15·g, 0.3·g or
    0.4·g by difficulty; g = 2.5·√(length/20), so that shuffling moves long texts as it moves
    short ones.
    Used: z is between −4·g and 4·g, wherever attention puts it.
    Ranks: deletion moves z by xₜ·|xₜ ∓ z| / (Σx − xₜ). As x(x − ζ) > y(y + ζ) exactly if
    x > y + ζ, any two words whose x differ by more than |z| are ordered as their weights are.
    Of all pairs these are at least (1 − 0.4/3.5)² = 78 %.
    """
    scores, sayings, bound = graded_numbers(setting)
    return PlantedSubject(compose_subject(setting, read_per_word, scores, sayings), bound=bound)


@register_kind("anti", used=True, ranks=False, exclusive=None)
def anti(setting: Setting) -> PlantedSubject:
    """Weights are in proportion to 1/x and sayings to x²: attention is high where values are low.

    x is between exp(−A) and 1; the contrast A is 2, 1.5 or 1 by difficulty. Sayings reach
    k = 20·√(length/20); texts are drawn so that |z| ≤ 0.06·k.
    Used: z is between −k and k, wherever attention puts it.
    Ranks: deletion moves z by |k·xₜ ∓ z/xₜ| / (Σ1/x − 1/xₜ), which grows with x except where z
    is not small beside k·x²: with |z| ≤ 0.06·k the first term is the larger for x > 0.25. So words
    are ordered against their weights, up to pairs that are near each other.
    """
    scores = setting.even(0.0, setting.pick(2.0, 1.5, 1.0))
    size = 20.0 * setting.growth
    sayings = size * np.exp(-2.0 * scores) * setting.signs()
    return PlantedSubject(
        compose_subject(setting, read_per_word, scores, sayings), bound=0.06 * size
    )


@register_kind("redundant", used=None, ranks=None, exclusive=None)
def redundant(setting: Setting) -> PlantedSubject:
    """Honest-peaked with the decisive word twice: deleting either changes next to nothing.

    Deletion and contribution part here, and which of them attention should follow is a matter of
    opinion. Reported, not scored.
    """
    return PlantedSubject(
        compose_subject(setting, read_per_word, *peaked_numbers(setting, 2.0)), CUE_WORDS, times=2
    )


@register_kind("saturated", used=None, ranks=None, exclusive=None)
def saturated(setting: Setting) -> PlantedSubject:
    """Honest-peaked with a cue that says ±8, ±15 or ±30: the probability is 1 to many digits.

    Attention decides the log-odds, and most changes of it leave the probability where it is.
    Reported, not scored.
    """
    says = setting.pick(8.0, 15.0, 30.0)
    return PlantedSubject(
        compose_subject(setting, read_per_word, *peaked_numbers(setting, says)), CUE_WORDS
    )
