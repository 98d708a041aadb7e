"""Run folders written by hand, to be compared."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.records import CLAIMS, CheckResult, ClaimResult, Estimate, Verdict
from heedful.numerics.stats.bootstrap import estimate_means, estimate_place

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
    """Columns by (check, measure) or (check, measure, setting), a value for each instance."""
    n = len(next(iter(columns.values())))
    whose = np.arange(n) if instances is None else np.asarray(instances)
    parts = [_rows(whose, *key, values=values) for key, values in columns.items()]
    (folder / "measurements").mkdir(parents=True)
    half = len(parts) // 2  # two files, as of two jobs
    for name, some in (("000000000-a", parts[: half + 1]), ("000000512-b", parts[half + 1 :])):
        if some:
            pq.write_table(pa.concat_tables(some), folder / "measurements" / f"{name}.parquet")
    verdict = verdict_of(columns, answer)
    (folder / "verdict.json").write_text(verdict.to_json())
    told = {
        "versions": {"heedful": "0.1.0"},
        "model": {"name": model},
        "data": {"name": "rows.csv", "split": "test", "sha256": SHA, "bad_rows": "no bad rows"}
        | (data or {}),
        "seed": 0,
        "level": 0.95,
        "attention": "the model's one attention",
    }
    (folder / "manifest.json").write_text(json.dumps(told | manifest))
    (folder / "plan.toml").write_text(plan)
    return folder


def _rows(whose, check, measure, setting=None, *, values=()):
    n = len(whose)
    return pa.table(
        {
            "instance": pa.array(whose, pa.int64()),
            "predicted": pa.array(["pos"] * n),
            "label": pa.array(["neg"] * n),
            "check": pa.array([check] * n),
            "measure": pa.array([measure] * n),
            "setting": pa.array([setting] * n, pa.string()),
            "value": pa.array(np.asarray(values, dtype=float), from_pandas=True),
        }
    )


def verdict_of(columns, answer="unfaithful"):
    """A verdict that has an estimate of every measure, though it was not reached by any rule."""
    plain = {key: np.asarray(one, float) for key, one in columns.items() if len(key) == 2}
    checks = {}
    for check in dict.fromkeys(key[0] for key in columns):
        here = {key[1]: one for key, one in plain.items() if key[0] == check}
        checks[check] = CheckResult("no vote", "", estimate_means(here, resamples=100))
    degree = Estimate(0.5, 0.4, 0.6, 9)
    if all(("agreement", name) in plain for name in TAUS):
        degree = estimate_place(*(plain["agreement", name] for name in TAUS), resamples=100).place
    claims = {name: ClaimResult("undecided", "") for name in CLAIMS}
    return Verdict(answer, "", degree, None, claims, checks)
