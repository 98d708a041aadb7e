"""When `influence` says that attention ranks words by their influence, and that it is used.

*ranks* is supported where four places are certainly above the middle between chance and the best:
`order`, pooled and as a mean over texts, `top_set` and `top_word`. It is refuted where `order` and
one of the others are certainly below, and none is above. Everything else is undecided, with the
reason: no reliable yardstick, a control that fails, texts that answer differently (parts of them,
or some above the middle and some below, more than a random ranking would), a second reading that
says the opposite, or an interval that contains the middle.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

from heedful.checks.influence.names import (
    CROSS_FITTED,
    HALF,
    LEAST_WORDS,
    MASKING,
    MEAN,
    NAME,
    NEAR_FULL,
    RELIABLE,
    SHUFFLED,
)
from heedful.checks.spec import Evidence, OpenFigure, VoteRule, always, none_open, not_run
from heedful.core.records import Estimate
from heedful.numerics.stats.multiple_testing import holm_adjusted

FEW, MOST = 0.1, 0.9  # share of texts without effect of attention between which texts are mixed
ALPHA = 0.05  # of all tests of strata together
SCALE = "on the scale from chance (0) to a ranking by influence itself (1)"


@dataclass(frozen=True)
class NamedPlace:
    """A place, and what it is called in a sentence."""

    name: str
    estimate: Estimate

    def __str__(self) -> str:
        return f"{self.name} {self.estimate}"


@dataclass(frozen=True)
class Ranking:
    """The places of one ranking: of attention, or of a control."""

    evidence: Evidence
    method: str | None = "attention"
    setting: str | None = None

    def place(self, measure: str, reading: str | None = None) -> Estimate:
        """A place, by another reading if asked."""
        setting = ", ".join(filter(None, (self.setting, reading))) or None
        return find(self.evidence, measure, self.method, setting)

    @property
    def order(self) -> NamedPlace:
        """The pooled order."""
        return NamedPlace("order", self.place("order"))

    @property
    def mean_order(self) -> NamedPlace:
        """The order as a mean over texts."""
        return NamedPlace("order as a mean over texts", self.place("order", MEAN))

    @property
    def top_set(self) -> NamedPlace:
        """The place of the top words together."""
        return NamedPlace("top words together", self.place("top_set"))

    @property
    def top_word(self) -> NamedPlace:
        """The place of the top word."""
        return NamedPlace("top word", self.place("top_word"))

    @property
    def fair_top_word(self) -> NamedPlace:
        """The place of the top word against a best word that was chosen on other orders."""
        return NamedPlace("top word", self.place("top_word", CROSS_FITTED))

    @property
    def top_set_abstains(self) -> bool:
        """Whether the top words by influence do not certainly change the output beyond chance."""
        return not find(self.evidence, "top_set_gap").low > 0

    @property
    def supported(self) -> bool:
        """Whether all places are certainly above the middle."""
        return not self.top_set_abstains and self.certainly_above

    @property
    def certainly_above(self) -> bool:
        """The same, without that of the top words together where it abstains."""
        places = [self.order, self.mean_order, self.top_word]
        if not self.top_set_abstains:
            places.append(self.top_set)
        return all(one.estimate.low > self.evidence.halfway for one in places)

    @property
    def refuted(self) -> bool:
        """Whether order and another place are certainly below the middle, and none is above."""
        middle = self.evidence.halfway
        others = (
            [self.fair_top_word] if self.top_set_abstains else [self.top_set, self.fair_top_word]
        )
        above = [one for one in (self.order, self.mean_order, *others) if one.estimate.low > middle]
        below = [one for one in others if one.estimate.high < middle]
        orders = (self.order.estimate, self.mean_order.estimate)
        same_side = orders[0].high < middle and not orders[1].value > middle
        return same_side and bool(below) and not above

    @property
    def shown(self) -> str:
        """All places in a sentence."""
        parts = (self.order, self.mean_order, self.top_set, self.top_word)
        return "; ".join(str(one) for one in parts if one.estimate.n)

    def open_figures(self) -> tuple[OpenFigure, ...]:
        """The places whose intervals contain the middle."""
        middle = self.evidence.halfway
        parts = (self.order, self.mean_order, self.top_set, self.top_word)
        found = (one.estimate for one in parts if one.estimate.n)
        return tuple((one, middle) for one in found if one.low <= middle <= one.high)

    def open_clauses(self) -> str:
        """Which places keep the answer open."""
        middle, parts = self.evidence.halfway, []
        for one in (self.order, self.mean_order, self.top_set, self.top_word):
            if not one.estimate.low > middle:
                side = "below" if one.estimate.high < middle else "not certainly on one side of"
                parts.append(f"{one} is {side} the middle")
        if self.top_set_abstains:
            parts.append(
                "the words of most influence, taken together, do not certainly change the output "
                "more than random words, so the top words cannot be compared"
            )
        return "; ".join(parts)


def find(
    e: Evidence, measure: str, method: str | None = None, setting: str | None = None
) -> Estimate:
    """An estimate of the check on all texts."""
    keys = {"method": method, "setting": setting}
    return e.of(NAME, measure, **{name: one for name, one in keys.items() if one is not None})


def order(e: Evidence) -> Estimate:
    """The figure behind the answer on *ranks*."""
    return Ranking(e).order.estimate


def leverage(e: Evidence) -> Estimate:
    """The figure behind the answer on *used*."""
    return find(e, "leverage_top")


def leverage_words(e: Evidence) -> Estimate:
    """The largest change of the output by moving weight among all words of a text."""
    return find(e, "leverage_words")


def share_below(e: Evidence) -> Estimate:
    """The share of the texts in which other weights change the output by less than ε."""
    return find(e, "share_below", None, f"{e.epsilon:g}")


@dataclass(frozen=True)
class MixedAnswer:
    """A figure certainly above the line in one part of the texts, and below it in another."""

    split: str
    above: str
    below: str
    share: float

    def __str__(self) -> str:
        return f"holds for {self.above} ({self.share:.0%} of the texts), not for {self.below}"


def mixed_answers(e: Evidence, measure: str) -> Iterator[MixedAnswer]:
    """The splits of the texts whose parts answer differently; p-values after Holm's correction."""
    result = e.results.get(NAME)
    tests = [] if result is None else [
        (row.slice, side, row.estimate.value)
        for side in ("above", "below")
        for row in result.rows(f"p_{side}", setting=measure)
    ]  # fmt: skip
    adjusted = holm_adjusted([p for _, _, p in tests])
    found: dict[str, dict[str, str]] = {}
    for (name, side, _), p in zip(tests, adjusted, strict=True):
        if p <= ALPHA and name is not None:
            split, _, part = name.partition(": ")
            found.setdefault(split, {}).setdefault(side, part)
    for split, sides in found.items():
        if len(sides) == 2:
            share = e.of(NAME, "share", slice=f"{split}: {sides['above']}").value
            yield MixedAnswer(split, sides["above"], sides["below"], share)


def _unreliable(e: Evidence) -> bool:
    return not find(e, "reliability").low >= RELIABLE


def has_yardstick(e: Evidence) -> bool:
    """Whether influence is reliable, and an independent estimate of it is found to rank words."""
    return not _unreliable(e) and Ranking(e, None, HALF).certainly_above


def _failed_control(e: Evidence) -> str:
    """What a control shows that it must not; empty where both are as they must be."""
    if not Ranking(e, None, HALF).certainly_above:
        return "an independent estimate of the influence of words is not found to rank them"
    if Ranking(e, "attention", SHUFFLED).certainly_above:
        return "shuffled attention is found to rank words"
    return ""


def _conflict(e: Evidence) -> str:
    """The second reading that contradicts the first; empty where none does."""
    own, middle = Ranking(e).order.estimate.value > e.halfway, e.halfway
    masked, near = (find(e, "order", "attention", one) for one in (MASKING, NEAR_FULL))
    if masked.n and (masked.value > middle) != own:
        return f"where words are masked instead of deleted, order is {masked}"
    opposite = near.high < middle if own else near.low > middle
    if near.n and opposite:
        return f"where nearly all words are left, order is {near}"
    return ""


def _one_mixture(e: Evidence, measure: str) -> MixedAnswer | None:
    return next(mixed_answers(e, measure), None)


def _ranks_nothing(e: Evidence) -> bool:
    own = Ranking(e).order.estimate
    return own.value == own.low == own.high == 0.0


def _texts_differ(e: Evidence) -> bool:
    """Whether attention ranks words in some texts and not in others, beyond chance."""
    share = find(e, "share_not_ranked")
    return find(e, "dispersion").low > 1 and share.low > FEW and share.high < MOST


RANKS_RULES = (
    not_run(NAME),
    VoteRule(
        "undecided",
        lambda e: not find(e, "reliability").n,
        lambda _: f"No text has at least {LEAST_WORDS} words, so there is nothing to rank.",
        none_open,
    ),
    VoteRule(
        "undecided",
        lambda e: isnan(find(e, "reliability").value),
        lambda _: "Removing words never changes the output, so there is nothing to rank.",
        none_open,
    ),
    VoteRule(
        "undecided",
        _unreliable,
        lambda e: (
            "There is no yardstick: two halves of the orders in which words were removed do not "
            f"agree enough on their influence (reliability {find(e, 'reliability')}, at least "
            f"{RELIABLE:g} is needed)."
        ),
        none_open,
    ),
    VoteRule(
        "undecided",
        lambda e: bool(_failed_control(e)),
        lambda e: f"There is no yardstick: {_failed_control(e)}.",
        none_open,
    ),
    VoteRule(
        "undecided",
        lambda e: _one_mixture(e, "order") is not None,
        lambda e: f"Attention answers differently: that it ranks words {_one_mixture(e, 'order')}.",
        none_open,
    ),
    VoteRule(
        "undecided",
        _texts_differ,
        lambda e: (
            "Texts answer differently, and no split that was tried says which: order is below the "
            f"middle in {_percent(find(e, 'share_not_ranked'))} of the texts, and differs between "
            f"texts {find(e, 'dispersion')} times as much as that of a random ranking would; over "
            f"all texts {Ranking(e).order}."
        ),
        none_open,
    ),
    VoteRule(
        "undecided",
        lambda e: (Ranking(e).supported or Ranking(e).refuted) and bool(_conflict(e)),
        lambda e: f"Two readings disagree: {Ranking(e).order}, but {_conflict(e)}.",
        none_open,
    ),
    VoteRule(
        "supports",
        lambda e: Ranking(e).supported,
        lambda e: f"Attention ranks words by their influence, {SCALE}: {Ranking(e).shown}.",
    ),
    VoteRule(
        "refutes",
        lambda e: Ranking(e).refuted and _ranks_nothing(e),
        lambda e: (
            "Attention gives all words of a text the same weight, so it ranks nothing, while words "
            f"differ in influence (reliability {find(e, 'reliability')})."
        ),
    ),
    VoteRule(
        "refutes",
        lambda e: Ranking(e).refuted,
        lambda e: f"Attention does not rank words by their influence, {SCALE}: {Ranking(e).shown}.",
    ),
    VoteRule(
        "undecided",
        always,
        lambda e: f"The places do not decide, {SCALE}: {Ranking(e).open_clauses()}.",
        lambda e: Ranking(e).open_figures(),
    ),
)


def _leverage_missing(e: Evidence) -> bool:
    return not leverage(e).n


def _why_missing(e: Evidence) -> str:
    missing = [one for one in e.results[NAME].missing if one.measure == "leverage_top"]
    reason = missing[0].reason if missing else "no text has enough words"
    return f"The output under other weights was not computed: {reason.rstrip('.')}."


def _mixed_use(e: Evidence) -> str:
    mixture, share = _one_mixture(e, "leverage_top"), share_below(e)
    if mixture is not None:
        return f"Texts answer differently: that attention is used {mixture}."
    return (
        f"In {_percent(share)} of the texts no other weights on the words change the output by "
        f"{e.epsilon:g}, in the others some do."
    )


def _percent(share: Estimate) -> str:
    ends = f"{100 * share.low:.0f}, {100 * share.high:.0f}"
    return f"{100 * share.value:.0f} % [{ends}]"


def _moving(e: Evidence) -> str:
    return (
        f"Moving attention among the words of a text changes the output by up to "
        f"{leverage_words(e)}; moving it among the words of most influence, or from them to the "
        f"others, by up to {leverage(e)}"
    )


USED_RULES = (
    not_run(NAME),
    VoteRule("no vote", _leverage_missing, _why_missing),
    VoteRule(
        "undecided",
        lambda e: (
            (share_below(e).low > FEW and share_below(e).high < MOST)
            or _one_mixture(e, "leverage_top") is not None
        ),
        _mixed_use,
        none_open,
    ),
    VoteRule(
        "supports",
        lambda e: leverage(e).low > e.epsilon,
        lambda e: f"{_moving(e)}, more than the {e.epsilon:g} that counts as the same output.",
    ),
    VoteRule(
        "refutes",
        lambda e: leverage_words(e).high < e.epsilon,
        lambda e: f"{_moving(e)}, less than the {e.epsilon:g} that counts as the same output.",
    ),
    VoteRule(
        "undecided",
        always,
        lambda e: f"{_moving(e)}; {e.epsilon:g} counts as the same output, which does not decide.",
        lambda e: tuple(
            (one, e.epsilon)
            for one in (leverage(e), leverage_words(e))
            if one.low <= e.epsilon <= one.high
        ),
    ),
)
