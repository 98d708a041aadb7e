"""What is compared: runs, or methods of one run, and whether they are on the same texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int64

from heedful.checks import checks
from heedful.comparison.records import SideSummary
from heedful.core.errors import ConfigError
from heedful.core.records import MeasureKey, Verdict
from heedful.results.tables import MeasurementColumns

# in `agreement` some methods have measures of their own name
OWN_MEASURES = {"attention": "tau_leave_one_out", "one_hot_gradient": "tau_gradient_leave_one_out"}
WITH_LEAVE_ONE_OUT = "tau_leave_one_out"
PAIR_MEASURES = ("tau_pair", "overlap_pair")  # keyed by two methods


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """The records of one run that are compared; `plan` holds what its plan.toml says."""

    folder: str
    verdict: Verdict
    manifest: Mapping[str, Any]
    columns: MeasurementColumns
    plan: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Side:
    """Columns under a name; `averaged` are the plain keys, or keys of a method, that have a mean.

    Other such columns are kept for single texts only: p-values, say.
    """

    name: str
    record: ComparedRun
    columns: MeasurementColumns
    averaged: tuple[MeasureKey, ...]

    def summary(self) -> SideSummary:
        """The side in a comparison's record."""
        verdict, manifest = self.record.verdict, self.record.manifest
        data = manifest.get("data") or {}
        return SideSummary(
            name=self.name,
            folder=self.record.folder,
            model=str((manifest.get("model") or {}).get("name", "")),
            attention=str(manifest.get("attention", "")),
            data=f"{data.get('name', '')} ({data.get('split', '')})",
            texts=len(self.columns.instances),
            answer=verdict.answer,
            degree=verdict.degree.estimate if verdict.degree else None,
            claims={name: one.answer for name, one in verdict.claims.items()},
        )


def run_sides(records: Sequence[ComparedRun]) -> tuple[Side, ...]:
    """A side for each run, under the shortest name that tells them apart."""
    return tuple(
        Side(name, one, one.columns, _averaged_keys(one))
        for name, one in zip(_names([one.folder for one in records]), records, strict=True)
    )


def _averaged_keys(record: ComparedRun) -> tuple[MeasureKey, ...]:
    """The measures of the verdict, plain or by method, that have a value for every text."""
    wanted: dict[MeasureKey, None] = {}
    for check, result in record.verdict.checks.items():
        wanted |= dict.fromkeys(MeasureKey(check, measure) for measure in result.estimates)
        by_method = (row for row in result.by if row.method is not None)
        wanted |= dict.fromkeys(MeasureKey(check, row.measure, row.method) for row in by_method)
    return tuple(key for key in wanted if key in record.columns.values)


def _names(folders: Sequence[str]) -> list[str]:
    last = [one.rstrip("/").rpartition("/")[2] or one for one in folders]
    chosen = last if len(set(last)) == len(last) else list(folders)
    before = (chosen[:place].count(name) for place, name in enumerate(chosen))
    return [f"{name} ({n + 1})" if n else name for name, n in zip(chosen, before, strict=True)]


def method_sides(record: ComparedRun, methods: Sequence[str]) -> tuple[Side, ...]:
    """A side for each method, its measures under names that they share."""
    if len(set(methods)) < len(methods):
        raise ConfigError(f"Methods to compare must be different ones, not {', '.join(methods)}.")
    return tuple(_method_side(record, name) for name in methods)


def _method_side(record: ComparedRun, method: str) -> Side:
    values = {}
    for key, column in record.columns.values.items():
        if key == MeasureKey("agreement", OWN_MEASURES.get(method, "")):
            values[MeasureKey("agreement", WITH_LEAVE_ONE_OUT)] = column
        elif key.method == method and key.measure not in PAIR_MEASURES:
            values[key._replace(method=None)] = column
    if not values:
        known = sorted(_methods(record.columns.values))
        raise ConfigError(
            f"{record.folder} has no measures of the method {method!r}. It has: "
            f"{', '.join(known) or 'none; audit with --checks agreement,faithfulness --methods …'}."
        )
    averaged = tuple(key for key in values if key.plain and has_mean(key))
    return Side(method, record, replace(record.columns, values=values), averaged)


def has_mean(key: MeasureKey) -> bool:
    """Whether the mean of a measure says something, as far as its check describes it."""
    return key.check not in checks or checks.spec(key.check).measure(key.measure).averaged


def _methods(keys: Iterable[MeasureKey]) -> set[str]:
    found = {key.method for key in keys if key.method and key.measure not in PAIR_MEASURES}
    return found | {
        name for name, own in OWN_MEASURES.items() if MeasureKey("agreement", own) in keys
    }


def shared_texts(first: Side, second: Side, *, paired: bool) -> Int64[np.ndarray, "m"]:
    """The texts both have; refused where texts of equal number need not be the same."""
    if not paired:
        return np.empty(0, dtype=np.int64)
    if reason := _why_not_the_same_texts(first.record, second.record):
        raise ConfigError(
            f"{first.name} and {second.name} are not on the same texts: {reason}. Audit both on "
            "the same data, or compare them as independent samples with --unpaired."
        )
    shared = np.intersect1d(first.columns.instances, second.columns.instances)
    if not len(shared):
        raise ConfigError(
            f"{first.name} and {second.name} share no text: each has measured others of the same "
            "data. Audit both with the same --limit and --min-words."
        )
    return shared


def _why_not_the_same_texts(first: ComparedRun, second: ComparedRun) -> str | None:
    """Why a number need not mean the same text in both; None where it does."""
    if first is second:  # two methods of one run
        return None
    one, other = (dict(side.manifest.get("data") or {}) for side in (first, second))
    if not one.get("sha256") or not other.get("sha256"):
        return "a manifest has no sha256 of its data"
    for what in ("sha256", "split"):
        if one[what] != other.get(what):
            return f"{_describe_data(one)}, but {_describe_data(other)}"
    if one.get("bad_rows") != other.get("bad_rows"):  # rows are numbered without those left out
        return f"other rows were left out ({one.get('bad_rows')}; {other.get('bad_rows')})"
    if first.plan.get("fields", {}) != second.plan.get("fields", {}):
        return "their plans read other columns (fields)"
    return None


def _describe_data(data: dict[str, Any]) -> str:
    return f"{data.get('name')} ({data.get('split')}, sha256 {str(data['sha256'])[:12]})"


def note_differences(one: ComparedRun, other: ComparedRun) -> Iterator[str]:
    """What else differs between two runs, and may be the reason of a difference."""
    settings = [_settings(side.plan) for side in (one, other)]
    for check in [name for name in settings[0] if name in settings[1]]:
        mine, theirs = settings[0][check], settings[1][check]
        names = sorted(
            name for name in {*mine, *theirs} - {"methods"} if mine.get(name) != theirs.get(name)
        )
        if names:
            yield f"{check} was run with other settings: {', '.join(names)}."
    theirs = _noted_settings(other)
    for sentence, value in _noted_settings(one).items():
        if value != theirs[sentence]:
            yield sentence.format(value, theirs[sentence])


def _noted_settings(run: ComparedRun) -> dict[str, Any]:
    """The settings that a difference may come from, by the sentence that reports them."""
    return {
        "epsilon is {} in one, {} in the other.": _epsilon(run.plan),
        "Texts were cleaned by {} in one, by {} in the other.": run.plan.get("cleaning"),
        "level is {} in one, {} in the other.": run.manifest.get("level"),
        "dtype is {} in one, {} in the other.": run.manifest.get("dtype"),
        "Written by heedful {} and {}.": (run.manifest.get("versions") or {}).get("heedful"),
    }


def _settings(plan: Mapping[str, Any]) -> dict[str, Any]:
    """By check, without the epsilon of the whole plan, which older plans repeat with checks."""
    epsilon = _epsilon(plan)
    return {
        check: {name: one for name, one in own.items() if (name, one) != ("epsilon", epsilon)}
        for check, own in (plan.get("settings") or {}).items()
    }


def _epsilon(plan: Mapping[str, Any]) -> Any:
    """The change of output that counts as none; older plans have it with one check, or not."""
    older = (plan.get("settings") or {}).get("adversarial") or {}
    return plan.get("epsilon", older.get("epsilon", 0.05))
