"""From sums over texts to places: how attention, and every method, ranks words by influence.

A place is 0 for chance and 1 for the best that a ranking can do. Sums are over texts, and each
place is a ratio of sums that is recomputed, ceiling included, in every resample of the texts.

- `order` = G / C. G is the share of what pairs of words have at stake that a ranking gets right,
  less what it gets wrong; C is the ceiling, the share that the true ranking gets right of the
  stakes as measured. Noise adds to the stakes W = Σ|m_i − m_j|: from k times as many orders, for
  normal m and noise, W² falls by the k-th part of what noise added. So from halves of the orders,
  W½, the true stakes are √(2W² − W½²) and C = √(2 − (W½/W)²), which for normal m is √R, R being
  the reliability. Where m is skewed, or noisy only where it is large, C is nearer to the truth
  than √R (`benchmarks.ceiling`). An m that was enumerated has no noise: its ceiling is 1.
- `reliability` = R: how one half of the orders ranks the other half's m, stepped up by Spearman and
  Brown's formula.
- `top_set` = what goes without the top words by the ranking, between random words (0) and the top
  words by m (1).
- `top_word` = the influence of the top word, between the mean word (0) and the word with most (1).
  The largest of several noisy m is too large, so the most is taken without noise, as the stakes
  are. Cross-fitted, which refutes, it is that of the word that one half of the orders chooses, by
  the other half: never too large.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from heedful.checks.base import Resampling, TextGroup
from heedful.checks.influence.names import (
    CROSS_FITTED,
    DELETION,
    HALF,
    INFLUENCE,
    MASKING,
    MEAN,
    MIN_CLUSTERS,
    MIN_STRATUM,
    NAME,
    NEAR_FULL,
    RELIABLE,
    SHARE_EPSILONS,
    SHUFFLED,
)
from heedful.checks.influence.orders import remove_noise
from heedful.checks.spec import HALFWAY
from heedful.core.records import Estimate, EstimateRow
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.numerics.stats.clusters import count_clusters
from heedful.numerics.stats.resampled_sums import ResampledSums, interval_of, resample_sums
from heedful.results.tables import MeasurementColumns, TextValues

Sums = Float64[np.ndarray, "R K"]
Draws = Float64[np.ndarray, "R"]
Statistic = Callable[[Sums], Draws]
"""A statistic of sums over texts, for each resample of the texts."""
TextMask = NDArray[np.bool_]
HALVES = ("1", "2")  # settings of the halves of the drawn orders


@dataclass(frozen=True, eq=False)
class TextStratum:
    """Some of the texts; `split` says what divides texts into such parts."""

    texts: TextMask
    split: str = ""
    predicted: str | None = None
    slice: str | None = None


@dataclass(eq=False)
class SummedColumns:
    """Columns of values per text that are to be summed, each of them once."""

    columns: list[TextValues] = field(default_factory=list)
    places: dict[bytes, int] = field(default_factory=dict)

    def add(self, values: TextValues) -> int:
        """The place of a column among the sums; NaN takes no part."""
        key = values.tobytes()
        if key not in self.places:
            self.places[key] = len(self.columns)
            self.columns.append(values)
        return self.places[key]


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the columns of the check, and asks for sums over some texts."""

    columns: MeasurementColumns
    table: SummedColumns

    def values(
        self, measure: str, method: str | None = None, setting: str | None = None
    ) -> TextValues:
        """The values of a measure; NaN where there are none."""
        return self.columns.column(NAME, measure, method=method, setting=setting)

    def has(self, measure: str, method: str | None = None, setting: str | None = None) -> bool:
        """Whether a measure was taken on any text."""
        return bool((~np.isnan(self.values(measure, method, setting))).any())

    def ratio(self, above: TextValues, below: TextValues, texts: TextMask) -> Statistic:
        """The ratio of two sums over some texts."""
        one, other = (self.table.add(np.where(texts, part, np.nan)) for part in (above, below))
        return lambda sums: divide(sums[:, one], sums[:, other])

    def total(self, values: TextValues, texts: TextMask) -> Statistic:
        """A sum over some texts."""
        place = self.table.add(np.where(texts, values, np.nan))
        return lambda sums: sums[:, place]

    def mean(self, values: TextValues, texts: TextMask) -> Statistic:
        """The mean of the values that some texts have."""
        return self.ratio(values, np.where(np.isnan(values), 0.0, 1.0), texts)

    def evaluate(self, statistic: Statistic) -> float:
        """The value of a statistic over all texts, without an interval."""
        sums = np.array([np.nansum(column) for column in self.table.columns])
        return float(statistic(sums[None])[0])


def divide(above: Draws, below: Draws) -> Draws:
    """above / below; NaN where below is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Draws = np.where(below > 0, above / below, np.nan)
    return found


def step_up(half: Draws) -> Draws:
    """The reliability of a mean from the agreement of its halves (Spearman and Brown, 1910).

    >>> step_up(np.array([0.5, 0.0]))
    array([0.66666667, 0.        ])
    """
    found: Draws = 2 * half / (1 + half)
    return found


@dataclass(frozen=True, eq=False)
class Ceiling:
    """The agreement that the true ranking reaches with m as measured, and the reliability of m.

    `over_texts` takes means over texts instead of sums of what is at stake.
    """

    reader: Reader
    texts: TextMask
    reading: str = DELETION
    over_texts: bool = False

    def reliability(self) -> Statistic:
        """R of m from drawn orders, also of texts that were enumerated."""
        half = self.half()
        return lambda sums: step_up(half(sums))

    def half(self) -> Statistic:
        """The agreement of one half of the orders with the other, both ways averaged."""
        ways = [self._half(part) for part in HALVES]
        return lambda sums: (ways[0](sums) + ways[1](sums)) / 2

    def half_order(self) -> Statistic:
        """`order` of the ranking by one half of the orders, scored on the other half."""
        agreed = (self._read("half_sum", "1") + self._read("half_sum", "2")) / 2
        stakes = self.stakes
        if self.over_texts:
            own = per_text(agreed, stakes)
            found, ceiling = self.reader.mean(own, self.texts), self(np.where(own == own, 1.0, 0.0))
        else:
            found, ceiling = self.reader.ratio(agreed, stakes, self.texts), self(stakes)
        return lambda sums: divide(found(sums), ceiling(sums))

    def _half(self, part: str) -> Statistic:
        agreed, stakes = self._read("half_sum", part), self._read("half_weight", part)
        if self.over_texts:
            return self.reader.mean(per_text(agreed, stakes), self.texts)
        return self.reader.ratio(agreed, stakes, self.texts)

    def _read(self, measure: str, part: str) -> TextValues:
        setting = part if self.reading == DELETION else f"{part} {self.reading}"
        return self.reader.values(measure, None, setting)

    @property
    def stakes(self) -> TextValues:
        """What all pairs of words have at stake, by text."""
        setting = None if self.reading == DELETION else self.reading
        return self.reader.values("order_weight", None, setting)

    @property
    def exact(self) -> TextMask:
        """The texts with an m that was enumerated."""
        if self.reading != DELETION:
            return np.zeros(len(self.texts), dtype=bool)
        return self.reader.values("exact") > 0

    def __call__(self, weight: TextValues) -> Statistic:
        """The ceiling where texts have a weight: that of their stakes, or 1."""
        drawn = self.drawn()
        share = self.reader.ratio(np.where(self.exact, weight, 0.0), weight, self.texts)

        def ceiling(sums: Sums) -> Draws:
            enumerated, root = share(sums), drawn(sums)
            return enumerated + np.where(enumerated < 1, (1 - enumerated) * root, 0.0)

        return ceiling

    def drawn(self) -> Statistic:
        """√(2 − (W½/W)²) of the texts that were not enumerated."""
        halves = (self._read("half_weight", "1") + self._read("half_weight", "2")) / 2
        texts = self.texts & ~self.exact
        if self.over_texts:
            ratio = self.reader.mean(per_text(halves, self.stakes), texts)
        else:
            ratio = self.reader.ratio(halves, self.stakes, texts)
        return lambda sums: remove_noise(np.ones(len(sums)), ratio(sums))


def per_text(agreed: TextValues, stakes: TextValues) -> TextValues:
    """The agreement within each text; NaN where nothing is at stake."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(stakes > 0, agreed / stakes, np.nan)


@dataclass(frozen=True, eq=False)
class Places:
    """The places of a ranking on some texts."""

    reader: Reader
    texts: TextMask
    method: str | None = "attention"
    setting: str | None = None

    def order(self, reading: str = DELETION, *, over_texts: bool = False) -> Statistic:
        """`order`, by another reading of m if asked, or as a mean over texts."""
        plain = reading == DELETION
        read, setting = self.reader.values, self.setting if plain else reading
        agreed = read("order_sum", self.method, setting)
        ceiling = Ceiling(self.reader, self.texts, reading, over_texts)
        stakes = np.where(np.isnan(agreed), np.nan, ceiling.stakes)
        if over_texts:
            own = per_text(agreed, stakes)
            found = self.reader.mean(own, self.texts)
            top = ceiling(np.where(np.isnan(own), 0.0, 1.0))
        else:
            found, top = self.reader.ratio(agreed, stakes, self.texts), ceiling(stakes)
        return lambda sums: divide(found(sums), top(sums))

    def dispersion(self) -> Statistic:
        """The variance of G over texts, relative to that of a random ranking of their words."""
        stakes, read = Ceiling(self.reader, self.texts).stakes, self.reader.values
        own = per_text(read("order_sum", self.method), stakes)
        chance = per_text(read("order_chance", self.method), stakes**2)
        first, second, expected = (
            self.reader.mean(one, self.texts) for one in (own, own**2, chance)
        )
        return lambda sums: divide(second(sums) - first(sums) ** 2, expected(sums))

    def below_half(self) -> TextValues:
        """Whether the order of each text lies below ½, under the mean ceiling of all texts."""
        ceiling = Ceiling(self.reader, self.texts, over_texts=True)
        own = per_text(self.reader.values("order_sum", self.method), ceiling.stakes)
        drawn = self.reader.evaluate(ceiling.drawn())
        below = own < HALFWAY * np.where(ceiling.exact, 1.0, drawn)
        return np.where(self.texts & ~np.isnan(own), below, np.nan)

    def top_set(self) -> Statistic:
        """`top_set`."""
        own, random, best = self._changes()
        above = self.reader.ratio(own - random, np.ones_like(own), self.texts)
        below = self.reader.ratio(best - random, np.ones_like(own), self.texts)
        return lambda sums: divide(above(sums), below(sums))

    def top_set_gap(self) -> Statistic:
        """The mean of what goes without the top words by m, less that without random words."""
        _, random, best = self._changes()
        return self.reader.mean(best - random, self.texts)

    def _changes(self) -> tuple[TextValues, TextValues, TextValues]:
        read = self.reader.values
        own = read("change_top", self.method, self.setting)
        ends = (read("change_top", "random"), read("change_top", None, INFLUENCE))
        random, best = (np.where(np.isnan(own), np.nan, one) for one in ends)
        return own, random, best

    def top_word(self, *, cross_fitted: bool = False) -> Statistic:
        """`top_word`; cross-fitted, the best word is chosen on one half and scored on the other."""
        own = self.reader.values("gain_top", self.method, self.setting)
        if not cross_fitted:
            return self._by_most(own)
        most = self.reader.values("gain_most", None, CROSS_FITTED)
        return self.reader.ratio(own, np.where(np.isnan(own), np.nan, most), self.texts)

    def half_top_word(self) -> Statistic:
        """`top_word` of the ranking by one half of the orders, scored on the other half."""
        return self._by_most(self.reader.values("gain_most", None, CROSS_FITTED))

    def _by_most(self, own: TextValues) -> Statistic:
        """A gain of influence over that of the word with most, without noise."""
        read, known = self.reader.values, self.texts & ~np.isnan(own)
        most, exact = read("gain_most"), read("exact") > 0
        halves = (read("half_most", None, "1") + read("half_most", None, "2")) / 2
        above, counted = (
            self.reader.total(part, known) for part in (own, np.where(exact, most, 0))
        )
        drawn, half = (
            self.reader.total(np.where(exact, 0.0, part), known) for part in (most, halves)
        )
        return lambda sums: divide(
            above(sums), counted(sums) + remove_noise(drawn(sums), half(sums))
        )


@dataclass(frozen=True, eq=False)
class _Row:
    """A row to be estimated: its keys, its statistic, and the texts it rests on."""

    measure: str
    statistic: Statistic
    texts: TextMask
    method: str | None = None
    setting: str | None = None
    stratum: TextStratum | None = None


def estimate_influence(
    columns: MeasurementColumns,
    resampling: Resampling,
    groups: Sequence[TextGroup],
    *,
    epsilon: float,
) -> tuple[EstimateRow, ...]:
    """Every place with its interval: of all texts, of classes and slices, and tests of strata.

    Args:
        groups: The classes and slices of the audit, which are described.
        epsilon: The change of output that counts as none.
    """
    reader = Reader(columns, SummedColumns())
    everywhere = TextStratum(reader.values("order_weight") >= 0)
    if not everywhere.texts.any():
        return ()
    rows = [*_whole_rows(reader, everywhere.texts)]
    for group in groups:
        part = TextStratum(group.texts, predicted=group.predicted, slice=group.slice)
        rows += _described_rows(reader, part, everywhere.texts)
    tested = [*tested_strata(columns, epsilon)]
    for one in tested:
        rows += _tested_rows(reader, one)
    tests = [test for one in tested for test in _tests(reader, one, resampling, epsilon)]
    sums = resample_sums(
        np.stack(reader.table.columns, axis=1),
        resampling.clusters,
        resamples=resampling.resamples,
        seed=resampling.seed,
    )
    found = [_estimated(row, sums, resampling.level) for row in rows]
    found += _share_rows(reader, everywhere.texts, resampling, epsilon)
    return (*found, *(row for one in tests for row in one.rows(sums, resampling.level)))


def _estimated(row: _Row, sums: ResampledSums, level: float) -> EstimateRow:
    stratum = row.stratum or TextStratum(row.texts)
    return EstimateRow(
        row.measure,
        interval_of(sums, row.statistic, n=int(row.texts.sum()), level=level),
        method=row.method,
        setting=row.setting,
        predicted=stratum.predicted,
        slice=stratum.slice,
    )


def methods_of(columns: MeasurementColumns) -> list[str]:
    """The methods that were scored, attention first."""
    found = dict.fromkeys(
        key.method for key in columns.of_check(NAME) if key.measure == "order_sum" and key.method
    )
    return sorted(found, key=lambda name: name != "attention")


def _whole_rows(reader: Reader, texts: TextMask) -> Iterator[_Row]:
    for method in methods_of(reader.columns):
        known = texts & ~np.isnan(reader.values("order_sum", method))
        yield from _place_rows(reader, known, method)
        if method != "attention" and known.any():
            yield _Row("order_gain", _gain(reader, known, method), known, method)
    yield from _place_rows(reader, texts, "attention", SHUFFLED)
    yield from _reliability_rows(reader, texts)
    yield from _control_rows(reader, texts)
    for reading in (MASKING, NEAR_FULL):
        known = texts & ~np.isnan(reader.values("order_sum", "attention", reading))
        if known.any():
            places = Places(reader, known)
            yield _Row("order", places.order(reading), known, "attention", reading)
            reliability = Ceiling(reader, known, reading).reliability()
            yield _Row("reliability", reliability, known, None, reading)


def _share_rows(
    reader: Reader, texts: TextMask, resampling: Resampling, epsilon: float
) -> Iterator[EstimateRow]:
    """Shares of the texts: in which attention has no effect, or does not rank words."""
    leverage = reader.values("leverage_words")
    for line in sorted({*SHARE_EPSILONS, epsilon}):
        below = np.where(np.isnan(leverage), np.nan, leverage < line)
        if (found := estimate_share(below, resampling)).n:
            yield EstimateRow("share_below", found, setting=f"{line:g}")
    found = estimate_share(Places(reader, texts).below_half(), resampling)
    yield EstimateRow("share_not_ranked", found)


def estimate_share(values: TextValues, resampling: Resampling) -> Estimate:
    """The share of the texts with the value 1, of those with a value, with Wilson's interval."""
    how = {"resamples": resampling.resamples, "seed": resampling.seed}
    found = estimate_means(
        {"": values}, resampling.clusters, **how, level=resampling.level, shares=("",)
    )
    return found[""]


def _gain(reader: Reader, texts: TextMask, method: str) -> Statistic:
    """`order` of a method minus that of attention, on the same texts."""
    own, attention = (Places(reader, texts, one).order() for one in (method, "attention"))
    return lambda sums: own(sums) - attention(sums)


def _place_rows(
    reader: Reader, texts: TextMask, method: str | None, setting: str | None = None,
    stratum: TextStratum | None = None,
) -> Iterator[_Row]:  # fmt: skip
    """The places of a method."""
    if not texts.any():
        return
    places = Places(reader, texts, method, setting)

    def row(measure: str, statistic: Statistic, reading: str | None = None) -> _Row:
        named = ", ".join(filter(None, (setting, reading))) or None
        return _Row(measure, statistic, texts, method, named, stratum)

    yield row("order", places.order())
    yield row("order", places.order(over_texts=True), MEAN)
    yield row("top_set", places.top_set())
    yield row("top_word", places.top_word())
    yield row("top_word", places.top_word(cross_fitted=True), CROSS_FITTED)


def _reliability_rows(
    reader: Reader, texts: TextMask, stratum: TextStratum | None = None
) -> Iterator[_Row]:
    for setting, over_texts in ((None, False), (MEAN, True)):
        found = Ceiling(reader, texts, over_texts=over_texts).reliability()
        yield _Row("reliability", found, texts, None, setting, stratum)
    places = Places(reader, texts)
    yield _Row("top_set_gap", places.top_set_gap(), texts, None, None, stratum)
    yield _Row("dispersion", places.dispersion(), texts, None, None, stratum)


def _control_rows(reader: Reader, texts: TextMask) -> Iterator[_Row]:
    """The places of m of one half of the orders, scored on the other half."""
    for setting, over_texts in ((HALF, False), (f"{HALF}, {MEAN}", True)):
        half = Ceiling(reader, texts, over_texts=over_texts).half_order()
        yield _Row("order", half, texts, None, setting)
    places = Places(reader, texts, None, HALF)
    yield _Row("top_set", places.top_set(), texts, None, HALF)
    yield _Row("top_word", places.half_top_word(), texts, None, HALF)


def _described_rows(reader: Reader, stratum: TextStratum, judged: TextMask) -> Iterator[_Row]:
    """Places of attention on the texts of a class, or `order` of a slice."""
    texts = stratum.texts & judged
    if not texts.any() or (stratum.slice is None and stratum.predicted is None):
        return
    if stratum.slice is not None:
        yield _Row("order", Places(reader, texts).order(), texts, "attention", None, stratum)
        return
    yield from _place_rows(reader, texts, "attention", None, stratum)
    yield from _reliability_rows(reader, texts, stratum)


def tested_strata(columns: MeasurementColumns, epsilon: float) -> Iterator[TextStratum]:
    """The parts of the texts in which attention may rank words differently.

    By class, by length and by confidence (halves at the median), and by whether other weights on
    the words change the output. A split with a single part is none.
    """
    reader = Reader(columns, SummedColumns())
    judged = reader.values("order_weight") >= 0
    leverage = reader.values("leverage_words")
    known = judged & ~np.isnan(leverage)
    splits = {
        "class": [
            (f"texts predicted {name}", judged & (columns.predicted == name))
            for name in np.unique(columns.predicted[judged].astype(str))
        ],
        "length": _halves(reader.values("items"), judged, ("shorter texts", "longer texts")),
        "confidence": _halves(
            reader.values("confidence"),
            judged,
            ("less confident predictions", "more confident predictions"),
        ),
        "leverage": [
            ("texts whose attention has no effect", known & (leverage < epsilon)),
            ("texts whose attention has an effect", known & ~(leverage < epsilon)),
        ],
    }
    for split, parts in splits.items():
        there = [(name, texts) for name, texts in parts if texts.any()]
        if len(there) > 1:
            for name, texts in there:
                yield TextStratum(texts, split, slice=f"{split}: {name}")


def _halves(
    values: TextValues, judged: TextMask, names: tuple[str, str]
) -> list[tuple[str, TextMask]]:
    """The texts up to the median, and those above; where many are equal, one part may be empty."""
    middle = np.median(values[judged])
    upper = values > middle if (values[judged] > middle).any() else values >= middle
    return [(names[0], judged & ~upper), (names[1], judged & upper)]


def _tested_rows(reader: Reader, stratum: TextStratum) -> Iterator[_Row]:
    texts = stratum.texts
    if not texts.any():
        return
    share = reader.mean(np.where(texts, 1.0, 0.0), reader.values("order_weight") >= 0)
    yield _Row("share", share, texts, None, None, stratum)
    yield _Row("order", Places(reader, texts).order(), texts, "attention", None, stratum)
    yield _Row("reliability", Ceiling(reader, texts).reliability(), texts, None, None, stratum)
    for name in ("leverage_top", "leverage_words"):
        leverage = reader.values(name)
        known = texts & ~np.isnan(leverage)
        if known.any():
            yield _Row(name, reader.mean(leverage, known), known, None, None, stratum)


@dataclass(frozen=True, eq=False)
class _Test:
    """The test of figures of a stratum against a line: one above it, one (`most`) below it.

    It is made only where m is reliable in the stratum, if `reliability` is given.
    """

    measure: str
    least: Statistic
    most: Statistic
    line: float
    stratum: TextStratum
    reliability: Statistic | None = None

    def rows(self, sums: ResampledSums, level: float) -> Iterator[EstimateRow]:
        """The p-values as rows: `p_above` is small where the figure lies above the line."""
        n = int(self.stratum.texts.sum())
        if self.reliability is not None:
            reliability = interval_of(sums, self.reliability, n=n, level=level)
            if not reliability.low >= RELIABLE:
                return
        for side, statistic, sign in (("above", self.least, 1), ("below", self.most, -1)):
            draws = statistic(sums.draws)
            draws = draws[~np.isnan(draws)]
            p = (1 + int((sign * (draws - self.line) <= 0).sum())) / (1 + len(draws))
            yield EstimateRow(
                f"p_{side}",
                Estimate(p, np.nan, np.nan, n),
                setting=self.measure,
                slice=self.stratum.slice,
            )


def _tests(
    reader: Reader, stratum: TextStratum, resampling: Resampling, epsilon: float
) -> Iterator[_Test]:
    """The tests of a stratum of enough distinct texts: of `order`, and of both leverages.

    Where texts are drawn by cluster, enough clusters must be in the stratum, too.
    """
    texts = stratum.texts
    if count_clusters(resampling.copies, texts) < MIN_STRATUM:
        return
    if count_clusters(resampling.clusters, texts) < MIN_CLUSTERS:
        return
    reliability, order = Ceiling(reader, texts).reliability(), Places(reader, texts).order()
    yield _Test("order", order, order, HALFWAY, stratum, reliability)
    top, words = (reader.values(name) for name in ("leverage_top", "leverage_words"))
    known = texts & ~np.isnan(top)
    if stratum.split != "leverage" and known.any():  # leverage defines those strata
        least, most = (reader.mean(one, known) for one in (top, words))
        yield _Test("leverage_top", least, most, epsilon, stratum)
