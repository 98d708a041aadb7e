"""Run folders written by hand, to be compared."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.records import (
    CLAIMS,
    CheckResult,
    ClaimResult,
    Degree,
    Estimate,
    EstimateRow,
    MeasureKey,
    Verdict,
)
from heedful.numerics.stats.bootstrap import estimate_means, estimate_place
from heedful.results.tables import MEASUREMENT_SCHEMA

SHA = "cd" * 32
TAUS = ("tau_leave_one_out", "tau_shuffled_leave_one_out", "tau_gradient_leave_one_out")


def taus(n, *, seed=0, degree=0.5):
    """What a degree is made of, near the given one."""
    random = np.random.default_rng(seed)
    middle = (0.6 * degree, 0.0, 0.6)
    return {
        ("agreement", name): random.normal(centre, 0.1, n)
        for name, centre in zip(TAUS, middle, strict=True)
    }


def write_run(
    folder,
    columns,
    *,
    instances=None,
    answer="unfaithful",
    data=None,
    model="models/one",
    plan='model = "m"\n',
    **manifest,
):
    """Columns by (check, measure), (check, measure, setting) or key, a value for each instance."""
    n = len(next(iter(columns.values())))
    whose = np.arange(n) if instances is None else np.asarray(instances)
    parts = [_rows(whose, key_of(one), values) for one, values in columns.items()]
    (folder / "measurements").mkdir(parents=True)
    half = len(parts) // 2  # two files, as of two jobs
    for name, some in (("000000000-a", parts[: half + 1]), ("000000512-b", parts[half + 1 :])):
        if some:
            pq.write_table(pa.concat_tables(some), folder / "measurements" / f"{name}.parquet")
    verdict = verdict_of(columns, answer)
    (folder / "verdict.json").write_text(verdict.to_json())
    known = {
        "versions": {"heedful": "0.1.0"},
        "model": {"name": model},
        "data": {"name": "rows.csv", "split": "test", "sha256": SHA, "bad_rows": "no bad rows"}
        | (data or {}),
        "seed": 0,
        "level": 0.95,
        "attention": "the model's one attention",
    }
    (folder / "manifest.json").write_text(json.dumps(known | manifest))
    (folder / "plan.toml").write_text(plan)
    return folder


def key_of(name):
    """The key of a column by its short name."""
    return name if isinstance(name, MeasureKey) else MeasureKey(*name[:2], setting=(*name, None)[2])


def _rows(whose, key, values):
    n = len(whose)
    columns = {name: [one] * n for name, one in key._asdict().items()}
    columns |= {"instance": whose, "predicted": ["pos"] * n, "label": ["neg"] * n}
    columns["value"] = pa.array(np.asarray(values, dtype=float), from_pandas=True)
    arrays = [pa.array(columns[field.name], field.type) for field in MEASUREMENT_SCHEMA]
    return pa.table(arrays, schema=MEASUREMENT_SCHEMA)


def verdict_of(columns, answer="unfaithful"):
    """A verdict that has an estimate of every measure, though it was not reached by any rule."""
    values = {key_of(name): np.asarray(one, float) for name, one in columns.items()}
    checks = {}
    for check in dict.fromkeys(key.check for key in values):
        here = {key: one for key, one in values.items() if key.check == check}
        found = estimate_means(here, resamples=100)
        plain = {key.measure: one for key, one in found.items() if key.plain}
        by = [EstimateRow(key.measure, one, *key[2:]) for key, one in found.items()]
        rows = tuple(row for key, row in zip(found, by, strict=True) if not key.plain)
        checks[check] = CheckResult("no vote", "", plain, rows)
    degree, ends = Estimate(0.5, 0.4, 0.6, 9), [MeasureKey("agreement", name) for name in TAUS]
    if all(key in values for key in ends):
        degree = estimate_place(*(values[key] for key in ends), resamples=100).place
    claims = {name: ClaimResult("undecided", "") for name in CLAIMS}
    return Verdict(answer, "", Degree("agreement", degree), None, claims, checks)
