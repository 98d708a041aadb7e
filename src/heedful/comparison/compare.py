"""Compare two or more sides with the first: every measure both have, corrected together."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from jaxtyping import Int64

from heedful.checks.influence.names import NAME as INFLUENCE_CHECK
from heedful.checks.influence.names import PLACES
from heedful.comparison import differences
from heedful.comparison.differences import ResamplingSettings
from heedful.comparison.places import has_places, place_columns, place_differences
from heedful.comparison.records import (
    CORRECTIONS,
    DEGREE_KEY,
    ComparisonKind,
    ComparisonRecord,
    Correction,
    Difference,
    Pairing,
    SidePair,
)
from heedful.comparison.sides import (
    ComparedRun,
    Side,
    has_mean,
    method_sides,
    note_differences,
    run_sides,
    shared_texts,
)
from heedful.core.errors import ConfigError
from heedful.core.records import MeasureKey
from heedful.numerics.stats.bootstrap import RESAMPLES
from heedful.numerics.stats.multiple_testing import benjamini_hochberg_adjusted, holm_adjusted

DRAWS_PER_TEST = 40  # draws for each test of a family: a corrected p can then fall to 1/40
DATASET_SUFFIX = "_bh"  # ends the names of measures whose value on a text depends on all the others
ADJUSTMENTS: dict[Correction, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm_adjusted,
    "bh": benjamini_hochberg_adjusted,
    "none": list,
}


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How to compare; level and seed are by default those of the first run."""

    paired: bool = True
    correction: str = "holm"
    level: float | None = None
    resamples: int = RESAMPLES
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.correction not in CORRECTIONS:
            raise ConfigError(
                f"A correction is one of {', '.join(CORRECTIONS)}, not {self.correction!r}."
            )
        if self.level is not None and not 0.0 < self.level < 1.0:
            raise ConfigError(f"level must lie between 0 and 1, not {self.level}.")
        if self.resamples < 100:
            raise ConfigError(f"resamples must be at least 100, not {self.resamples}.")


def compare_records(
    records: Sequence[ComparedRun], question: ComparisonSettings, *, methods: Sequence[str] = ()
) -> ComparisonRecord:
    """Each run against the first; or, of one run, each method against the first."""
    if methods and len(records) > 1:
        raise ConfigError("Methods are compared within one run; give one run with --methods.")
    if methods and not question.paired:
        raise ConfigError("Methods of one run are on the same texts; leave out --unpaired.")
    if len(methods or records) < 2:
        raise ConfigError(
            "A comparison takes two runs or more, or one run and two methods or more (--methods)."
        )
    sides = method_sides(records[0], methods) if methods else run_sides(records)
    manifest = records[0].manifest
    level = question.level or manifest.get("level", 0.95)
    seed = manifest.get("seed", 0) if question.seed is None else question.seed
    draw = ResamplingSettings(question.paired, level, question.resamples, question.resamples, seed)
    found = [_pair(sides[0], one, draw, len(sides) - 1) for one in sides[1:]]
    correction = cast(Correction, question.correction)
    pairs = _correct_p_values(found, correction, level)
    if not any(pair.differences for pair in pairs):
        raise ConfigError(f"{' and '.join(one.name for one in sides)} have no measure in common.")
    kind: ComparisonKind = "methods" if methods else "runs"
    summaries = tuple(one.summary() for one in sides)
    return ComparisonRecord(kind, summaries, pairs, level, correction, question.resamples, seed)


def _pair(first: Side, second: Side, draw: ResamplingSettings, pairs: int) -> SidePair:
    shared = shared_texts(first, second, paired=draw.paired)
    one, other = first.columns, second.columns
    alone = (len(one.instances) - len(shared), len(other.instances) - len(shared))
    pairing = Pairing(draw.paired, len(shared), *alone)
    if draw.paired:
        one, other = one.at(shared), other.at(shared)
    plain, by_setting = _keys(first, second)
    whole = [key for key in plain if key.measure.endswith(DATASET_SUFFIX) and pairing.apart]
    plain = [key for key in plain if key not in whole]
    own = len(PLACES) + len(plain)  # the degree is one of the places
    asked = Counter(key.check for key in by_setting) + Counter({DEGREE_KEY.check: own})
    seeded = differences.seeded_keys(one, other) & set(plain)
    # p-values of retrained measures come from the resamples themselves
    many = _with_enough_draws(draw, pairs * asked[DEGREE_KEY.check])
    many = replace(many, resamples=many.permutations)
    found = {key: differences.seeded_difference(one, other, key, many) for key in seeded}
    draw = _with_enough_draws(draw, pairs * max(asked.values()))
    rest = [key for key in (*plain, *by_setting) if key not in seeded]
    found |= {row.key: row for row in differences.mean_differences(one, other, rest, draw)}
    rows = [found[key] for key in (*plain, *by_setting)]
    lacking = _only_one(first, second)
    lacking |= dict.fromkeys(map(str, whole), "it depends on all texts of a run, and these differ")
    for key, row, reason in _compare_places(first, second, shared, draw):
        rows = [*rows, row] if row else rows
        lacking |= {str(key): reason} if reason else {}
    rows.sort(key=lambda row: row.key != DEGREE_KEY)
    notes = tuple(note_differences(first.record, second.record))
    return SidePair(first.name, second.name, pairing, tuple(rows), lacking, notes)


def _with_enough_draws(draw: ResamplingSettings, questions: int) -> ResamplingSettings:
    return replace(draw, permutations=max(draw.resamples, DRAWS_PER_TEST * questions))


def _compare_places(
    first: Side, second: Side, shared: Int64[np.ndarray, "m"], draw: ResamplingSettings
) -> Iterator[tuple[MeasureKey, Difference | None, str]]:
    """The differences of the degrees and of the other places, or why there is none."""
    of_methods = first.record is second.record
    whole = [side.record.columns for side in (first, second)]
    one, other = (columns.at(shared) if draw.paired else columns for columns in whole)
    degrees = [side.record.verdict.degree for side in (first, second)]
    kinds = [degree.of for degree in degrees if degree]
    if not of_methods and len(set(kinds)) > 1:
        names = " and ".join(
            f"{side.name} of {degree.of if degree else 'none'}"
            for side, degree in zip((first, second), degrees, strict=True)
        )
        yield DEGREE_KEY, None, f"their degrees are of different kinds: {names}"
        return
    if not of_methods and "order" not in kinds:
        if all(map(differences.has_degree, (one, other))):
            yield (DEGREE_KEY, *differences.degree_difference(one, other, draw))
        else:
            yield DEGREE_KEY, None, "agreement was not run on both"
        return
    methods = (first.name, second.name) if of_methods else ("attention", "attention")
    keys = {name: MeasureKey(INFLUENCE_CHECK, name) for name in PLACES}
    if not of_methods:
        keys = {name: key._replace(method="attention") for name, key in keys.items()}
        keys["order"] = DEGREE_KEY
    if all(has_places(columns, method) for columns, method in zip(whole, methods, strict=True)):
        sides = place_columns(one, methods[0]), place_columns(other, methods[1])
        yield from place_differences(*sides, keys, draw)


def _keys(first: Side, second: Side) -> tuple[list[MeasureKey], list[MeasureKey]]:
    """The keys both have: plain and by method, then by layer, head or setting."""
    plain = [key for key in first.averaged if key in second.averaged]
    keyed = (key for key in first.columns.values if not key._replace(method=None).plain)
    both = [key for key in keyed if key.seed is None and key in second.columns.values]
    return plain, list(filter(has_mean, both))


def _only_one(first: Side, second: Side) -> dict[str, str]:
    """Measures that only one of them has, and which."""
    return {
        str(key): f"only in {side.name}"
        for side, other in ((first, second), (second, first))
        for key in side.averaged
        if key not in other.averaged
    }


def _correct_p_values(
    pairs: Sequence[SidePair], correction: Correction, level: float
) -> tuple[SidePair, ...]:
    """Correct the p-values of each family, over all pairs together."""
    rows = [one for pair in pairs for one in pair.differences]
    families: dict[str, list[int]] = {}
    for place, one in enumerate(rows):
        families.setdefault(one.family, []).append(place)
    for places in families.values():
        adjusted = ADJUSTMENTS[correction]([rows[place].p for place in places])
        for place, p in zip(places, adjusted, strict=True):
            rows[place] = replace(rows[place], corrected=p, certain=p <= 1 - level + 1e-12)
    left = iter(rows)
    return tuple(
        replace(pair, differences=tuple(next(left) for _ in pair.differences)) for pair in pairs
    )
