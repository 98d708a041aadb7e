"""How far is the ceiling of `order` from the agreement that the true ranking reaches?

python -m benchmarks.ceiling

`order` divides G, the agreement of a ranking with measured influence, by a ceiling C, so that the
true ranking should have order 1. Two ceilings are tried by simulation: √R, from the reliability R,
and √(2 − (W½/W)²), from how the stakes of pairs shrink as orders are added, which is the one in
use. The true influence of words is normal, exponential, lognormal or sparse, and an order measures
it with noise: normal, or in bursts (the word's change is m/q with probability q, else 0, as where a
word matters after few sets only).

Then the same with orders as they are drawn, on outputs of twelve words whose influence is known
exactly: averages of words by their attention, words that act only together, words that each
suffice. `top_word` of the true ranking stands beside it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from heedful.checks.influence.orders import (
    Influence,
    additions_in_orders,
    draw_orders,
    every_set,
    exact_influence,
    pair_agreement,
    pair_stakes,
    remove_noise,
    tied_ranks,
)

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


GAME_WORDS, GAME_TEXTS = 12, 150
SETS = every_set(GAME_WORDS)


def averaged(draw: np.random.Generator) -> np.ndarray:
    """p of every set where the output averages what words say by their attention."""
    weights, said = draw.exponential(1.0, GAME_WORDS), draw.normal(0.0, 2.0, GAME_WORDS)
    return 1 / (1 + np.exp(-(SETS @ (weights * said)) / (SETS @ weights)))


def together(draw: np.random.Generator) -> np.ndarray:
    """p of every set where three words act only together, and the others say a little."""
    tail = SETS @ draw.exponential(0.05, GAME_WORDS)
    return 1 / (1 + np.exp(1.5 - 4.0 * SETS[:, :3].all(1) - tail))


def redundant(draw: np.random.Generator) -> np.ndarray:
    """p of every set where each of three words suffices, and the others say a little."""
    tail = SETS @ draw.exponential(0.05, GAME_WORDS)
    return 1 / (1 + np.exp(1.5 - 4.0 * SETS[:, :3].any(1) - tail))


def true_places(game: Draw, orders: int) -> tuple[float, float, float]:
    """R, `order` and `top_word` of the true ranking, by orders as the check draws them."""
    draw, sums, numbers = np.random.default_rng(0), np.zeros(7), 2 ** np.arange(GAME_WORDS)
    for text in range(GAME_TEXTS):
        p = game(draw)
        true = tied_ranks(exact_influence(p, GAME_WORDS))
        added = additions_in_orders(draw_orders(GAME_WORDS, orders, 0, f"{text}"))
        found = Influence.of(added, p[added.sets @ numbers - 1], p[-1])
        m, halves = found.whole, found.halves
        sums[:2] += pair_agreement(true, m), pair_stakes(m)
        sums[4] += m[true == true.max()].mean() - m.mean()
        sums[5] += m.max() - m.mean()
        for one, other in (halves, halves[::-1]):
            sums[2:4] += pair_agreement(tied_ranks(one), other), pair_stakes(other)
            sums[6] += (one.max() - one.mean()) / 2
    half = sums[2] / sums[3]
    ceiling = remove_noise(np.ones(1), np.array([sums[3] / 2 / sums[1]]))[0]
    most = remove_noise(sums[5:6], sums[6:7])[0]
    return 2 * half / (1 + half), sums[0] / sums[1] / ceiling, sums[4] / most


def game_lines() -> Iterator[str]:
    """The table of outputs that are known."""
    yield "\norder and top_word of the true ranking by drawn orders, R in brackets"
    for game in (averaged, together, redundant):
        cells = (true_places(game, orders) for orders in ORDERS)
        shown = "".join(f"   {order:5.2f} {top:4.2f} ({r:4.2f})" for r, order, top in cells)
        yield f"{game.__name__:32}{shown}"


def main() -> None:
    """Print the tables."""
    for line in (*lines(), *game_lines()):
        print(line)


if __name__ == "__main__":
    main()
