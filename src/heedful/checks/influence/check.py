"""Does attention point at the words that the output rests on, alone or together?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge, Le, MultipleOf
from jaxtyping import Float64
from numpy.typing import NDArray
from torch import Tensor

from heedful.checks.base import Findings, Resampling, TextGroup, to_measurement
from heedful.checks.faithfulness.items import ItemView, methods_without_controls, score_items
from heedful.checks.faithfulness.removal import MOST_MARKS, Removals
from heedful.checks.influence.cost import describe_cost
from heedful.checks.influence.estimates import estimate_influence
from heedful.checks.influence.leverage import decodes_cheaply, leverage_among, leverage_onto
from heedful.checks.influence.names import (
    BEST_SET,
    CROSS_FITTED,
    HALF,
    INFLUENCE,
    LEAST_WORDS,
    MASKING,
    NEAR_FULL,
    RANDOM,
    SHUFFLED,
)
from heedful.checks.influence.orders import (
    FLIP_SHARE,
    MOST_ENUMERATED,
    TOP_SHARES,
    Additions,
    Amounts,
    Influence,
    Sets,
    additions_in_orders,
    additions_near_full,
    chance_variance,
    draw_orders,
    every_set,
    exact_influence,
    mean_of_top,
    pair_agreement,
    pair_stakes,
    search_steps,
    share_size,
    tied_ranks,
    top_set,
)
from heedful.checks.influence.pilot import MOST_ORDERS, PILOT_ORDERS, PilotTexts, orders_needed
from heedful.checks.requested_methods import MethodOrName, method_name, registry_order
from heedful.core.errors import AttentionUnavailable, NotApplicable
from heedful.core.records import EstimateRow, Measurement, MissingMeasure
from heedful.core.rng import generator
from heedful.core.settings import PositiveInt, check_on_init
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasMaskEmbedding, Subject
from heedful.results.tables import MeasurementColumns

PILOT_TEXTS = 40
FEW_GONE = 4  # words: sets without so few are likely to be asked for by another ranking, too
SECOND_READINGS = (MASKING, NEAR_FULL)
OTHER_METHODS = ("gradient", "input_x_gradient", "one_hot_gradient", "integrated_gradients")
YARDSTICK_METHODS = ("leave_one_out",)  # kin of the yardstick, shown apart


Asked = tuple[int, NDArray[np.bool_]]  # a row, and sets of its words


class ValueKey(NamedTuple):
    """What tells the values of one text apart: measure, method, setting."""

    measure: str
    method: str | None = None
    setting: str | None = None


@dataclass(frozen=True, eq=False)
class SetOutputs:
    """p of the predicted class for sets of words, and whether another class is predicted."""

    p: Float64[np.ndarray, "S"]
    flipped: NDArray[np.bool_]


def default_methods() -> tuple[str, ...]:
    """Every attention-derived explanation that runs unasked, gradients, and leave-one-out."""
    chosen = {*OTHER_METHODS, *YARDSTICK_METHODS}
    return tuple(
        name
        for name in methods
        if name in chosen or (methods.trait(name, "kind") == "attention" and not _only_named(name))
    )


def _only_named(name: str) -> bool:
    return bool(methods.trait(name, "slow") or methods.trait(name, "patented"))


@check_on_init
@dataclass(frozen=True)
class InfluenceCheck:
    """Does attention point at the words that the output rests on, alone or together?

    The influence m of a word is what it changes, on average, when words are added in random order
    (`checks.influence.orders`). `orders` orders are drawn for each text; 0: as many as a pilot
    finds to be needed. Attention and every method are scored on it: `order` (pairs of words in the
    order of m), `top_set` (the change of output without their top words), `top_word`, and
    `flip_top` (does the prediction change without the top fifth of the words?). Methods other than
    attention, a search for the words that matter most, and two second readings of m (words masked
    instead of deleted; sets of nearly all words) cost more: they are taken on the share
    `costly_share` of the texts, drawn by content, which is found from the data so that about
    `costly_texts` are among them.
    """

    orders: Annotated[int, Ge(0), Le(MOST_ORDERS), MultipleOf(4)] = 0
    methods: tuple[MethodOrName, ...] = field(default_factory=default_methods)
    costly_texts: PositiveInt = 200
    costly_share: Annotated[float, Ge(0), Le(1)] = 1.0

    def __post_init__(self) -> None:
        chosen = registry_order(("attention", *self.methods), methods_without_controls)
        object.__setattr__(self, "methods", chosen)

    def fitted(self, examples: Iterable[Example], subject: Subject) -> "InfluenceCheck":
        """With the orders that a pilot finds to be needed, and the share of costly texts."""
        pilot = PilotTexts(PILOT_TEXTS)
        for one in examples:
            pilot.consider(one)
        share = min(1.0, self.costly_texts / max(1, pilot.considered))
        orders = self.orders or orders_needed(self, subject, pilot.chosen, audited=pilot.considered)
        return replace(self, costly_share=share, orders=orders)

    def describe_cost(self, texts: int) -> str:
        """One line on the passes that so many texts will take."""
        return describe_cost(
            orders=self.orders or PILOT_ORDERS,
            methods=len(self.methods) - 1,
            texts=texts,
            costly_share=self.costly_share,
        )

    def estimate(
        self,
        columns: MeasurementColumns,
        resampling: Resampling,
        groups: Sequence[TextGroup],
        *,
        epsilon: float,
    ) -> tuple[EstimateRow, ...]:
        """The places, by method, class and part of the texts."""
        return estimate_influence(columns, resampling, groups, epsilon=epsilon)

    def __call__(self, context: BatchContext) -> Findings:
        with context.clock("influence"):
            texts = InfluenceOfBatch(self, context)
            values, missing = texts.values()
        measured = list[Measurement]()
        for key, column in values.items():
            measured.append(
                to_measurement(
                    key.measure, torch.from_numpy(column), key.setting, method=key.method
                )
            )
        return Findings(tuple(measured), missing)


@dataclass(frozen=True, eq=False)
class InfluenceOfBatch:
    """The influence of the words of each text of a batch, and how scores stand to it."""

    check: InfluenceCheck
    context: BatchContext

    @cached_property
    def items(self) -> ItemView:
        """The words of the texts."""
        return ItemView(self.context)

    @cached_property
    def counts(self) -> list[int]:
        """The number of words of each text."""
        counts: list[int] = self.items.counts.tolist()
        return counts

    @cached_property
    def judged(self) -> list[int]:
        """The rows of the texts with enough words."""
        return [row for row, count in enumerate(self.counts) if count >= LEAST_WORDS]

    @cached_property
    def keys(self) -> list[str]:
        """What the draws of each text are keyed by: everything that the model reads of it."""
        return self.context.batch.content

    @cached_property
    def costly(self) -> list[int]:
        """The judged rows on which costly readings are taken."""
        share, seed = self.check.costly_share, self.context.seed
        return [
            row
            for row in self.judged
            if generator(seed, f"costly readings {self.keys[row]}").random() < share
        ]

    @cached_property
    def deletion(self) -> Removals:
        """Outputs of texts with words deleted."""
        return Removals(self.items, "deletion")

    def draw(self, row: int, purpose: str) -> np.random.Generator:
        """The random stream of a text for one purpose."""
        return generator(self.context.seed, f"{purpose} {self.keys[row]}")

    def run(
        self, removals: Removals, asked: Iterable[Asked], *, remember: bool = True
    ) -> Iterator[SetOutputs]:
        """The outputs for the given sets of words of the given rows, all in few passes.

        Sets are made as they are needed, so that those of long texts are never all there. Where
        they need not be asked for again, only those are remembered that others may equal: sets
        without few words, and those of texts short enough for enumeration.
        """
        waiting, marks = list[Asked](), 0
        for one in asked:
            waiting.append(one)
            marks += one[1].size
            if marks >= MOST_MARKS:
                yield from self._run_together(removals, waiting, remember=remember)
                waiting, marks = [], 0
        yield from self._run_together(removals, waiting, remember=remember)

    def _run_together(
        self, removals: Removals, asked: Sequence[Asked], *, remember: bool
    ) -> Iterator[SetOutputs]:
        if not asked:
            return
        width, sizes = self.items.real.shape[1], [len(sets) for _, sets in asked]
        ends = np.cumsum(sizes)
        gone = np.zeros((ends[-1], width), dtype=bool)
        for (row, sets), end in zip(asked, ends, strict=True):
            gone[end - len(sets) : end, : self.counts[row]] = ~sets
        rows = np.repeat([row for row, _ in asked], sizes)
        short = np.array(self.counts)[rows] <= MOST_ENUMERATED
        shared = remember | short | (gone.sum(1) <= FEW_GONE)
        found = removals(
            torch.from_numpy(rows), torch.from_numpy(gone), remember=torch.from_numpy(shared)
        )
        p, flipped = (np.split(one.numpy(), ends[:-1]) for one in (found.p, found.flipped))
        for pair in zip(p, flipped, strict=True):
            yield SetOutputs(*pair)

    def orders(self, row: int) -> Additions:
        """The words of a text added in its drawn orders; made anew each time, as they are large."""
        count, seed = self.check.orders or PILOT_ORDERS, self.context.seed
        return additions_in_orders(draw_orders(self.counts[row], count, seed, self.keys[row]))

    @cached_property
    def whole(self) -> dict[int, float]:
        """p of the whole texts, from the forward pass that is there already."""
        if getattr(self.context.subject, "bfloat16", False):  # that pass repeats near ties exactly
            asked = [(row, np.ones((1, self.counts[row]), dtype=bool)) for row in self.judged]
            outputs = self.run(self.deletion, asked)
            return {row: float(one.p[0]) for row, one in zip(self.judged, outputs, strict=True)}
        predicted = self.context.predicted[:, None]
        p = self.context.logits.detach().double().softmax(-1).gather(-1, predicted)
        found: list[float] = p.squeeze(-1).tolist()
        return {row: found[row] for row in self.judged}

    @cached_property
    def prefixes(self) -> dict[int, SetOutputs]:
        """The outputs for the sets of the drawn orders."""
        asked = ((row, self.orders(row).sets) for row in self.judged)
        outputs = self.run(self.deletion, asked, remember=False)
        return dict(zip(self.judged, outputs, strict=True))

    @cached_property
    def drawn_influence(self) -> dict[int, Influence]:
        """The influence of the words, from the drawn orders."""
        return {
            row: Influence.of(self.orders(row), outputs.p, self.whole[row])
            for row, outputs in self.prefixes.items()
        }

    @cached_property
    def influence(self) -> dict[int, Influence]:
        """The influence of the words; exact where a text has few."""
        found = dict(self.drawn_influence)
        for row, outputs in self.enumerated.items():
            exact = exact_influence(outputs.p, self.counts[row])
            found[row] = replace(found[row], whole=exact, exact=True)
        return found

    @cached_property
    def enumerated(self) -> dict[int, SetOutputs]:
        """The outputs for every set of the words of short texts."""
        short = [row for row in self.judged if self.counts[row] <= MOST_ENUMERATED]
        asked = ((row, every_set(self.counts[row])) for row in short)
        return dict(zip(short, self.run(self.deletion, asked), strict=True))

    def second_influence(self, reading: str) -> dict[int, Influence]:
        """The influence by another reading, on the rows of the costly ones."""
        near = reading == NEAR_FULL
        removals = self.deletion if near else Removals(self.items, "masking")
        additions = self._near_full if near else self.orders
        asked = ((row, additions(row).sets) for row in self.costly)
        outputs = self.run(removals, asked, remember=False)
        return {
            row: Influence.of(additions(row), one.p, self.whole[row])
            for row, one in zip(self.costly, outputs, strict=True)
        }

    def _near_full(self, row: int) -> Additions:
        return additions_near_full(self.counts[row], self.context.seed, self.keys[row])

    def values(self) -> tuple[dict[ValueKey, NDArray[np.float64]], tuple[MissingMeasure, ...]]:
        """Every value per text; NaN where a text has none, and why some measures have none."""
        values = _Columns(len(self.counts))
        values.put("items", dict(enumerate(map(float, self.counts))))
        ranks, missing = self.rankings()
        self._put_influence(values)
        for method, rows in ranks.items():
            self._put_scores(values, method, rows)
        self._put_top_sets(values, ranks)
        self._put_second_readings(values, ranks["attention"])
        missing += self._put_leverage(values)
        return values.columns, missing

    def rankings(self) -> tuple[dict[str, dict[int, Amounts]], tuple[MissingMeasure, ...]]:
        """The ranks of the words by each method; attention on all texts, others on the costly."""
        own, _ = self._ranks(self.context, ("attention",), self.judged)
        others = tuple(one for one in self.check.methods if method_name(one) != "attention")
        if not others:
            return own, ()
        if self.judged and not self.costly:
            return {**own, **{method_name(one): {} for one in others}}, ()
        # where all texts are too short, methods are asked for the reasons of those that refuse
        every = not self.costly or self.costly == list(range(len(self.counts)))
        context = self.context if every else _select(self.context, self.costly)
        ranks, reasons = self._ranks(context, others, self.costly)
        missing = tuple(
            MissingMeasure(one, reason, name)
            for name, reason in reasons.items()
            for one in METHOD_MEASURES
        )
        return {**own, **ranks}, missing

    def _ranks(
        self, context: BatchContext, asked: Sequence[MethodOrName], rows: Sequence[int]
    ) -> tuple[dict[str, dict[int, Amounts]], dict[str, str]]:
        """Ranks by |score| of the given rows; the batch of `context` is all rows or these."""
        scores, reasons = score_items(ItemView(context), asked, context.predicted)
        place = (
            {row: row for row in rows}
            if context is self.context
            else dict(zip(rows, range(len(rows)), strict=True))
        )
        found: dict[str, dict[int, Amounts]] = {}
        for one, table in zip(asked, scores, strict=True):
            own = table.abs().numpy()
            found[method_name(one)] = {
                row: tied_ranks(own[place[row], : self.counts[row]])
                for row in rows
                if not np.isnan(own[place[row], : self.counts[row]]).any()
            }
        return found, reasons

    def _put_influence(self, values: "_Columns") -> None:
        influence = self.influence
        values.put("order_weight", {row: pair_stakes(m.whole) for row, m in influence.items()})
        values.put("exact", {row: float(m.exact) for row, m in influence.items()})
        _put_halves(values, influence)
        values.put("gain_most", {r: m.whole.max() - m.whole.mean() for r, m in influence.items()})
        values.put(
            "gain_most",
            {row: float(np.mean([*_cross_gains(m)])) for row, m in influence.items()},
            setting=CROSS_FITTED,
        )
        for half in (0, 1):
            drawn = {row: m.halves[half] for row, m in influence.items()}
            most = {row: m.max() - m.mean() for row, m in drawn.items()}
            values.put("half_most", most, setting=f"{half + 1}")
        choice = {row: self.draw(row, "choice of a method").integers(2) for row in self.costly}
        values.put("choice", {row: float(one) for row, one in choice.items()})
        values.put("confidence", self.whole)

    def _put_scores(self, values: "_Columns", method: str, ranks: Mapping[int, Amounts]) -> None:
        m = {row: self.influence[row].whole for row in ranks}
        ways: dict[str | None, Mapping[int, Amounts]] = {None: ranks}
        if method == "attention":
            ways[SHUFFLED] = self.shuffled(ranks)
        for setting, own in ways.items():
            agreed = {row: pair_agreement(own[row], m[row]) for row in own}
            gained = {row: mean_of_top(own[row], m[row]) - m[row].mean() for row in own}
            values.put("order_sum", agreed, method, setting)
            values.put("gain_top", gained, method, setting)
        if method == "attention":
            chance = {row: chance_variance(ranks[row], m[row]) for row in ranks}
            values.put("order_chance", chance, method)

    def shuffled(self, ranks: Mapping[int, Amounts]) -> dict[int, Amounts]:
        """The same ranks on other words of each text."""
        return {
            row: self.draw(row, "shuffled attention of influence").permutation(own)
            for row, own in ranks.items()
        }

    def _put_top_sets(self, values: "_Columns", ranks: Mapping[str, Mapping[int, Amounts]]) -> None:
        """Change of output, and flips, without the top words of every ranking and at random."""
        by_influence = {row: tied_ranks(m.whole) for row, m in self.influence.items()}
        by_half = {row: tied_ranks(m.halves[0]) for row, m in self.influence.items()}
        ranked: dict[tuple[str | None, str | None], Mapping[int, Amounts]] = {
            **{(method, None): own for method, own in ranks.items()},
            ("attention", SHUFFLED): self.shuffled(ranks["attention"]),
            (None, INFLUENCE): by_influence,
            (None, HALF): by_half,
        }
        asked = ((row, self._without_top(row, own[row])) for own in ranked.values() for row in own)
        outputs = self.run(self.deletion, asked)
        best = dict.fromkeys(self.costly, False)
        for (method, setting), own in ranked.items():
            found = {row: next(outputs) for row in own}
            changed = {row: self._mean_change(row, one.p) for row, one in found.items()}
            flips = {row: float(one.flipped[FLIP_PLACE]) for row, one in found.items()}
            values.put("change_top", changed, method, setting)
            if setting is None:
                values.put("flip_top", flips, method)
            for row in best.keys() & found.keys():
                best[row] |= bool(found[row].flipped[: FLIP_PLACE + 1].any())
        values.put("flip_top", self.search(best), setting=BEST_SET)
        self._put_random_sets(values)

    def _without_top(self, row: int, ranks: Amounts) -> Sets:
        """The text without the top words, for each share of them."""
        ties = self.draw(row, "ties of influence").random(len(ranks))
        sizes = (share_size(self.counts[row], share) for share in TOP_SHARES)
        return np.stack([~top_set(ranks, size, ties) for size in sizes])

    def _mean_change(self, row: int, p: Float64[np.ndarray, "*K S"]) -> float:
        return float(np.abs(self.whole[row] - p).mean())

    def _put_random_sets(self, values: "_Columns") -> None:
        """The same without random words: all sets of a size, or those of the drawn orders."""
        changes, flips = {}, {}
        for row, drawn in self.prefixes.items():
            outputs, words = self.enumerated.get(row, drawn), self.counts[row]
            sets = every_set(words) if row in self.enumerated else self.orders(row).sets
            sizes = sets.sum(1)
            alike = [sizes == words - share_size(words, share) for share in TOP_SHARES]
            changes[row] = float(np.mean([self._mean_change(row, outputs.p[own]) for own in alike]))
            flips[row] = float(outputs.flipped[alike[FLIP_PLACE]].mean())
        values.put("change_top", changes, RANDOM)
        values.put("flip_top", flips, RANDOM)

    def search(self, found: Mapping[int, bool]) -> dict[int, float]:
        """Whether any set of a fifth of the words flips the prediction: those tried, or greedily.

        Greedy: remove the words without each of which p is lowest, in a few steps (`search_steps`),
        so that the cost grows with the square of the length.
        """
        flips = dict(found)
        steps = {row: search_steps(self.counts[row]) for row, flip in flips.items() if not flip}
        left = {row: np.ones(self.counts[row], dtype=bool) for row in steps}
        for step in range(max(map(len, steps.values()), default=0)):
            active = [row for row in left if not flips[row] and step < len(steps[row])]
            asked = [(row, _without_one_more(left[row])) for row in active]
            outputs_of = self.run(self.deletion, asked, remember=False)
            for (row, sets), outputs in zip(asked, outputs_of, strict=True):
                flips[row] = bool(outputs.flipped.any())
                lowest = np.argsort(outputs.p, kind="stable")[: steps[row][step]]
                left[row] = np.logical_and.reduce(sets[lowest])
            several = [row for row in active if steps[row][step] > 1 and not flips[row]]
            tried = self.run(self.deletion, [(row, left[row][None]) for row in several])
            for row, outputs in zip(several, tried, strict=True):
                flips[row] = bool(outputs.flipped.any())
        return {row: float(flip) for row, flip in flips.items()}

    def _put_second_readings(self, values: "_Columns", ranks: Mapping[int, Amounts]) -> None:
        for reading in SECOND_READINGS:
            if reading == MASKING and not isinstance(self.context.subject, HasMaskEmbedding):
                continue
            influence = self.second_influence(reading)
            values.put(
                "order_sum",
                {row: pair_agreement(ranks[row], m.whole) for row, m in influence.items()},
                "attention",
                reading,
            )
            stakes = {row: pair_stakes(m.whole) for row, m in influence.items()}
            values.put("order_weight", stakes, setting=reading)
            _put_halves(values, influence, f" {reading}")

    def _put_leverage(self, values: "_Columns") -> tuple[MissingMeasure, ...]:
        """How far other weights on the words of a text change its output, all others as they are.

        `leverage_words`: by moving weight among all words. `leverage_top`: by moving it among the
        words in the upper half by influence, or from them to the others in equal parts.
        """
        names = ("leverage_top", "leverage_words")
        try:
            cheap = decodes_cheaply(self.context)
        except (AttentionUnavailable, NotApplicable) as reason:
            return tuple(MissingMeasure(name, str(reason)) for name in names)
        rows = self.judged if cheap else self.costly
        found: dict[str, dict[int, float]] = {name: {} for name in names}
        if rows:
            every = range(len(self.counts)) if cheap else rows
            context = self.context if cheap else _select(self.context, rows)
            upper, whole = (tokens[list(every)] for tokens in self._upper_half(rows))
            among = leverage_among(context, upper)
            onto = leverage_onto(context, upper, whole & ~upper)
            tops = torch.fmax(among, onto).tolist()
            words = torch.fmax(leverage_among(context, whole), onto).tolist()
            for row, *both in zip(every, tops, words, strict=True):
                if row in rows:
                    for name, value in zip(names, both, strict=True):
                        found[name][row] = value
        for name, by_row in found.items():
            values.put(name, by_row)
        return ()

    def _upper_half(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The tokens of the words in the upper half by influence, and of all words."""
        upper = torch.zeros(len(self.counts), self.items.real.shape[1], dtype=torch.bool)
        whole = torch.zeros_like(upper)
        for row in rows:
            count = self.counts[row]
            ties = self.draw(row, "ties of influence").random(count)
            chosen = top_set(tied_ranks(self.influence[row].whole), share_size(count, 0.5), ties)
            upper[row, :count] = torch.from_numpy(chosen)
            whole[row, :count] = True
        texts = torch.arange(len(upper))
        return self.items.tokens(texts, upper), self.items.tokens(texts, whole)


METHOD_MEASURES = ("order", "top_set", "top_word", "flip_top")
FLIP_PLACE = TOP_SHARES.index(FLIP_SHARE)


def _without_one_more(left: NDArray[np.bool_]) -> Sets:
    """The set without each of its words."""
    there = np.flatnonzero(left)
    sets = np.repeat(left[None], len(there), axis=0)
    sets[np.arange(len(there)), there] = False
    return sets


def _cross_gains(m: Influence) -> Iterator[float]:
    """The influence of the top word of each half by the other half, above its mean."""
    for one, other in (m.halves, m.halves[::-1]):
        yield mean_of_top(tied_ranks(one), other) - float(other.mean())


def _put_halves(values: "_Columns", influence: Mapping[int, Influence], reading: str = "") -> None:
    """How one half of the draws orders the words by the other half."""
    for which in (0, 1):
        agreed, stakes = {}, {}
        for row, m in influence.items():
            ranked, scored = m.halves[1 - which], m.halves[which]
            agreed[row] = pair_agreement(tied_ranks(ranked), scored)
            stakes[row] = pair_stakes(scored)
        values.put("half_sum", agreed, setting=f"{which + 1}{reading}")
        values.put("half_weight", stakes, setting=f"{which + 1}{reading}")


def _select(context: BatchContext, rows: Sequence[int]) -> BatchContext:
    """The context of some texts of a batch."""
    batch = context.batch.select(torch.tensor(rows))
    return BatchContext(
        context.subject, batch, context.seed, context.max_batch_tokens, context.clock
    )


@dataclass(frozen=True, eq=False)
class _Columns:
    """Values per text by key, NaN where a text has none."""

    texts: int
    columns: dict[ValueKey, NDArray[np.float64]] = field(default_factory=dict)

    def put(
        self,
        measure: str,
        rows: Mapping[int, float],
        method: str | None = None,
        setting: str | None = None,
    ) -> None:
        """Add a column from its values by row."""
        column = np.full(self.texts, np.nan)
        for row, value in rows.items():
            column[row] = value
        self.columns[ValueKey(measure, method, setting)] = column
