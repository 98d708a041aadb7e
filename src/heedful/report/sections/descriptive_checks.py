"""Checks that bear on no claim, each a table of methods and measures apart from the others."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from heedful.core.records import CheckResult, Estimate
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.report.measure_labels import CONTROL_NAMES, OF_METHODS, QUESTIONS, ValueRange
from heedful.report.terminal.verdict_card import group_by_reason
from heedful.results.run_records import RunRecords, sanitise_text

HEADS = {
    "plausibility": {
        "auprc": "AUPRC",
        "beyond_random": "AUPRC beyond random",
        "token_f1": "words chosen, F1",
        "iou_f1": "spans chosen, F1",
        "top_k": "among as many highest",
        "rank_human": "size, τ",
        "sign_human": "same sign",
    },
    "randomisation": {"rank_correlation": "with all weights drawn anew, ρ"},
    "labels": {
        "rank_correlation": "with labels shuffled, ρ",
        "with_labels": "with labels as they are, ρ",
        "learned": "what the labels add",
    },
}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method, or a control, and its estimate in each column; None where it has none."""

    name: str
    control: bool
    estimates: tuple[Estimate | None, ...]
    texts: int


@dataclass(frozen=True, slots=True)
class SettingRow:
    """The means of the methods under one setting."""

    name: str
    estimates: tuple[Estimate | None, ...]


@dataclass(frozen=True, slots=True)
class DescriptiveCheck:
    """A check that bears on no claim: its question, what it found, and the figures of methods.

    `settings` have the first measure again, of the methods named in `across`.
    """

    name: str
    question: str
    why: str
    heads: tuple[str, ...]
    spans: tuple[ValueRange, ...]
    rows: tuple[MethodRow, ...]
    missing: tuple[str, ...]
    across: tuple[str, ...] = ()
    settings: tuple[SettingRow, ...] = ()


def build_descriptive_checks(records: RunRecords) -> tuple[DescriptiveCheck, ...]:
    """Those that were run."""
    checks = records.verdict.checks
    made = (_descriptive_check(name, checks[name]) for name in HEADS if name in checks)
    return tuple(_with_settings(one, records) for one in made)


def _descriptive_check(check: str, result: CheckResult) -> DescriptiveCheck:
    found = _by_measure(result.estimates, HEADS[check])
    names = dict.fromkeys(name for named in found.values() for name in named)
    order = sorted(names, key=lambda name: name in CONTROL_NAMES)
    return DescriptiveCheck(
        name=check,
        question=QUESTIONS[check],
        why=sanitise_text(result.why),
        heads=tuple(HEADS[check][measure] for measure in found),
        spans=tuple(OF_METHODS[check][measure].span for measure in found),
        rows=tuple(_row(name, found) for name in order),
        missing=tuple(
            f"{name}: {sanitise_text(why)}" for name, why in group_by_reason(result.missing)
        ),
    )


def _by_measure(
    estimates: Mapping[str, Estimate], measures: Mapping[str, str]
) -> dict[str, dict[str, Estimate]]:
    """By measure and method; measures that no method has are left out."""
    found: dict[str, dict[str, Estimate]] = {measure: {} for measure in measures}
    for name, one in estimates.items():
        for measure, named in found.items():
            if name.startswith(f"{measure}_") and one.n:
                named[name.removeprefix(f"{measure}_")] = one
    return {measure: named for measure, named in found.items() if named}


def _row(name: str, found: Mapping[str, Mapping[str, Estimate]]) -> MethodRow:
    own = tuple(named.get(name) for named in found.values())
    texts = max((one.n for one in own if one), default=0)
    return MethodRow(sanitise_text(name), name in CONTROL_NAMES, own, texts)


def _with_settings(one: DescriptiveCheck, records: RunRecords) -> DescriptiveCheck:
    """The same with what was found under each setting, where there are any."""
    measure = next(iter(HEADS[one.name]))
    columns = {
        (setting, row.name): values
        for row in one.rows
        for setting, values in records.by_setting(one.name, f"{measure}_{row.name}").items()
    }
    across = tuple(dict.fromkeys(name for _, name in columns))
    level, seed = records.manifest.get("level", 0.95), records.manifest.get("seed", 0)
    found = {key: _mean(values, seed=seed, level=level) for key, values in columns.items()}
    settings = tuple(
        SettingRow(sanitise_text(setting), tuple(found.get((setting, name)) for name in across))
        for setting in dict.fromkeys(setting for setting, _ in columns)
    )
    return replace(one, across=across, settings=settings)


def _mean(values: Float64[np.ndarray, "n"], *, seed: int, level: float) -> Estimate:
    return estimate_means({"": values}, seed=seed, level=level)[""]
