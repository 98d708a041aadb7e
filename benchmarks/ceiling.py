"""How far is the ceiling of `order` from the agreement that the true ranking reaches?

python -m benchmarks.ceiling

`order` divides G, the agreement of a ranking with measured influence, by a ceiling C, so that the
true ranking should have order 1. Two ceilings are tried by simulation: √R, from the reliability R,
and √(2 − (W½/W)²), from how the stakes of pairs shrink as orders are added, which is the one in
use. The true influence of words is normal, exponential, lognormal or sparse, and an order measures
it with noise: normal, or in bursts (the word's change is m/q with probability q, else 0, as where a
word matters after few sets only).
"""

from collections.abc import Callable, Iterator

import numpy as np

from heedful.checks.influence.orders import pair_agreement, pair_stakes, tied_ranks

TEXTS, WORDS = 1500, 20
ORDERS = (4, 8, 16, 32)
Draw = Callable[[np.random.Generator], np.ndarray]
TRUTHS: dict[str, Draw] = {
    "normal": lambda draw: draw.normal(3.0, 1.0, WORDS),
    "exponential": lambda draw: draw.exponential(1.0, WORDS),
    "lognormal, σ = 1": lambda draw: draw.lognormal(0.0, 1.0, WORDS),
    "lognormal, σ = 1.5": lambda draw: draw.lognormal(0.0, 1.5, WORDS),
    "sparse: 3 words of 20": lambda draw: np.where(
        np.arange(WORDS) < 3, draw.uniform(0.5, 1.5, WORDS), 0.0
    ),
    "sparse with a tail": lambda draw: np.where(
        np.arange(WORDS) < 3, draw.uniform(0.5, 1.5, WORDS), draw.exponential(0.05, WORDS)
    ),
}


def measure(m: np.ndarray, noise: str, orders: int, draw: np.random.Generator) -> np.ndarray:
    """m as each order measures it."""
    if noise == "normal":
        return m + draw.normal(0.0, 2.0 * np.std(m), (orders, WORDS))
    share = 0.25
    return np.where(draw.random((orders, WORDS)) < share, m / share, 0.0)


def true_orders(truth: Draw, noise: str, orders: int) -> tuple[float, float, float]:
    """R, and `order` of the true ranking under either ceiling."""
    draw = np.random.default_rng(orders)
    sums = np.zeros(4)
    for _ in range(TEXTS):
        m = truth(draw)
        measured = measure(m, noise, orders, draw)
        whole, halves = measured.mean(0), (measured[::2].mean(0), measured[1::2].mean(0))
        sums[:2] += pair_agreement(tied_ranks(m), whole), pair_stakes(whole)
        for one, other in (halves, halves[::-1]):
            sums[2:4] += pair_agreement(tied_ranks(one), other), pair_stakes(other)
    agreed, stakes, half_agreed, half_stakes = sums
    half = half_agreed / half_stakes
    reliability = 2 * half / (1 + half)
    shrunk = 2 - (half_stakes / 2 / stakes) ** 2
    own = agreed / stakes
    return reliability, own / np.sqrt(reliability), own / np.sqrt(max(shrunk, 1e-12))


def lines() -> Iterator[str]:
    """The table."""
    yield "order of the true ranking by √R and by the stakes, R in brackets; by number of orders"
    yield f"{'noise':8}{'true influence':24}" + "".join(f"{k:>20}" for k in ORDERS)
    for noise in ("normal", "bursts"):
        for name, truth in TRUTHS.items():
            cells = (true_orders(truth, noise, orders) for orders in ORDERS)
            told = "".join(f"   {old:5.2f} {new:4.2f} ({r:4.2f})" for r, old, new in cells)
            yield f"{noise:8}{name:24}{told}"


def main() -> None:
    """Print the table."""
    for line in lines():
        print(line)


if __name__ == "__main__":
    main()
