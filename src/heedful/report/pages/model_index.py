"""The figures of a run in the schema in which model cards keep evaluations (`model-index`)."""

from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import PurePath
from typing import Any

from heedful.core.records import Estimate, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.sections.claims import leading_figures
from heedful.results.run_records import sanitise_text

MANY = 1000  # more classes than this are the words of a language model
DIGITS = 6
DEGREE = "Attention between shuffled attention (0) and the gradient (1)"
ANSWER = "Does attention rank words by their influence?"
SOURCE = "heedful"


def model_index(verdict: Verdict, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The block for the top of a card: one result, a metric for each leading figure.

    A metric's interval, level and number of texts stand in its `args`.
    """
    result = {
        "task": _task(manifest),
        "dataset": _dataset(manifest["data"]),
        "metrics": list(_metrics(verdict, manifest)),
    }
    return {
        "tags": ["attention", "explainability", SOURCE],
        "model-index": [{"name": model_name(manifest), "results": [result]}],
    }


def model_name(manifest: Mapping[str, Any]) -> str:
    """The model as the run calls it; of a place on someone's disk only the last part.

    >>> model_name({"model": {"name": "/home/me/models/mine"}})
    'mine'
    """
    name = str(manifest["model"]["name"])
    return sanitise_text(PurePath(name).name or name if name.startswith(("/", "~", ".")) else name)


def _task(manifest: Mapping[str, Any]) -> dict[str, str]:
    if len(manifest.get("labels", ())) > MANY:
        return {"type": "text-generation", "name": "Text generation"}
    return {"type": "text-classification", "name": "Text classification"}


def _dataset(data: Mapping[str, Any]) -> dict[str, Any]:
    name = sanitise_text(str(data["name"]))
    kind, config = name, ""
    if name.startswith("hf:"):
        kind, _, config = name.removeprefix("hf:").partition("@")
    found: dict[str, Any] = {"type": kind, "name": name}
    found |= {"config": config} if config else {}
    found["split"] = sanitise_text(str(data["split"]))
    found["args"] = {
        "sha256": sanitise_text(str(data.get("sha256") or "")),
        "texts": data.get("texts"),
    }
    return found


def _version(manifest: Mapping[str, Any]) -> str:
    return sanitise_text(str((manifest.get("versions") or {}).get("heedful", "")))


def _metrics(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    level, by = manifest.get("level", 0.95), {"version": _version(manifest)}
    answer = sanitise_text(verdict.answer)
    yield {"type": f"{SOURCE}_answer", "value": answer, "name": ANSWER, "args": by}
    for claim, found in verdict.claims.items():
        kind, name = sanitise_text(f"{SOURCE}_claim_{claim}"), sanitise_text(f"Claim: {claim}")
        yield {"type": kind, "value": sanitise_text(found.answer), "name": name}
    if verdict.degree is not None and not isnan(verdict.degree.estimate.value):
        yield _metric(f"{SOURCE}_degree", DEGREE, verdict.degree.estimate, level)
    for check, result in verdict.checks.items():
        spec = find_spec(check, manifest)
        for one in leading_figures(spec, result):
            if not isnan(one.estimate.value):
                name = f"{check}.{one.name}"
                label = f"{one.measure.label} ({name})" if one.measure.label else name
                kind = f"{SOURCE}_{check}_{one.name}".replace(" (", "_").replace(")", "")
                yield _metric(sanitise_text(kind), sanitise_text(label), one.estimate, level)


def _metric(kind: str, name: str, estimate: Estimate, level: float) -> dict[str, Any]:
    ends = {"low": _rounded(estimate.low), "high": _rounded(estimate.high)}
    args = {**ends, "level": level, "n": estimate.n}
    if estimate.n < 2 or isnan(estimate.low):
        args = {"n": estimate.n}
    return {"type": kind, "value": _rounded(estimate.value), "name": name, "args": args}


def _rounded(value: float) -> float:
    return round(value, DIGITS) + 0.0
