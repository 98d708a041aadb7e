"""The power of each check: how often it was right about subjects whose truth is known.

The table `power.json` is made by `python -m benchmarks.power` over the planted benchmark and ships
with the package. A check has a vote on a claim where it was measured on subjects like the one
under audit, and was right clearly more often than wrong there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import log
from typing import Any

from heedful.core.records import Estimate, Vote
from heedful.numerics.stats.detection_skill import KnownTruthAnswers, detection_rates, exact_rates

# of the skill, at the lower end of its interval: right less wrong in half of the cases, which is
# the skill of a check that is always right about one side and undecided about the other
MIN_SKILL = 0.5
NOT_MEASURED = "power not measured"
ARCHITECTURES = ("recurrent", "recurrent with a question", "transformer")
ANY = "any model"  # of rows that hold whatever the architecture and the texts
UNKNOWN = "unknown"  # no architecture of the table: there is no power, so no check has a vote
VOTE_SIGNS: Mapping[Vote, int] = {"supports": 1, "refutes": -1}


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """What kind of subject is audited, on texts of how many words on average, and how many texts.

    An architecture is "recurrent" (one attention over states, whatever made them), "recurrent with
    a question" (that attention is asked with a second text), "transformer", or "unknown".
    """

    architecture: str
    words: float
    texts: int

    @property
    def measured(self) -> bool:
        """Whether power was measured for this kind of model at all."""
        return self.architecture in ARCHITECTURES


@dataclass(frozen=True, slots=True)
class CheckPower:
    """How a check did on one claim where subjects are alike, with intervals over kinds."""

    claim: str
    check: str
    like: str
    kinds: int
    cases: int
    skill: Estimate
    miss: Estimate
    false_alarm: Estimate
    undecided: Estimate
    auc: Estimate | None

    @property
    def weight(self) -> float:
        """What its vote weighs: the lower end of its skill; 0 where that is not enough."""
        return self.skill.low if self.skill.low >= MIN_SKILL else 0.0

    def __str__(self) -> str:
        auc = "" if self.auc is None else f"ROC-AUC {self.auc}, "
        return (
            f"{auc}misses {self.miss.value:.0%}, false alarms {self.false_alarm.value:.0%}, "
            f"undecided {self.undecided.value:.0%} ({self.cases} cases of known truth, of "
            f"{self.kinds} kinds: {self.like})"
        )

    def to_dict(self) -> dict[str, Any]:
        """What verdict.json keeps of it."""
        named = {"miss": self.miss, "false_alarm": self.false_alarm, "undecided": self.undecided}
        shares = {name: [one.value, one.low, one.high] for name, one in named.items()}
        auc = self.auc and [self.auc.value, self.auc.low, self.auc.high]
        known = {"auc": auc, **shares, "kinds": self.kinds, "cases": self.cases, "like": self.like}
        return {**known, "weight": self.weight, "description": str(self)}


@dataclass(frozen=True)
class PowerTable:
    """The powers that hold for a model like the audited one."""

    where: AuditSetting
    rows: tuple[Mapping[str, Any], ...]
    known: dict[tuple[str, str], CheckPower | None] = field(default_factory=dict, compare=False)

    def of(self, claim: str, check: str) -> CheckPower | None:
        """The power of a check on a claim; None where it was not measured on such subjects."""
        if (claim, check) not in self.known:
            mine = [one for one in self.rows if one["claim"] == claim and one["check"] == check]
            row = self._nearest(mine)
            self.known[claim, check] = None if row is None else _power(row)
        return self.known[claim, check]

    def _nearest(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Of the same architecture, the nearest length, and no more texts than there are.

        Texts longer or shorter than all that were measured have the row of the nearest length: a
        line between lengths that are close would take a vote away for a word more. What is printed
        of a power names the length at which it was measured. A check whose power is measured over
        all kinds together has one row for any model.
        """
        for one in rows:
            if one["architecture"] == ANY:
                return one
        alike = [
            one
            for one in rows
            if one["architecture"] == self.where.architecture and one["texts"] <= self.where.texts
        ]
        lengths = {one["words"] for one in alike} - {None}
        if lengths:
            here = max(self.where.words, 1.0)
            nearest = min(lengths, key=lambda words: abs(log(words / here)))
            alike = [one for one in alike if one["words"] == nearest]
        return max(alike, key=lambda one: int(one["texts"]), default=None)


def powers_for(where: AuditSetting) -> PowerTable:
    """The shipped table as it holds for such a subject."""
    return PowerTable(where, tuple(read_bundled_powers()["rows"]))


@cache
def read_bundled_powers() -> Mapping[str, Any]:
    """The table that ships with the package."""
    table = files("heedful.pipeline.verdict").joinpath("power.json")
    found: Mapping[str, Any] = json.loads(table.read_text(encoding="utf-8"))
    return found


def _power(row: Mapping[str, Any]) -> CheckPower | None:
    """The power in a row of the table; None where kinds of only one truth are left."""
    kinds = [
        KnownTruthAnswers(truth, (1,) * said_for + (-1,) * against + (0,) * undecided)
        for truth, said_for, against, undecided in row["kinds"].values()
    ]
    found = exact_rates(kinds) if row["architecture"] == ANY else detection_rates(kinds)
    if found is None:
        return None
    cases = sum(len(one.answers) for one in kinds)
    auc = row["auc"] and Estimate(*[*row["auc"], cases])
    words = "" if row["words"] is None else f" of about {row['words']} words"
    like = f"{row['architecture']}, {row['texts']} texts{words}"
    rates = found.skill, found.miss, found.false_alarm, found.undecided
    return CheckPower(row["claim"], row["check"], like, len(kinds), cases, *rates, auc)


def describe_power(power: CheckPower | None) -> str:
    """In words, or that it was not measured."""
    return NOT_MEASURED if power is None else str(power)
