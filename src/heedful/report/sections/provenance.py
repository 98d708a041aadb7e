"""Where the numbers come from, what they cost, and what they do not show."""

from collections.abc import Mapping
from typing import Any

from heedful.core.records import Verdict
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import Section, Table
from heedful.results.run_records import RunRecords, sanitise_text

ALWAYS = (
    "Leave-one-out is itself an intervention: a text with a word deleted may be unlike any text "
    "the model has seen, and two redundant words can each be left out at no cost.",
    "Gradient and leave-one-out can agree with each other and both be wrong about what a person "
    "means by importance. This is about influence on the output, not about plausibility to people.",
    "The intervals are over texts of this data set, for this one trained model. Another training "
    "seed is another model.",
    "A degree near 1 can come from a weak reference: compare the τ of gradient and leave-one-out.",
    "Slices and sentences are for looking, not for testing: nothing is corrected for their number.",
)


def list_limits(verdict: Verdict, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader could wrongly take from the page."""
    limits = []
    if untested := [name for name, one in verdict.claims.items() if one.answer == "not tested"]:
        limits.append(f"Not tested at all: {', '.join(untested)}.")
    if no_vote := [name for name, one in verdict.checks.items() if one.answer == "no vote"]:
        names = ", ".join(map(sanitise_text, no_vote))
        limits.append(f"Reported without a vote on the answer: {names}.")
    if short := manifest.get("too_short"):
        limits.append(f"{short} texts were too short to be ranked and are left out.")
    if cut := manifest.get("truncated"):
        limits.append(f"{cut} texts were cut to the length the model can read.")
    if left := manifest["data"].get("left_out"):
        limits.append(f"The data has more rows than were audited: {sanitise_text(str(left))}.")
    audited = read_audited_attention(manifest)
    return (*limits, *(audited.limits if audited else ()), *ALWAYS)


def build_facts(manifest: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Names and values on model, data, method, versions and cost, as far as the manifest has them.

    Each group of them stands under its title.
    """
    model, data = manifest["model"], manifest["data"]
    groups = {
        "Model": {
            **{name: model.get(name) for name in ("name", "family", "sha256")},
            "labels": ", ".join(map(str, manifest.get("labels", ()))),
        },
        "Data": {
            **{name: data[name] for name in ("name", "split", "texts")},
            "too short": manifest.get("too_short"),
            "cut": manifest.get("truncated"),
            "rows": data.get("bad_rows"),
            "cleaning": data.get("cleaning"),
            "left out": data.get("left_out"),
            "sha256": data.get("sha256"),
        },
        "Method": {
            "intervals": manifest.get("interval"),
            "seed": manifest.get("seed"),
            "arithmetic": manifest.get("dtype"),
            **{name: manifest.get(name) for name in ("device", "threads")},
            **_attention(manifest),
        },
        "Kept files": _kept(manifest.get("files")),
        "Versions": dict(manifest.get("versions", {})),
        "Cost in CPU seconds (wall)": _cost(manifest.get("seconds", {})),
    }
    return {title: shown for title, facts in groups.items() if (shown := _shown(facts))}


def _attention(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Which attention it was, how it was reached, and whether reaching it moved the output."""
    path, audited = manifest.get("attention_path"), read_audited_attention(manifest)
    return {
        "attention under audit": audited.words if audited else None,
        "attention path": PATHS.get(path, path) if path else None,
        "parity with the untouched model": manifest.get("parity"),
        "batches halved for memory": manifest.get("batches_halved") or None,
    }


def _kept(files: Any) -> dict[str, Any]:
    """Where the digests of the run's files are, and how to hold the files against them."""
    if not isinstance(files, Mapping):
        return {}
    names = ("number", "recorded in", "sha256")
    known = {name.replace("sha256", "sha256 of all"): files.get(name) for name in names}
    return known | {"verified by": "heedful verify RUN"}


def _cost(seconds: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    total = {kind: sum(one[kind] for one in seconds.values()) for kind in ("cpu", "wall")}
    spent = {**seconds, "total": total} if seconds else {}
    return {name: f"{one['cpu']:.1f} ({one['wall']:.1f})" for name, one in spent.items()}


def _shown(rows: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (sanitise_text(str(name)), sanitise_text(str(value)))
        for name, value in rows.items()
        if value is not None and value != ""
    )


# how the attention was reached (see heedful.models.attention_access.access), in a reader's words
PATHS = {
    "interface": "interface: the weights as the model's own attention function gives them",
    "tap": "tap: the weights as they leave the model's softmax",
}


def build_limits(records: RunRecords) -> Section:
    """What the page does not show."""
    limits = list_limits(records.verdict, records.manifest)
    return Section("limits", "What this does not show", points=limits, short="Limits")


def build_provenance(records: RunRecords) -> Section:
    """Tables of facts, and the plan."""
    plan, facts = sanitise_lines(records.plan), build_facts(records.manifest)
    tables = tuple(Table((title, ""), rows) for title, rows in facts.items())
    folded = (Section("plan", "The plan of this run", code=plan),) if plan else ()
    title = "Method, data, versions, cost"
    return Section("method", title, tables=tables, folded=folded, short="Method")


def sanitise_lines(text: str) -> str:
    """As `sanitise_text`, keeping the breaks between lines."""
    return "\n".join(sanitise_text(line) for line in text.splitlines())
