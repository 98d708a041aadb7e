"""The record of a comparison: differences with intervals and p-values; versioned JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from heedful.core.records import KEY_COLUMNS, Estimate, MeasureKey, finite_or_none

SCHEMA = 2
ComparisonKind = Literal["runs", "methods"]
Correction = Literal["holm", "bh", "none"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
DEGREE_KEY = MeasureKey("", "degree")
OVER_TEXTS, OVER_SEEDS = "texts", "texts and seeds"
MAIN_FAMILY = "measures"  # the family of plain measures and of those by method


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of the second side minus that of the first, on the same texts unless unpaired.

    `over` is what was resampled; `corrected` is p corrected for the number of tests in `family`;
    `undefined` counts the texts without a value, on either side.
    """

    key: MeasureKey
    first: Estimate
    second: Estimate
    difference: Estimate
    p: float
    over: str = OVER_TEXTS
    undefined: tuple[int, int] = (0, 0)
    corrected: float = float("nan")
    certain: bool = False

    @property
    def family(self) -> str:
        """The tests that are corrected together."""
        main = self.key._replace(method=None).plain
        return MAIN_FAMILY if main else f"{self.key.check} by setting"

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON has it."""
        return {
            "check": self.key.check or None,
            "measure": self.key.measure,
            **{name: getattr(self.key, name) for name in KEY_COLUMNS},
            **{name: asdict(getattr(self, name)) for name in ("first", "second", "difference")},
            "p": self.p,
            "p_corrected": self.corrected,
            **{name: getattr(self, name) for name in ("certain", "family", "over")},
            "undefined": {"first": self.undefined[0], "second": self.undefined[1]},
        }


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which texts two sides share."""

    paired: bool
    shared: int
    only_first: int
    only_second: int

    @property
    def apart(self) -> bool:
        """Whether one has texts that the other lacks."""
        return bool(self.only_first or self.only_second)

    def __str__(self) -> str:
        if not self.paired:
            first, second = self.only_first, self.only_second
            return f"unpaired: {first} texts against {second} others, as independent samples"
        apart = ((self.only_first, "first"), (self.only_second, "second"))
        alone = [f"{count} only in the {which}" for count, which in apart if count]
        return "; ".join((f"paired over {self.shared} texts", *alone))


@dataclass(frozen=True, slots=True)
class SidePair:
    """The second side compared with the first."""

    first: str
    second: str
    pairing: Pairing
    differences: tuple[Difference, ...]
    only_one: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def find(self, key: MeasureKey) -> Difference | None:
        """The difference of this key, if both sides have it."""
        return next((one for one in self.differences if one.key == key), None)

    def to_dict(self) -> dict[str, Any]:
        """The pair as JSON has it."""
        return {
            "first": self.first,
            "second": self.second,
            "texts": asdict(self.pairing),
            "differences": [one.to_dict() for one in self.differences],
            "not_compared": dict(self.only_one),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class SideSummary:
    """One side: a run, or a method of one."""

    name: str
    folder: str
    model: str
    attention: str
    data: str
    texts: int
    answer: str
    degree: Estimate | None
    claims: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """Two or more sides, each compared with the first."""

    kind: ComparisonKind
    sides: tuple[SideSummary, ...]
    pairs: tuple[SidePair, ...]
    level: float
    correction: Correction
    resamples: int
    seed: int

    @property
    def rows(self) -> Iterator[tuple[SidePair, Difference]]:
        """Every difference with the pair it belongs to."""
        return ((pair, one) for pair in self.pairs for one in pair.differences)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as `heedful compare --json` prints it; what does not exist is null."""
        how = ("kind", "level", "correction", "resamples", "seed")
        content = {"schema": SCHEMA, **{name: getattr(self, name) for name in how}}
        content["sides"] = [asdict(one) for one in self.sides]
        content["pairs"] = [one.to_dict() for one in self.pairs]
        return dict(finite_or_none(content))
