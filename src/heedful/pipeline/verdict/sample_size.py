"""How many more texts would settle what these leave open."""

from math import ceil, isfinite

from heedful.core.records import Estimate

HOPELESS = 100.0  # so many times the texts there are: then it is a tie in practice


def texts_needed(found: Estimate, line: float) -> int | None:
    """Texts to add until the interval would leave the line, if the estimate stays where it is.

    Intervals shrink with the square root of the number of texts. 0 where it has left already;
    None where no number that could be had would do, or there is no interval.

    >>> further_texts(Estimate(0.6, 0.4, 0.8, 100), 0.5)
    300
    >>> further_texts(Estimate(0.5, 0.4, 0.6, 100), 0.5) is None
    True
    """
    away = found.value - line
    half = found.value - found.low if away > 0 else found.high - found.value
    if not isfinite(half) or not isfinite(away) or away == 0 or found.n < 2:
        return None
    times = (half / abs(away)) ** 2
    if times > HOPELESS:
        return None
    return max(0, ceil(found.n * times - 1e-9) - found.n)
