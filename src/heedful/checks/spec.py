"""The description of a check: question, measures, rules, sentences and figures. No torch.

A check's folder holds its code and, in `spec.py`, a `CheckSpec`. The verdict, the terminal card,
the page, the model card, comparisons, `heedful list` and `heedful check` read the description, so
none of them knows a check by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from math import log
from typing import TYPE_CHECKING, Any, Literal

from heedful.core.records import (
    NO_ESTIMATE,
    CheckResult,
    Claim,
    Estimate,
    MissingMeasure,
    Series,
    Vote,
)
from heedful.numerics.stats.bootstrap import Place

if TYPE_CHECKING:
    from heedful.results.document import FigureData, Section
    from heedful.results.run_records import RunRecords

Direction = Literal["up", "down", "none"]
Role = Literal["measure", "control", "reference"]
ValueRange = tuple[float, float]
RANK: ValueRange = (-1.0, 1.0)
SHARE: ValueRange = (0.0, 1.0)
JSD: ValueRange = (0.0, log(2))
JSD_DIFFERENCE: ValueRange = (-log(2), log(2))
GAIN: ValueRange = (-0.2, 0.2)
CONTROL_METHODS = ("random", "uniform")
HALFWAY = 0.5  # nearer to the reference than to the control, or not
NO_PLACE = Place(NO_ESTIMATE, NO_ESTIMATE)


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a check and how to read it.

    Args:
        name: Plain name, as in the `measure` column.
        label: What it is, in a few words. `{method}` stands for the method of a row.
        direction: Where values support the check's claim.
        role: Whether it is the measure itself, a control or a reference.
        range: The values it can take, or that are worth showing; the ends of its scale.
        kind: `mean` of values per text, `share` of texts for which it holds, or `p` value.
        by: Key columns that its rows use: method, layer, head, seed, setting.
        short: Heading of its column in a table of methods.
        averaged: False for values that are kept per text and have no mean.
        label_by_method: Label of a row of one method, where the plain row has another.
    """

    name: str
    label: str
    direction: Direction = "none"
    role: Role = "measure"
    range: ValueRange = SHARE
    kind: Literal["mean", "share", "p"] = "mean"
    by: tuple[str, ...] = ()
    short: str = ""
    averaged: bool = True
    label_by_method: str = ""

    def of_method(self, method: str | None) -> "Measure":
        """The same measure of one method: its name in the label, controls marked as such."""
        label = (self.label_by_method or self.label).replace("{method}", method or "a method")
        if method not in CONTROL_METHODS:
            return replace(self, label=label)
        return replace(self, label=label, role="control", direction="none")


@dataclass(frozen=True)
class Evidence:
    """Everything that rules may read.

    Args:
        results: What each check found.
        settings: The settings each check ran with.
        places: By check, where attention stands between a control (0) and a reference (1).
        epsilon: The change of output, in total variation distance, that counts as none.
        halfway: The place from which attention is nearer to its reference than to its control.
    """

    results: Mapping[str, CheckResult]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    epsilon: float = 0.05
    halfway: float = HALFWAY

    def of(self, check: str, measure: str, **keys: Any) -> Estimate:
        """An estimate of a check; one without a value where the check has none."""
        result = self.results.get(check)
        return NO_ESTIMATE if result is None else result.of(measure, **keys)

    def place(self, check: str) -> Place:
        """Attention's place by a check; one without a value where there is none."""
        return self.places.get(check, NO_PLACE)

    def setting(self, check: str, name: str) -> Any:
        """A setting that the check ran with."""
        return self.settings[check][name]


OpenFigure = tuple[Estimate, float]


@dataclass(frozen=True)
class VoteRule:
    """A vote, the condition for it, and the sentence that explains it. NaN satisfies no rule.

    `open_figures` are the figures that keep a vote undecided, each with its line: more texts would
    settle them. Without it that is the figure of the vote.
    """

    answer: Vote
    when: Callable[[Evidence], bool]
    why: Callable[[Evidence], str]
    open_figures: Callable[[Evidence], tuple[OpenFigure, ...]] | None = None


@dataclass(frozen=True)
class ClaimVote:
    """How a check votes on one claim.

    Args:
        claim: The claim.
        source: The evidence it uses. Of several checks with the same source, one votes.
        figure: The estimate that the rules compare with `line`.
        line: The value that separates the answers.
        rules: The rules, first that holds.
        falls: Whether a lower figure supports the claim.
        leading: The measures a page shows for it; those of the check by default.
    """

    claim: Claim
    source: str
    figure: Callable[[Evidence], Estimate]
    line: Callable[[Evidence], float]
    rules: tuple[VoteRule, ...]
    falls: bool = False
    leading: tuple[str, ...] = ()

    def score(self, evidence: Evidence) -> float:
        """Its figure, higher where it supports the claim."""
        value = self.figure(evidence).value
        return -value if self.falls else value


@dataclass(frozen=True, slots=True)
class PlaceSpec:
    """The measures between which a check places attention; a control of None is 0."""

    own: Series
    control: Series | None
    reference: Series


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """The description of a check.

    Args:
        name: The name users type.
        question: The question it answers, in one sentence.
        measures: Its measures, in the order they are shown.
        implementation: The class of the check, or "package.module:Class", which is imported when
            the check is built.
        claim: The claim its answer is about; None where it describes and has no vote.
        source: The paper, in brackets after the question.
        title: A few words that introduce its sentence on the card. Checks with a title show a
            sentence there, the others their table of measures.
        leading: The measures that stand for the check beside a claim.
        rules: Its answer: the first rule that holds. Without rules a check has no vote and its
            leading measures are listed.
        votes: How it votes on claims; no vote counts unless its power is measured.
        place: Where attention stands between a control and a reference.
        sliced: Measures that are also estimated for parts of the texts: by class, by length.
        quick: Upper bounds of settings for `--quick`.
        retrains: Whether it retrains the model.
        over_seeds: Measures with a row for each seed, and how their values are averaged over seeds.
        differences: Measures that are a difference of two others. A side without a method is of
            the same method as the difference.
        by_default: Whether it runs when no checks are named.
        takes_methods: Whether `--methods` sets its `methods`: `always`, or only when the check is
            `named` rather than part of `all`, because each method is expensive.
        sections: Makes the sections of the page that are the check's own.
        figures: Makes its figures.
        summary: A sentence on the card that sums up the measures of `summed_up`, which are not
            listed there; empty where they were not taken.
        published: Statistics of the papers that stand beside the answer, with their names there.
        splits: Divisions of the texts that the check makes and shows itself, beside the slices of
            the audit.
    """

    name: str
    question: str
    measures: tuple[Measure, ...]
    implementation: "str | type"
    claim: Claim | None = None
    source: str = ""
    title: str = ""
    leading: tuple[str, ...] = ()
    rules: tuple[VoteRule, ...] = ()
    votes: tuple[ClaimVote, ...] = ()
    place: PlaceSpec | None = None
    sliced: tuple[str, ...] = ()
    quick: Mapping[str, int] = field(default_factory=dict)
    retrains: bool = False
    over_seeds: Mapping[str, Literal["mean", "median"]] = field(default_factory=dict)
    differences: Mapping[str, tuple[Series, Series]] = field(default_factory=dict)
    by_default: bool = True
    takes_methods: Literal["always", "named", "never"] = "never"
    sections: "Callable[[RunRecords], Sequence[Section]] | None" = None
    figures: "Callable[[RunRecords], Sequence[FigureData]] | None" = None
    summary: Callable[[CheckResult], str] | None = None
    summed_up: tuple[str, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)
    splits: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class of the check; its module is imported on first use."""
        if not isinstance(self.implementation, str):
            return self.implementation
        module, _, name = self.implementation.partition(":")
        return getattr(import_module(module), name)

    def measure(self, name: str, method: str | None = None) -> Measure:
        """The measure of that name; a bare one where the check does not declare it."""
        for one in self.measures:
            if one.name == name:
                return one.of_method(method) if method is not None else one
        return Measure(name, "")

    def to_dict(self) -> dict[str, Any]:
        """What manifest.json keeps, so that a page needs no plug-in to label its measures."""
        return {
            "question": self.question,
            "claim": self.claim,
            "title": self.title,
            "leading": list(self.leading),
            "measures": [asdict(one) for one in self.measures],
        }

    @classmethod
    def from_dict(cls, name: str, raw: Mapping[str, Any]) -> "CheckSpec":
        """The description of a check whose package is not installed."""
        measures = tuple(
            Measure(**{**one, "range": tuple(one["range"]), "by": tuple(one["by"])})
            for one in raw.get("measures", ())
        )
        question, title = (raw.get(key) or "" for key in ("question", "title"))
        claim, leading = raw.get("claim"), tuple(raw.get("leading", ()))
        return cls(name, question, measures, "", claim=claim, title=title, leading=leading)


def apply_rules(rules: Sequence[VoteRule], evidence: Evidence) -> tuple[Vote, str]:
    """The answer and the sentence of the first rule that holds."""
    rule = first_rule(rules, evidence)
    sentence = rule.why(evidence)
    return rule.answer, sentence[:1].upper() + sentence[1:]


def first_rule(rules: Sequence[VoteRule], evidence: Evidence) -> VoteRule:
    """The first rule that holds."""
    return next(rule for rule in rules if rule.when(evidence))


def none_open(_: Evidence) -> tuple[OpenFigure, ...]:
    """The open figures of a vote that more texts would not settle."""
    return ()


def always(_: Evidence) -> bool:
    """The condition of the last rule."""
    return True


def halfway(evidence: Evidence) -> float:
    """The place from which attention is nearer to its reference than to its control."""
    return evidence.halfway


def estimate_of(check: str, measure: str) -> Callable[[Evidence], Estimate]:
    """A figure for rules: an estimate of a check."""
    return lambda evidence: evidence.of(check, measure)


def setting_of(check: str, name: str) -> Callable[[Evidence], float]:
    """A line for rules: a number among the settings of a check."""
    return lambda evidence: float(evidence.settings[check][name])


def not_run(check: str) -> VoteRule:
    """The rule for a check that could not measure anything: it gives the reason."""

    def why(evidence: Evidence) -> str:
        missing = evidence.results[check].missing
        reason = missing[0].reason if missing else "it was not measured"
        return f"{reason.rstrip('.')}."

    return VoteRule("undecided", lambda e: not e.results[check].measured, why)


def describe_only(check: str, describe: Callable[[CheckResult], str]) -> tuple[VoteRule, ...]:
    """The rules of a check without a vote: a sentence about its result, or why it has none."""
    return not_run(check), VoteRule("no vote", always, lambda e: describe(e.results[check]))


def rules_by_interval(
    figure: Callable[[Evidence], Estimate],
    line: Callable[[Evidence], float],
    *,
    above: Callable[[Evidence], str],
    below: Callable[[Evidence], str],
    around: Callable[[Evidence], str],
    falls: bool = False,
) -> tuple[VoteRule, VoteRule, VoteRule]:
    """Supports where the interval lies above the line (below it, if `falls`), refutes beyond it."""
    return (
        VoteRule("refutes" if falls else "supports", lambda e: figure(e).low > line(e), above),
        VoteRule("supports" if falls else "refutes", lambda e: figure(e).high < line(e), below),
        VoteRule("undecided", always, around),
    )


def defined_by_method(result: CheckResult, measure: str) -> dict[str, Estimate]:
    """The estimates of a measure by method, without those that have no value."""
    return {name: one for name, one in result.by_method(measure).items() if one.n}


def group_missing(missing: Sequence[MissingMeasure]) -> list[tuple[str, str]]:
    """Each reason once, with the first measure it applies to and how many more.

    >>> why, so = MissingMeasure("flip", "why", "lime"), MissingMeasure("flip", "so", "flow")
    >>> group_missing((why, replace(why, measure="worst"), so))
    [('flip of lime and 1 more', 'why'), ('flip of flow', 'so')]
    """
    groups: dict[str, list[str]] = {}
    for one in missing:
        groups.setdefault(one.reason, []).append(str(one))
    return [
        (f"{first} and {len(rest)} more" if rest else first, reason)
        for reason, (first, *rest) in groups.items()
    ]
