"""Whether two runs were on the same texts, and what else sets them apart."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64

from heedful.core.errors import ConfigError
from heedful.results.comparison.records import Pairing
from heedful.results.comparison.sides import ComparedRun, Side


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


def make_pairing(
    first: Side, second: Side, shared: Int64[np.ndarray, "m"], *, paired: bool
) -> Pairing:
    """How many texts are shared, and how many stand alone."""
    one, other = len(first.columns.instances), len(second.columns.instances)
    return Pairing(paired, len(shared), one - len(shared), other - len(shared))


def note_differences(first: Side, second: Side) -> tuple[str, ...]:
    """What else is different, and may be the reason of a difference."""
    return (
        ()
        if first.record is second.record
        else tuple(_setting_differences(first.record, second.record))
    )


def _setting_differences(one: ComparedRun, other: ComparedRun) -> Iterator[str]:
    settings = [_settings(side.plan) for side in (one, other)]
    for check in [name for name in settings[0] if name in settings[1]]:
        mine, theirs = settings[0][check], settings[1][check]
        names = sorted(
            name for name in {*mine, *theirs} - {"methods"} if mine.get(name) != theirs.get(name)
        )
        if names:
            yield f"{check} was run with other settings: {', '.join(names)}."
    lines = [_epsilon(side.plan) for side in (one, other)]
    if lines[0] != lines[1]:
        yield f"epsilon is {lines[0]} in one, {lines[1]} in the other."
    cleanings = [side.plan.get("cleaning") for side in (one, other)]
    if cleanings[0] != cleanings[1]:
        yield f"Texts were cleaned by {cleanings[0]} in one, by {cleanings[1]} in the other."
    for what in ("level", "dtype"):
        mine, theirs = (side.manifest.get(what) for side in (one, other))
        if mine != theirs:
            yield f"{what} is {mine} in one, {theirs} in the other."
    versions = [(side.manifest.get("versions") or {}).get("heedful") for side in (one, other)]
    if versions[0] != versions[1]:
        yield f"Written by heedful {versions[0]} and {versions[1]}."


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
