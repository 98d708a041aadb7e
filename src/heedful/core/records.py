"""What is kept of an audit: measurements, estimates, the verdict. No torch; versioned JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import RunError

SCHEMA = 1
Claim = Literal["used", "needed", "ranks", "exclusive", "robust"]
CLAIMS: tuple[Claim, ...] = get_args(Claim)
Vote = Literal["for", "against", "undecided", "not examined", "no vote"]
Answer = Literal["faithful", "unfaithful", "undecided"]
WORD_SCORES = ("attention", "adversarial", "one_hot_gradient", "leave_one_out")
ANSWERS: tuple[Answer, ...] = get_args(Answer)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One measure of one check on a batch of instances; NaN marks a value that is undefined."""

    measure: str
    values: NDArray[np.float64]
    setting: str | None = None


SHARE_PREFIXES = ("top1_", "flip_top", "can_flip")  # what of every text is true or false


def is_share(measure: str) -> bool:
    """Whether a measure is 0 or 1 of every text, so that its mean is a share of texts.

    >>> is_share("top1_leave_one_out"), is_share("tau_leave_one_out")
    (True, False)
    """
    return measure.startswith(SHARE_PREFIXES)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval and the number of instances it rests on."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if self.n < 2:
            return f"{self.value:z.3f} (n = {self.n}, no interval)"
        if self.low != self.low:  # a p-value, say
            return f"{self.value:z.3f}"
        return f"{self.value:z.3f} [{self.low:z.3f}, {self.high:z.3f}]"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What was found about one claim, and the checks it rests on.

    `further` is the number of texts that would settle an undecided one, where that can be said.
    """

    answer: Vote
    why: str
    checks: tuple[str, ...] = ()
    further: int | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found: its vote, its estimates overall and by predicted class.

    `undefined` counts instances on which a measure has no value (a τ of one token, say);
    `missing` says of a measure the check promises why this subject has none; `power` says by claim
    how often the check is right where the truth is known.
    """

    answer: Vote
    why: str
    estimates: Mapping[str, Estimate]
    by_class: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    undefined: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    power: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BetterMethod:
    """The method that explains the model better than attention, and how much it recovers.

    The share has an interval, and the number of texts it rests on, in runs that kept them.
    """

    method: str
    recovered_share: float
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    def __str__(self) -> str:
        told = f"{self.method} recovers {self.recovered_share:.0%}"
        ends = f" [{self.low:.0%}, {self.high:.0%}]" if self.low == self.low else ""
        return f"{told}{ends} of the leave-one-out ranking."


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of an audit, with the claims and estimates it rests on.

    `multiverse` has a row for each other choice that could have been made, with the answers then.
    """

    answer: Answer
    why: str
    degree: Estimate | None
    instead: BetterMethod | None
    claims: Mapping[str, ClaimResult]
    checks: Mapping[str, CheckResult]
    multiverse: tuple[Mapping[str, str], ...] = ()

    def to_json(self) -> str:
        """The text of verdict.json; numbers that do not exist are null."""
        return json.dumps(
            nan_to_none({"schema": SCHEMA, **asdict(self)}), indent=1, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """Read verdict.json back."""
        try:
            raw = json.loads(text)
            schema = raw.get("schema")
        except (ValueError, AttributeError, RecursionError) as error:
            raise RunError(f"verdict.json is damaged: {error}.") from error
        if schema != SCHEMA:
            raise RunError(f"verdict.json has schema {schema!r}; this reads {SCHEMA}.")
        try:
            return cls._of(raw)
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(f"verdict.json is incomplete or damaged: {error!r}.") from error

    @classmethod
    def _of(cls, raw: dict[str, Any]) -> "Verdict":
        degree, instead = raw["degree"], raw["instead"]
        return cls(
            raw["answer"],
            raw["why"],
            _estimate(degree) if degree else None,
            _better_method(instead) if instead else None,
            {name: _claim(one) for name, one in raw["claims"].items()},
            {name: _check(one) for name, one in raw["checks"].items()},
            tuple(raw.get("multiverse", ())),
        )


def nan_to_none(value: Any) -> Any:
    """Ready for JSON: numbers that do not exist are None."""
    if isinstance(value, Mapping):
        return {key: nan_to_none(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [nan_to_none(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _estimate(raw: dict[str, Any]) -> Estimate:
    value, low, high = (
        float("nan") if raw[k] is None else raw[k] for k in ("value", "low", "high")
    )
    return Estimate(value, low, high, raw["n"])


def _better_method(raw: dict[str, Any]) -> BetterMethod:
    known = {key: value for key, value in raw.items() if value is not None}  # null: no interval
    return BetterMethod(**known)


def _claim(raw: dict[str, Any]) -> ClaimResult:
    return ClaimResult(raw["answer"], raw["why"], tuple(raw["checks"]), raw.get("further"))


def _check(raw: dict[str, Any]) -> CheckResult:
    def table(rows: dict[str, Any]) -> dict[str, Estimate]:
        return {name: _estimate(one) for name, one in rows.items()}

    by_class = {name: table(rows) for name, rows in raw["by_class"].items()}
    return CheckResult(
        raw["answer"],
        raw["why"],
        table(raw["estimates"]),
        by_class,
        raw["undefined"],
        raw["missing"],
        raw.get("power", {}),
    )
