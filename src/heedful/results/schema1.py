"""Run folders of schema 1, read as schema 2.

In schema 1 a measure's name held its method and its setting held layer, head and seed, as in
`comprehensiveness_lime` and "layer 3, head 5". This module takes them apart: the measures that
were measured by method are known, so a name is cut behind the longest of them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa

from heedful.core.errors import RunError
from heedful.core.records import (
    KEY_COLUMNS,
    ROW_KEYS,
    SCHEMA,
    Estimate,
    EstimateRow,
    MeasureKey,
    Verdict,
    parse_verdict,
)
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.results.tables import MEASUREMENT_SCHEMA, MeasurementColumns

ADDED_COLUMNS = ("method", "layer", "head", "seed")
SCHEMA_1 = pa.schema([one for one in MEASUREMENT_SCHEMA if one.name not in ADDED_COLUMNS])
REMOVAL = (
    *("comprehensiveness", "sufficiency", "beyond_random", "p_beyond_random", "diagnosticity"),
    *("worst", "flip", "infidelity", "infidelity_scaled", "violation", "sensitivity"),
    *("normalised_comprehensiveness", "normalised_sufficiency"),
    *("soft_comprehensiveness", "soft_sufficiency", "soft_beyond_random"),
)
BY_METHOD: Mapping[str, tuple[str, ...]] = {
    "faithfulness": REMOVAL,
    "off_manifold": REMOVAL,
    "plausibility": (
        *("auprc", "beyond_random", "token_f1", "iou_f1", "top_k", "rank_human", "sign_human"),
    ),
    "randomisation": ("rank_correlation",),
    "labels": ("rank_correlation", "with_labels", "learned"),
    "roar": ("score", "beyond_random"),
}
NOT_BY_METHOD = {"score_whole"}
OWN_AGREEMENT = {"tau_gradient_leave_one_out", "tau_shuffled_leave_one_out"}
AGREEMENT = re.compile(r"tau_(?P<method>\w+)_leave_one_out")
RENAMED = {"gradient_norm": "gradient"}  # tau_gradient_… was the one-hot gradient
LAYER = re.compile(r"layer (\d+)(?:, head (\d+))?")
SEED = re.compile(r"(?:(?P<rest>.+), )?seed (?P<seed>-?\d+)")
BETWEEN = " ~ "
POWER_KEYS = {"auc", "miss", "false_alarm", "undecided", "cases", "like", "weight"}
VOTES = {"for": "supports", "against": "refutes", "not examined": "no vote"}
CLAIM_ANSWERS = {"for": "supported", "against": "refuted", "not examined": "not tested"}


@cache
def upgrade_key(check: str, measure: str, setting: str | None) -> MeasureKey:
    """The columns of schema 2 for a measure and a setting of schema 1.

    >>> upgrade_key("faithfulness", "flip_input_x_gradient", "masking")[1:3]
    ('flip', 'input_x_gradient')
    >>> upgrade_key("agreement", "tau_leave_one_out", "layer 3, head 5")[3:5]
    (3, 5)
    """
    name, method = _split_method(check, measure)
    if setting is None:
        return MeasureKey(check, name, method)
    if found := LAYER.fullmatch(setting):
        head = None if found[2] is None else int(found[2])
        return MeasureKey(check, name, method, int(found[1]), head)
    if found := SEED.fullmatch(setting):
        return MeasureKey(check, name, method, seed=int(found["seed"]), setting=found["rest"])
    if BETWEEN in setting:
        one, other = setting.split(BETWEEN)
        return MeasureKey(check, name, one, setting=other)
    return MeasureKey(check, name, method, setting=setting)


def _split_method(check: str, measure: str) -> tuple[str, str | None]:
    if check == "agreement":
        found = None if measure in OWN_AGREEMENT else AGREEMENT.fullmatch(measure)
        if found is None:
            return measure, None
        return "tau_leave_one_out", RENAMED.get(found["method"], found["method"])
    known = [name for name in BY_METHOD.get(check, ()) if measure.startswith(f"{name}_")]
    if not known or measure in NOT_BY_METHOD:
        return measure, None
    longest = max(known, key=len)
    return longest, measure.removeprefix(f"{longest}_")


def upgrade_measurements(table: pa.Table) -> pa.Table:
    """The rows of a file of schema 1 in the columns of schema 2."""
    fields = ("check", "measure", "setting")
    triples = list(zip(*(table[name].to_pylist() for name in fields), strict=True))
    keys = [upgrade_key(*triple) for triple in triples]
    columns = {name: table[name] for name in ("instance", "predicted", "label", "check", "value")}
    for name in ("measure", *KEY_COLUMNS):
        column = [getattr(key, name) for key in keys]
        columns[name] = pa.array(column, MEASUREMENT_SCHEMA.field(name).type)
    return pa.table(columns).select(MEASUREMENT_SCHEMA.names)


def read_verdict(text: str) -> Verdict:
    """Read verdict.json of schema 1 or 2."""
    raw = parse_verdict(text)
    if raw.get("schema") == SCHEMA:
        return Verdict.from_dict(raw)
    if raw.get("schema") != 1:
        raise RunError(
            f"verdict.json has schema {raw.get('schema')!r}; this version reads 1 and {SCHEMA}."
        )
    try:
        return Verdict.from_dict(_upgrade(raw))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"verdict.json is incomplete or damaged: {error!r}.") from error


def _upgrade(raw: Mapping[str, Any]) -> dict[str, Any]:
    degree, instead = raw["degree"], raw["instead"]
    if instead:
        ends = {name: instead.get(name) for name in ("low", "high")}
        order = {"value": instead["recovered_share"], **ends, "n": instead.get("n", 0)}
        instead = {"method": instead["method"], "order": order}
    claims = {
        name: {**one, "answer": CLAIM_ANSWERS.get(one["answer"], one["answer"])}
        for name, one in raw["claims"].items()
    }
    rows = [
        {key: CLAIM_ANSWERS.get(value, value) for key, value in row.items()}
        for row in raw.get("multiverse", ())
    ]
    return {
        **raw,
        "degree": degree and {"of": "agreement", **degree},
        "instead": instead,
        "claims": claims,
        "checks": {name: _upgrade_check(name, one) for name, one in raw["checks"].items()},
        "multiverse": rows,
    }


def _upgrade_check(check: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    estimates, by = {}, []
    undefined = raw.get("undefined", {})
    for name, one in raw["estimates"].items():
        key = upgrade_key(check, name, None)
        if key.plain:
            estimates[name] = one
        else:
            counted = {"undefined": undefined[name]} if name in undefined else {}
            by.append({**_row_keys(key), **one, **counted})
    for label, rows in raw.get("by_class", {}).items():
        by += [
            {**_row_keys(upgrade_key(check, name, None)), "class": label, **one}
            for name, one in rows.items()
        ]
    power = {
        claim: {key if key in POWER_KEYS else "description": value for key, value in one.items()}
        for claim, one in raw.get("power", {}).items()
    }
    return {
        "answer": VOTES.get(raw["answer"], raw["answer"]),
        "why": raw["why"],
        "estimates": estimates,
        "by": by,
        "undefined": {name: count for name, count in undefined.items() if name in estimates},
        "missing": [
            {**_row_keys(upgrade_key(check, name, None)), "reason": reason}
            for name, reason in raw.get("missing", {}).items()
        ],
        "power": power,
    }


def _row_keys(key: MeasureKey) -> dict[str, Any]:
    return {"measure": key.measure, "method": key.method}


def add_estimates(
    verdict: Verdict, columns: MeasurementColumns, *, level: float, seed: int
) -> Verdict:
    """The verdict with rows by layer, head, pair, seed and setting, which schema 1 did not keep."""
    results = {}
    for check, result in verdict.checks.items():
        known = {tuple(getattr(row, name) for name in ("measure", *ROW_KEYS)) for row in result.by}
        wanted = {
            key: values
            for key, values in columns.of_check(check).items()
            if not key.plain and (*key[1:], None, None) not in known
        }
        found: dict[MeasureKey, Estimate] = estimate_means(wanted, level=level, seed=seed)
        more = [EstimateRow(key.measure, one, *key[2:]) for key, one in found.items()]
        results[check] = replace(result, by=(*result.by, *more))
    return replace(verdict, checks=results)
