"""Records of runs that never were."""

from dataclasses import replace
from math import nan

import numpy as np
import pyarrow as pa

from heedful.core.records import (
    CLAIMS,
    BetterMethod,
    CheckResult,
    ClaimResult,
    Degree,
    Estimate,
    EstimateRow,
    MissingMeasure,
    Verdict,
)
from heedful.results.run_records import RunRecords
from heedful.results.schema1 import add_estimates
from heedful.results.tables import MEASUREMENT_SCHEMA, PartitionedTable

MEASURES = {
    "agreement": (
        "tau_gradient",
        "tau_leave_one_out",
        "tau_gradient_leave_one_out",
        "tau_shuffled_leave_one_out",
        "top1_gradient",
    ),
    "permutation": ("median_tvd", "leverage", "median_of_leverage"),
    "adversarial": ("epsilon_max_jsd", "certified_jsd", "bound_jsd", "of_bound"),
    "mechanism": ("tau_weighting", "tau_mixing", "conicity"),
    "erasure": (
        "flip_top",
        "flip_random",
        "js_top_minus_random",
        "can_flip",
        "fraction_to_flip_attention",
        "fraction_to_flip_gradient",
        "fraction_to_flip_attention_x_gradient",
        "fraction_to_flip_random",
        "fraction_to_flip_optimal",
    ),
}
SLICED = {"agreement": ("tau_leave_one_out", "degree")}
BESIDE = {"permutation": ("max_attention",), "erasure": ("attention_gap",)}
NASTY = (
    "<script>alert(1)</script>",
    "</script><script src=https://evil.example/x.js></script>",
    "\"'><img src=x onerror=alert(1)>",
    "a\x00b\x1b[2J",
    "👩‍👧 naïve",
    "שלום\u202eabc",
    "]]><!--<svg onload=alert(1)>",
    "line\u2028line &lt;b&gt; {{ 7 * 7 }} {% raw %}",
)


def tidy(check, measure, values, *, predicted=None, label=None, **keys):
    """Rows of one measure, one for each value, under these keys."""
    n = len(values)
    given = {"check": check, "measure": measure, **keys}
    columns = {
        "instance": pa.array(np.arange(n)),
        "predicted": pa.array(predicted or ["pos"] * n, pa.string()),
        "label": pa.array(label or ["pos"] * n, pa.string()),
        "value": pa.array(np.asarray(values, dtype=float), from_pandas=True),
    }
    for name in MEASUREMENT_SCHEMA.names:
        if name not in columns:
            kind = MEASUREMENT_SCHEMA.field(name).type
            columns[name] = pa.array([given.get(name)] * n, kind)
    return pa.table(columns).select(MEASUREMENT_SCHEMA.names)


def estimated(made, *more):
    """The same records with further rows, and an estimate of all that is keyed by more than a name.

    A check that the verdict lacks is not added to it.
    """
    whole = pa.concat_tables([made.measurements.whole(), *more])
    found = replace(made, measurements=PartitionedTable.of(whole))
    level, seed = (found.manifest[name] for name in ("level", "seed"))
    verdict = add_estimates(found.verdict, found.columns, level=level, seed=seed)
    return replace(found, verdict=verdict)


def measurements(n, classes, *, checks=tuple(MEASURES), seed=0):
    """Tidy rows of n instances; every tenth value of a τ is undefined."""
    random = np.random.default_rng(seed)
    predicted, label = (random.choice(classes, n).tolist() for _ in range(2))
    parts = []
    for check in checks:
        for measure in (*MEASURES[check], *BESIDE.get(check, ())):
            low = -1.0 if measure.startswith("tau") else 0.0
            values = random.uniform(low, np.log(2), n)
            if low < 0:
                values[::10] = nan
            parts.append(tidy(check, measure, values, predicted=predicted, label=label))
    return pa.concat_tables(parts)


def by_layer(n, layers, heads, *, seed=0):
    """Rows of every layer and head: agreement rises with the layer, half the heads disagree."""
    random, parts = np.random.default_rng(seed), []
    for layer in range(layers):
        for head in (None, *range(heads)):
            tau = (layer - 1) / 10 * (-1 if head and head % 2 else 1) + random.normal(0, 0.05, n)
            mass = random.uniform(0, 1, n)
            for measure, values in (("tau_leave_one_out", tau), ("word_mass", mass)):
                parts.append(tidy("agreement", measure, values, layer=layer, head=head))
    return pa.concat_tables(parts)


def traced(n, layers, *, seed=0):
    """Rows of `mechanism` in every layer: weights follow contributions less and less."""
    random, parts = np.random.default_rng(seed), []
    for layer in range(layers):
        means = {"tau_weighting": 0.8 - layer / 10, "tau_unrolled": 0.1, "tau_mixing": 0.3}
        for measure, mean in means.items():
            parts.append(tidy("mechanism", measure, mean + random.normal(0, 0.05, n), layer=layer))
    return pa.concat_tables(parts)


def maps(texts, layers, heads, *, tokens=("[CLS]", "a", "fine", "film", "[SEP]"), seed=0):
    """Whole maps of some texts, all of the same tokens, with weights that are drawn at random."""
    random, count = np.random.default_rng(seed), len(tokens)
    rows = [
        {
            "instance": instance,
            "layer": layer,
            "head": head,
            "queries": list(tokens),
            "keys": list(tokens),
            "weights": random.dirichlet(np.ones(count), count).round(4).ravel().tolist(),
        }
        for instance in range(texts)
        for layer in range(layers)
        for head in range(heads)
    ]
    return pa.Table.from_pylist(rows)


def texts(rows, vocabulary, *, words=8, adversarial=True, seed=0):
    """A text of random words and scores for each instance of the rows."""
    random = np.random.default_rng(seed)
    whose = rows.slice(0, len(np.unique(rows["instance"]))).select(
        ["instance", "predicted", "label"]
    )
    n = len(whose)
    offsets = pa.array(np.arange(0, n * words + 1, words, dtype=np.int32))

    def lists(values):
        return pa.ListArray.from_arrays(offsets, values)

    picked = pa.array(random.integers(len(vocabulary), size=n * words))
    other = lists(random.dirichlet(np.ones(words), n).ravel())
    columns = {
        "probability": pa.array(random.uniform(size=n)),
        "words": lists(pa.array(vocabulary, pa.string()).take(picked)),
        "attention": lists(random.dirichlet(np.ones(words), n).ravel()),
        "adversarial": other if adversarial else pa.nulls(n, other.type),
        "one_hot_gradient": lists(random.random(n * words)),
        "leave_one_out": lists(random.normal(size=n * words)),
    }
    for name, values in columns.items():
        whose = whose.append_column(name, values)
    return whose


def verdict(classes, *, checks=tuple(MEASURES), estimate=None, **changes):
    one = estimate or Estimate(0.41, 0.36, 0.47, 90)
    results = {
        name: CheckResult(
            "undecided",
            f"The sentence of {name}.",
            dict.fromkeys(MEASURES[name], one),
            (
                *(
                    EstimateRow(measure, one, predicted=label)
                    for label in classes
                    for measure in MEASURES[name]
                ),
                *(
                    EstimateRow(measure, one, slice=f"Predicted class: {label}")
                    for label in classes
                    for measure in SLICED.get(name, ())
                ),
            ),
            {MEASURES[name][0]: 10},
            (MissingMeasure("lost_measure", "it was not there"),),
        )
        for name in checks
    }
    usual = {
        "answer": "unfaithful",
        "why": "Attention ranks words nearer to chance.",
        "degree": Degree("agreement", one),
        "instead": better("one_hot_gradient", 0.876),
        "claims": {name: ClaimResult("not tested", "Not looked at.") for name in CLAIMS},
        "checks": results,
    }
    given = usual | changes
    if isinstance(given["degree"], Estimate):
        given["degree"] = Degree("agreement", given["degree"])
    return Verdict(**given)


def better(method, share):
    """A method with its place, without an interval."""
    return BetterMethod(method, Estimate(share, nan, nan, 0))


def manifest(**changes):
    usual = {
        "versions": {"heedful": "0.1.0", "numpy": "2.0"},
        "model": {"name": "runs/demo/model", "family": "bilstm-additive", "sha256": "ab" * 32},
        "data": {
            "name": "sample:movies",
            "split": "test",
            "sha256": "cd" * 32,
            "texts": 105,
            "bad_rows": "no bad rows",
        },
        "labels": ["neg", "pos"],
        "seed": 3,
        "level": 0.9,
        "interval": "90% expanded percentile bootstrap over instances, 2000 resamples",
        "truncated": 2,
        "too_short": 5,
        "seconds": {"agreement": {"cpu": 1.25, "wall": 2.0}, "forward": {"cpu": 2.5, "wall": 3.0}},
    }
    return usual | changes


def transformer(
    n=30,
    *,
    layers=3,
    heads=4,
    kept_maps=2,
    tokens=("[CLS]", "a", "fine", "film", "[SEP]"),
    **others,
):
    """Records of a model of many attentions, the last layer of which was audited by one check."""
    described = {
        "attention_path": "interface",
        "attention": f"layer {layers - 1}, mean over heads, first position",
        "parity": 3e-7,
        "batches_halved": 2,
    }
    changes = described | others.pop("manifest_changes", {})
    one = records(n, manifest_changes=changes, **({"checks": ("agreement",)} | others))
    whole = (
        PartitionedTable.of(maps(kept_maps, layers, heads, tokens=tokens)) if kept_maps else None
    )
    return replace(estimated(one, by_layer(n, layers, heads)), maps=whole)


def records(
    n=100,
    classes=("neg", "pos"),
    *,
    checks=tuple(MEASURES),
    vocabulary=("a", "fine", "film"),
    words=8,
    kept=True,
    adversarial=True,
    estimate=None,
    plan='model = "runs/demo/model"\n',
    manifest_changes=None,
    **changes,
):
    rows = measurements(n, classes, checks=checks)
    return RunRecords(
        verdict(classes, checks=checks, estimate=estimate, **changes),
        manifest(**(manifest_changes or {})),
        PartitionedTable.of(rows),
        PartitionedTable.of(texts(rows, vocabulary, words=words, adversarial=adversarial))
        if kept
        else None,
        plan,
    )
