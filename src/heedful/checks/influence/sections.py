"""The section of `influence`: places, which attention, flips, and parts of the texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Any

from heedful.checks.influence.figures import PLACE_GROUPS, RANKINGS, flip_series, place_of
from heedful.checks.influence.names import (
    HALF,
    KIN,
    MASKING,
    NAME,
    NEAR_FULL,
    RANDOM,
    RELIABLE,
    SHUFFLED,
    SPLITS,
)
from heedful.checks.influence.rules import Ranking, mixed_answers
from heedful.checks.influence.titration import titration_section
from heedful.checks.spec import CONTROL_METHODS, SHARE, Evidence
from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.results.document import Cell, Section, Table, format_estimate, note_texts
from heedful.results.run_records import RunRecords, sanitise_text

COLUMNS = {
    "order": "order of all words",
    "top_set": "top words together",
    "top_word": "top word",
    "flip_top": "predictions changed",
}
READINGS = {
    MASKING: "Where words are masked instead of deleted",
    NEAR_FULL: "Where nearly all words are left",
}
SPLIT_NAMES = {
    "class": "predicted class",
    "length": "length",
    "confidence": "confidence",
    "leverage": "effect of attention",
}
Row = tuple[str | Cell, ...]


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """One section, or none where nothing was measured."""
    made = _InfluenceSection(records)
    return (made.build(),) if made.result.measured else ()


@dataclass(frozen=True)
class _InfluenceSection:
    """The parts of the section, from the records of one run."""

    records: RunRecords

    @property
    def result(self) -> CheckResult:
        return self.records.verdict.checks[NAME]

    @cached_property
    def evidence(self) -> Evidence:
        """What the rules of the check read."""
        epsilon = self.records.number_setting(NAME, "epsilon")
        found = Evidence(self.records.verdict.checks)
        return found if epsilon is None else replace(found, epsilon=epsilon)

    def build(self) -> Section:
        parts = (self._places(), self._methods(), self._flips(), self._strata())
        return Section(
            "influence",
            "Influence: does attention point at the words the output rests on?",
            words=(
                "The influence of a word is how much it changes the output, on average, when the "
                "words of a text are added in random order. Words that each suffice share their "
                "influence, and words that act only together have it.",
                *self._yardstick(),
            ),
            parts=tuple(one for one in parts if one is not None),
            short="Influence",
        )

    def _yardstick(self) -> Iterator[str]:
        """Number of orders, reliability, and second readings in words."""
        orders = self.records.number_setting(NAME, "orders")
        drawn = f"{orders:g} orders of the words of each text were drawn; two" if orders else "Two"
        yield (
            f"{drawn} halves of the orders agree to a reliability of "
            f"{format_estimate(self.result.of('reliability'))}; {RELIABLE:g} is needed for an "
            "answer."
        )
        own = Ranking(self.evidence).order.estimate
        for reading, words in READINGS.items():
            found = place_of(self.result, "order", "attention", reading)
            if not isnan(found.value):
                side = self._side(own, found)
                yield f"{words}, the place of attention is {format_estimate(found)}{side}."
            elif reading == MASKING:
                yield "Words were not masked: this model has nothing to put in their place."

    def _side(self, own: Estimate, found: Estimate) -> str:
        middle = self.evidence.halfway
        if (own.value > middle) == (found.value > middle):
            return " (the same side of the middle as where they are deleted)"
        return " (the other side of the middle from where they are deleted)"

    def _places(self) -> Section:
        """Attention and the controls, with the second readings."""
        heads = ("attention", "half of the orders", "shuffled attention")
        rows = [
            (name, *(self._place(measure, role, reading) for role in RANKINGS))
            for name, (measure, reading) in PLACE_GROUPS.items()
        ]
        shown = tuple(row for row in rows if any(isinstance(one, Cell) for one in row[1:]))
        table = Table(("place", *heads), shown)
        return Section(
            "influence-places",
            "Where attention stands between chance (0) and a ranking by influence itself (1)",
            folded=(
                Section("influence-places-numbers", "The numbers", tables=(table,)),
                titration_section(),
            ),
            figure_names=("influence_places",),
        )

    def _place(
        self, measure: str, ranking: tuple[str, str | None, str | None], reading: str | None
    ) -> str | Cell:
        role, method, setting = ranking
        asked = ", ".join(filter(None, (setting, reading))) or None
        found = place_of(self.result, measure, method, asked)
        muted = role != RANKINGS[0][0]
        return "" if isnan(found.value) else Cell(estimate=found, muted=muted)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each method that has a place."""
        described: Mapping[str, Any] = self.records.manifest.get("methods") or {}
        return {
            name: str((described.get(name) or {}).get("kind", ""))
            for name, one in self.result.by_method("order").items()
            if not isnan(one.value) and name not in CONTROL_METHODS
        }

    def _methods(self) -> Section | None:
        """Every attention-derived explanation, every other method, and kin of the yardstick."""
        if not self.kinds:
            return None
        attention = [
            name for name, kind in self.kinds.items() if kind == "attention" or name == "attention"
        ]
        kin = [name for name in self.kinds if name in KIN]
        others = [name for name in self.kinds if name not in {*attention, *kin}]
        tables = (
            self._table("Explanations derived from attention", attention),
            self._table("Other methods", others),
            self._table("Kin of the yardstick: they erase words themselves", kin),
        )
        return Section(
            "influence-methods",
            "Which attention?",
            words=tuple(self._which(attention, kin)),
            tables=tuple(one for one in tables if one is not None),
            folded=tuple(self._missing()),
        )

    def _which(self, attention: Sequence[str], kin: Sequence[str]) -> Iterator[str]:
        """Whether any explanation derived from attention explains the model, and which."""
        yield self._explaining(attention)
        yield (
            "This is by deletion alone. Second readings, parts of the texts and whether the "
            "output depends on it were tested for the attention under audit only, and the answer "
            "above is about that one. Intervals are not corrected for the number of methods."
        )
        if kin:
            yield (
                f"Kin of the yardstick: {', '.join(kin)}. They erase words as the yardstick does, "
                "so they must do well; they are never named as the better method."
            )

    def _explaining(self, attention: Sequence[str]) -> str:
        if not self._yardstick_holds():
            return (
                "There is no yardstick on these texts, so no explanation derived from attention "
                "can be said to explain this model."
            )
        names = [one for one in attention if Ranking(self.evidence, one).supported]
        count = len(attention)
        where = (
            "certainly above the middle in the order of all words, the top words together and the "
            "top word"
        )
        if not names:
            return (
                f"None of the {count} explanations derived from attention explains this model: "
                f"none is {where}."
            )
        verb = "explains" if len(names) == 1 else "explain"
        listed = sanitise_text(", ".join(names))
        return (
            f"Of {count} explanations derived from attention, {len(names)} {verb} this model as a "
            f"ranking of words ({where}): {listed}."
        )

    def _yardstick_holds(self) -> bool:
        e = self.evidence
        reliable = self.result.of("reliability").low >= RELIABLE
        found = Ranking(e, None, HALF).certainly_above
        return bool(reliable and found and not Ranking(e, "attention", SHUFFLED).certainly_above)

    def _table(self, caption: str, methods: Sequence[str]) -> Table | None:
        """The places of some methods, best order first; attention leads its table."""
        if not methods:
            return None
        order = self.result.by_method("order")
        ranked = sorted(methods, key=lambda one: (one != "attention", -order[one].value))
        rows = tuple(self._method_row(one) for one in ranked)
        return Table(("method", *COLUMNS.values(), "all above ½", "n"), rows, caption)

    def _method_row(self, method: str) -> Row:
        found = {name: self.result.by_method(name).get(method, NO_ESTIMATE) for name in COLUMNS}
        n = found["order"].n
        audited = "under audit" if method == "attention" else ""
        above = Ranking(self.evidence, method).supported
        return (
            Cell(sanitise_text(method), answer=audited, strong=method == "attention"),
            *(
                Cell(estimate=one, span=SHARE, note=note_texts(one, n)) if one.n else "–"
                for one in found.values()
            ),
            "yes" if above else "no",
            str(n),
        )

    def _missing(self) -> Iterator[Section]:
        """Methods without a place on this model, and why."""
        lost = [one for one in self.result.missing if one.measure == "order" and one.method]
        if lost:
            points = tuple(sanitise_text(f"{one.method}: {one.reason}") for one in lost)
            title = f"{len(lost)} methods that do not apply to this model"
            yield Section("influence-missing", title, points=points)

    def _flips(self) -> Section | None:
        """How often the prediction changes; the methods on the texts they were scored on."""
        flips = self.records.verdict.flips
        if flips is None or not flips.attention.n:
            return None
        rows: list[Row] = [
            (sanitise_text(name), *self._shares(whole, method))
            for name, whole, method in flip_series(self.records)
        ]
        rows.append(("attention minus random, paired", *self._shares(flips.difference, None)))
        words = (
            "The best method is chosen on one half of the texts and reported on the other; its "
            "figures by class are of both halves.",
        )
        table = Table(("words removed", "all texts", *self._class_names(), "n"), tuple(rows))
        return Section(
            "influence-flips",
            "How often does the prediction change without 20 % of the words?",
            words=words if flips.best_method else (),
            tables=(table,),
            figure_names=("influence_flips",),
        )

    def _class_names(self) -> list[str]:
        return [sanitise_text(name) for name in self._classes]

    @property
    def _classes(self) -> tuple[str, ...]:
        return tuple(self.result.by_class("flip_top", method="attention"))

    def _shares(self, whole: Estimate, method: str | None) -> Iterator[str | Cell]:
        """A share of all texts, by class, and its number of texts."""
        by_class = {} if method is None else self.result.by_class("flip_top", method=method)
        cells = (by_class.get(name, NO_ESTIMATE) for name in self._classes)
        muted = method == RANDOM
        for one in (whole, *cells):
            yield Cell(estimate=one, muted=muted) if one.n else ""
        yield str(whole.n)

    def _strata(self) -> Section | None:
        """Parts of the texts, with their share: where attention ranks words, and moves outputs."""
        rows = [*self._stratum_rows()]
        if not rows:
            return None
        head = (
            "by",
            "part",
            "share of the texts",
            "order of all words",
            "effect of attention",
            "n",
        )
        return Section(
            "influence-strata",
            "Does the answer hold for all kinds of texts?",
            words=tuple(self._mixed()),
            tables=(Table(head, tuple(rows)),),
        )

    def _mixed(self) -> Iterator[str]:
        e = self.evidence
        found = {
            "attention ranks words": [*mixed_answers(e, "order")],
            "the output depends on attention": [*mixed_answers(e, "leverage_top")],
        }
        for what, mixed in found.items():
            yield from (sanitise_text(f"That {what} {one}.") for one in mixed)
        if not any(found.values()):
            yield (
                "No division of the texts below has one part certainly above the line and another "
                "certainly below it, corrected for the number of tests (Holm)."
            )
        below = self.result.of("share_below", setting=f"{e.epsilon:g}")
        if below.n:
            low, high = f"{below.low:.0%}".rstrip("%"), f"{below.high:.0%}".rstrip("%")
            yield (
                f"In {100 * below.value:.0f} % [{low}, {high}] of the texts, moving attention "
                f"among the words changes the output by less than {e.epsilon:g}."
            )

    def _stratum_rows(self) -> Iterator[Row]:
        names = dict.fromkeys(
            str(row.slice) for row in self.result.rows("share") if row.slice is not None
        )
        for split in SPLITS:
            parts = [one for one in names if one.startswith(f"{split}: ")]
            for place, name in enumerate(parts):
                shown = "" if place else SPLIT_NAMES[split]
                yield (shown, *self._stratum_row(name))

    def _stratum_row(self, name: str) -> Iterator[str | Cell]:
        share = self.result.of("share", slice=name)
        order = self.result.of("order", method="attention", slice=name)
        leverage = self.result.of("leverage_words", slice=name)
        yield sanitise_text(name.partition(": ")[2])
        yield f"{100 * share.value:.0f} %"
        yield Cell(estimate=order, span=SHARE)
        yield Cell(estimate=leverage, span=SHARE) if leverage.n else "–"
        yield str(share.n)
