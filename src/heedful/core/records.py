"""What an audit records: measurements, estimates and the verdict. No torch; versioned JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import RunError

SCHEMA = 2
Claim = Literal["used", "needed", "ranks", "exclusive", "robust"]
CLAIMS: tuple[Claim, ...] = get_args(Claim)
ClaimAnswer = Literal["supported", "refuted", "undecided", "not tested"]
Vote = Literal["supports", "refutes", "undecided", "no vote"]
Answer = Literal["faithful", "unfaithful", "undecided"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
WORD_SCORES = ("attention", "adversarial", "one_hot_gradient", "leave_one_out")
KEY_COLUMNS = ("method", "layer", "head", "seed", "setting")


class MeasureKey(NamedTuple):
    """The columns that identify one series of values: a check, a measure and what it is keyed by.

    `method`, `layer`, `head` and `seed` are None where unused. `setting` holds whatever else tells
    rows apart: a λ, a share of the words, a way of removing them.
    """

    check: str
    measure: str
    method: str | None = None
    layer: int | None = None
    head: int | None = None
    seed: int | None = None
    setting: str | None = None

    @property
    def plain(self) -> bool:
        """Whether the key is the measure alone."""
        return all(getattr(self, name) is None for name in KEY_COLUMNS)

    def __str__(self) -> str:
        """As users write it: check.measure[method, layer 3, head 5, setting].

        >>> str(MeasureKey("faithfulness", "flip", method="lime"))
        'faithfulness.flip[lime]'
        """
        name = f"{self.check}.{self.measure}" if self.check else self.measure
        parts = describe_key(self)
        return f"{name}[{parts}]" if parts else name


def describe_key(key: "MeasureKey | EstimateRow | Measurement") -> str:
    """What a key adds to its measure, in words; empty for a plain measure.

    >>> describe_key(MeasureKey("agreement", "tau_leave_one_out", layer=3, head=5))
    'layer 3, head 5'
    """
    numbered = ((name, getattr(key, name)) for name in ("layer", "head", "seed"))
    parts = [f"{name} {value}" for name, value in numbered if value is not None]
    return ", ".join([*filter(None, (key.method,)), *parts, *filter(None, (key.setting,))])


class Series(NamedTuple):
    """A measure, of one method where it is measured by method."""

    measure: str
    method: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One measure of one check on a batch of texts; NaN marks an undefined value."""

    measure: str
    values: NDArray[np.float64]
    setting: str | None = None
    method: str | None = None
    layer: int | None = None
    head: int | None = None
    seed: int | None = None

    def key(self, check: str) -> MeasureKey:
        """The columns that identify these values."""
        return MeasureKey(check, self.measure, *(getattr(self, name) for name in KEY_COLUMNS))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval and the number of texts it rests on."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if self.n < 2:
            return f"{self.value:z.3f} (n = {self.n}, no interval)"
        if self.low != self.low:  # a p-value has no interval
            return f"{self.value:z.3f}"
        return f"{self.value:z.3f} [{self.low:z.3f}, {self.high:z.3f}]"


NO_ESTIMATE = Estimate(float("nan"), float("nan"), float("nan"), 0)


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """An estimate of a measure by method, layer, head, seed, setting, class or slice.

    `predicted` is the predicted class the texts share; JSON calls it `class`.
    """

    measure: str
    estimate: Estimate
    method: str | None = None
    layer: int | None = None
    head: int | None = None
    seed: int | None = None
    setting: str | None = None
    predicted: str | None = None
    slice: str | None = None
    undefined: int = 0

    def to_dict(self) -> dict[str, Any]:
        """A row of verdict.json: keys that are unused are left out."""
        names = {"class" if name == "predicted" else name: getattr(self, name) for name in ROW_KEYS}
        used = {name: value for name, value in names.items() if value is not None}
        counted = {"undefined": self.undefined} if self.undefined else {}
        return {"measure": self.measure, **used, **asdict(self.estimate), **counted}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "EstimateRow":
        """Read a row of verdict.json."""
        keys = {name: raw.get("class" if name == "predicted" else name) for name in ROW_KEYS}
        return cls(raw["measure"], _estimate(raw), **keys, undefined=raw.get("undefined", 0))


ROW_KEYS = (*KEY_COLUMNS, "predicted", "slice")


@dataclass(frozen=True, slots=True)
class MissingMeasure:
    """A measure that the model or the data does not allow, and the reason."""

    measure: str
    reason: str
    method: str | None = None

    def __str__(self) -> str:
        return f"{self.measure} of {self.method}" if self.method else self.measure


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The answer to one claim and the checks it rests on.

    `further` is the number of texts that would settle an undecided claim, where that is known.
    """

    answer: ClaimAnswer
    why: str
    checks: tuple[str, ...] = ()
    further: int | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found: its vote, its plain estimates, and rows by method, layer, class …

    `undefined` counts texts on which a plain measure has no value (a τ of one token, say).
    `missing` lists measures that this model does not allow. `power` gives, by claim, how often the
    check is right where the truth is known.
    """

    answer: Vote
    why: str
    estimates: Mapping[str, Estimate]
    by: tuple[EstimateRow, ...] = ()
    undefined: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[MissingMeasure, ...] = ()
    power: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether the check has any estimate at all."""
        return bool(self.estimates or self.by)

    def of(self, measure: str, **keys: Any) -> Estimate:
        """The estimate of a measure under exactly these keys; one without a value if absent."""
        if not keys:
            return self.estimates.get(measure, NO_ESTIMATE)
        return next((row.estimate for row in self._exactly(measure, keys)), NO_ESTIMATE)

    def rows(self, measure: str, **keys: Any) -> list[EstimateRow]:
        """The rows of a measure that have these keys, whatever else they have."""
        return [
            row
            for row in self.by
            if row.measure == measure and all(getattr(row, k) == v for k, v in keys.items())
        ]

    def by_method(self, measure: str, **keys: Any) -> dict[str, Estimate]:
        """The estimates of a measure by method, where nothing but `keys` tells rows apart."""
        return {str(row.method): row.estimate for row in self._exactly(measure, keys, "method")}

    def by_class(self, measure: str, **keys: Any) -> dict[str, Estimate]:
        """The estimates of a measure by predicted class."""
        rows = self._exactly(measure, keys, "predicted")
        return {str(row.predicted): row.estimate for row in rows}

    def by_layer(self, measure: str) -> dict[tuple[int, int | None], Estimate]:
        """The estimates of a measure by layer and head; head None is the mean over heads."""
        return {
            (row.layer, row.head): row.estimate
            for row in self.rows(measure)
            if row.layer is not None and row.predicted is None and row.method is None
        }

    @property
    def classes(self) -> tuple[str, ...]:
        """The predicted classes that have rows."""
        return tuple(dict.fromkeys(row.predicted for row in self.by if row.predicted is not None))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have rows, in their order."""
        return tuple(dict.fromkeys(row.method for row in self.by if row.method is not None))

    def _exactly(
        self, measure: str, keys: Mapping[str, Any], axis: str | None = None
    ) -> Iterator[EstimateRow]:
        """The rows with these keys, with any value of `axis`, and with no other key."""
        others = set(ROW_KEYS) - keys.keys() - {axis}
        for row in self.rows(measure, **keys):
            known = axis is None or getattr(row, axis) is not None
            if known and all(getattr(row, name) is None for name in others):
                yield row

    def to_dict(self) -> dict[str, Any]:
        """The entry of verdict.json."""
        return {
            "answer": self.answer,
            "why": self.why,
            "estimates": {name: asdict(one) for name, one in self.estimates.items()},
            "by": [row.to_dict() for row in self.by],
            "undefined": dict(self.undefined),
            "missing": [
                {key: value for key, value in asdict(one).items() if value is not None}
                for one in self.missing
            ],
            "power": self.power,
        }


@dataclass(frozen=True, slots=True)
class MethodEstimate:
    """A method and an estimate of it."""

    method: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class BetterMethod:
    """The method that explains the model better than attention.

    `order` is its place between chance (0) and the measured ceiling (1) on the influence of words;
    in runs of schema 1, between shuffled attention and leave-one-out's own ranking.
    """

    method: str
    order: Estimate

    def __str__(self) -> str:
        return f"{self.method} ranks words better: order {self.order}."


@dataclass(frozen=True, slots=True)
class Degree:
    """Graded faithfulness; `of` names the statistic: `order`, or `agreement` in older runs."""

    of: str
    estimate: Estimate


FLIPS = ("attention", "random", "difference", "best_set")


@dataclass(frozen=True, slots=True)
class Flips:
    """The share of the texts whose prediction changes without a fifth of their words.

    Args:
        attention: Without the words of the largest attention.
        random: Without as many random words.
        difference: The first minus the second, over the same texts.
        best_set: Without the best set that a search finds; no method is expected to reach it.
        best_method: Without the top words of the best method, chosen on other texts.
    """

    attention: Estimate
    random: Estimate
    difference: Estimate
    best_set: Estimate = NO_ESTIMATE
    best_method: MethodEstimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """The entry of verdict.json."""
        best = self.best_method
        return {
            **{name: asdict(getattr(self, name)) for name in FLIPS},
            "best_method": best and {"method": best.method, **asdict(best.estimate)},
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Flips":
        """Read the entry of verdict.json."""
        best = raw["best_method"]
        attention, random, difference, best_set = (_estimate(raw[name]) for name in FLIPS)
        method = best and MethodEstimate(best["method"], _estimate(best))
        return cls(attention, random, difference, best_set, method)


@dataclass(frozen=True, slots=True)
class ModelScore:
    """How well the model does on the audited texts that have a label.

    `majority` is the accuracy of always naming the most frequent class.
    """

    accuracy: Estimate
    majority: float
    n_by_class: Mapping[str, int]

    @property
    def at_chance(self) -> bool:
        """Whether the model is not certainly better than naming the most frequent class."""
        return not self.accuracy.low > self.majority

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "ModelScore":
        """Read the entry of verdict.json."""
        return cls(_estimate(raw["accuracy"]), raw["majority"], raw["n_by_class"])


@dataclass(frozen=True, slots=True)
class TextCounts:
    """How many texts were audited, and how many of them are distinct.

    `seen_in_training` is None where the texts the model was trained on are not known, `clusters`
    where none were named. `not_judged` have too few words for a ranking of them to be judged.
    `note` is a sentence about intervals that rest on too few.
    """

    audited: int
    distinct: int
    seen_in_training: int | None = None
    clusters: int | None = None
    not_judged: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of an audit, with the claims and estimates it rests on.

    `multiverse` has one row per alternative analysis choice, with the answer to each claim then.
    `places` are those of attention between chance (0) and the measured ceiling (1), by measure.
    """

    answer: Answer
    why: str
    degree: Degree | None
    instead: BetterMethod | None
    claims: Mapping[str, ClaimResult]
    checks: Mapping[str, CheckResult]
    multiverse: tuple[Mapping[str, str], ...] = ()
    places: Mapping[str, Estimate] = field(default_factory=dict)
    flips: Flips | None = None
    score: ModelScore | None = None
    texts: TextCounts | None = None

    def to_json(self) -> str:
        """The text of verdict.json; numbers that do not exist are null."""
        degree = self.degree and {"of": self.degree.of, **asdict(self.degree.estimate)}
        raw = {
            "schema": SCHEMA,
            "answer": self.answer,
            "why": self.why,
            "degree": degree,
            "places": {name: asdict(one) for name, one in self.places.items()} or None,
            "flips": self.flips and self.flips.to_dict(),
            "score": self.score and asdict(self.score),
            "texts": self.texts and asdict(self.texts),
            "instead": self.instead and asdict(self.instead),
            "claims": {name: asdict(one) for name, one in self.claims.items()},
            "checks": {name: one.to_dict() for name, one in self.checks.items()},
            "multiverse": self.multiverse,
        }
        return json.dumps(finite_or_none(raw), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """Read verdict.json of schema 2; `results.schema1` upgrades older ones first."""
        raw = parse_verdict(text)
        if raw.get("schema") != SCHEMA:
            raise RunError(f"verdict.json has schema {raw.get('schema')!r}; this reads {SCHEMA}.")
        return cls.from_dict(raw)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Verdict":
        """Read the content of verdict.json."""
        try:
            degree, instead = raw["degree"], raw["instead"]
            return cls(
                raw["answer"],
                raw["why"],
                degree and Degree(degree["of"], _estimate(degree)),
                instead and BetterMethod(instead["method"], _estimate(instead["order"])),
                {name: _claim(one) for name, one in raw["claims"].items()},
                {name: _check(one) for name, one in raw["checks"].items()},
                tuple(raw.get("multiverse", ())),
                **_measured_since(raw),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"verdict.json is incomplete or damaged: {error!r}.") from error


def parse_verdict(text: str) -> dict[str, Any]:
    """The JSON object of verdict.json, of any schema."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(f"verdict.json is damaged: {error}.") from error
    if not isinstance(raw, dict):
        raise RunError("verdict.json is damaged: it must hold a JSON object.")
    return raw


def finite_or_none(value: Any) -> Any:
    """Ready for JSON: numbers that do not exist are None."""
    if isinstance(value, Mapping):
        return {key: finite_or_none(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _estimate(raw: Mapping[str, Any]) -> Estimate:
    value, low, high = (
        float("nan") if raw[k] is None else float(raw[k]) for k in ("value", "low", "high")
    )
    return Estimate(value, low, high, raw["n"])


def _measured_since(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that older runs do not have."""
    flips, score, texts = (raw.get(name) for name in ("flips", "score", "texts"))
    return {
        "places": {name: _estimate(one) for name, one in (raw.get("places") or {}).items()},
        "flips": flips and Flips.from_dict(flips),
        "score": score and ModelScore.from_dict(score),
        "texts": texts and TextCounts(**texts),
    }


def _claim(raw: Mapping[str, Any]) -> ClaimResult:
    return ClaimResult(raw["answer"], raw["why"], tuple(raw["checks"]), raw.get("further"))


def _check(raw: Mapping[str, Any]) -> CheckResult:
    return CheckResult(
        raw["answer"],
        raw["why"],
        {name: _estimate(one) for name, one in raw["estimates"].items()},
        tuple(map(EstimateRow.from_dict, raw["by"])),
        raw.get("undefined", {}),
        tuple(MissingMeasure(**one) for one in raw.get("missing", ())),
        raw.get("power", {}),
    )
