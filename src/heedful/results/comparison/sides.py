"""What is compared: a run, or one method of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.core.errors import ConfigError
from heedful.core.records import Verdict
from heedful.results.comparison.columns import MeasureKey, MeasurementColumns
from heedful.results.comparison.records import SideSummary

# checks that measure every method alike: the measure's name ends in the method's
CHECKS_BY_METHOD = ("faithfulness", "plausibility", "randomisation")
# in `agreement` some methods have measures of their own name
AGREEMENT_MEASURES = {
    "attention": "tau_leave_one_out",
    "one_hot_gradient": "tau_gradient_leave_one_out",
    "gradient": "tau_gradient_norm_leave_one_out",
}
NOT_METHODS = ("gradient", "gradient_norm", "shuffled")
WITH_LEAVE_ONE_OUT = "tau_leave_one_out"


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
    """Columns under a name; `averaged` are the keys without a setting that have a meaning as means.

    Other columns without a setting are kept for single texts only: p-values, say.
    """

    name: str
    record: ComparedRun
    columns: MeasurementColumns
    averaged: tuple[MeasureKey, ...]

    def told(self) -> SideSummary:
        """What the records tell of it."""
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
            degree=verdict.degree,
            claims={name: one.answer for name, one in verdict.claims.items()},
        )


def run_sides(records: Sequence[ComparedRun]) -> tuple[Side, ...]:
    """A side for each run, under the shortest name that tells them apart."""
    return tuple(
        Side(name, one, one.columns, _averaged_keys(one))
        for name, one in zip(_names([one.folder for one in records]), records, strict=True)
    )


def _averaged_keys(record: ComparedRun) -> tuple[MeasureKey, ...]:
    """The measures of the verdict that have a value for every text."""
    return tuple(
        key
        for check, result in record.verdict.checks.items()
        for measure in result.estimates
        if (key := MeasureKey(check, measure)) in record.columns.values
    )


def _names(folders: Sequence[str]) -> list[str]:
    last = [one.rstrip("/").rpartition("/")[2] or one for one in folders]
    chosen = last if len(set(last)) == len(last) else folders
    seen: dict[str, int] = {}
    found = []
    for name in chosen:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def method_sides(record: ComparedRun, methods: Sequence[str]) -> tuple[Side, ...]:
    """A side for each method, its measures under names that they share."""
    if len(set(methods)) < len(methods):
        raise ConfigError(f"Methods to compare must be different ones, not {', '.join(methods)}.")
    return tuple(_method_side(record, name) for name in methods)


def _method_side(record: ComparedRun, method: str) -> Side:
    values = {}
    for key, column in record.columns.values.items():
        measure = strip_method_name(key, method)
        if measure is not None:
            values[MeasureKey(key.check, measure, key.setting)] = column
    if not values:
        known = sorted(_methods(record.columns.values))
        raise ConfigError(
            f"{record.folder} has no measures of the method {method!r}. It has: "
            f"{', '.join(known) or 'none; audit with --checks agreement,faithfulness --methods …'}."
        )
    averaged = tuple(key for key in values if key.setting is None)
    return Side(method, record, MeasurementColumns(record.columns.instances, values), averaged)


def strip_method_name(key: MeasureKey, method: str) -> str | None:
    """The name without the method's, where it is a measure of this method.

    >>> shared_name(Key("faithfulness", "flip_lime"), "lime")
    'flip'
    >>> shared_name(Key("agreement", "tau_leave_one_out"), "attention")
    'tau_leave_one_out'
    """
    if key.check == "agreement":
        own = AGREEMENT_MEASURES.get(method, f"tau_{method}_leave_one_out")
        return WITH_LEAVE_ONE_OUT if key.measure == own and key.setting is None else None
    if key.check in CHECKS_BY_METHOD and key.measure.endswith(f"_{method}"):
        return key.measure.removesuffix(f"_{method}")
    return None


def _methods(keys: Iterable[MeasureKey]) -> set[str]:
    found = set()
    own = {measure: method for method, measure in AGREEMENT_MEASURES.items()}
    for check, measure, setting in keys:
        if check == "faithfulness" and measure.startswith("comprehensiveness_"):
            found.add(measure.removeprefix("comprehensiveness_"))
        if check == "agreement" and setting is None:
            if measure in own:
                found.add(own[measure])
            elif measure.startswith("tau_") and measure.endswith("_leave_one_out"):
                found.add(measure.removeprefix("tau_").removesuffix("_leave_one_out"))
    return found - set(NOT_METHODS[1:])
