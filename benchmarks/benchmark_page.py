"""Write the scores of methods on the planted kinds as a page.

heedful benchmark --json > runs/benchmark.json
make -s peers ARGS=--json > runs/peers.json
python -m benchmarks.benchmark_page runs/benchmark.json runs/peers.json > docs/studies/benchmark.md
"""

import argparse
import json
from collections import Counter
from datetime import date
from pathlib import Path
from statistics import mean

HEAD = (
    *("method", "top set", "above chance", "top word", "order"),
    *("attention right", "attention wrong", "CPU ms", "passes", "kinds", "texts"),
)


def main():
    """Print the page: a table for each file."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("files", nargs="+", type=Path)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in asked.parse_args().files]
    print("\n\n".join([INTRODUCTION.format(today=date.today().isoformat()), *map(section, found)]))


def section(found):
    """The table of one run, what it was run on, and what methods refused."""
    kinds = found["kinds"]
    truths = Counter("mixed" if one["mixed"] else one["ranks"] for one in kinds.values())
    title = "## With other libraries" if "libraries" in found else "## Methods of heedful"
    about = (
        f"{len(kinds)} kinds of version {found['planted_version']} ({truths[True]} where attention "
        f"ranks words rightly, {truths[False]} wrongly, {truths['mixed']} mixed), "
        f"{found['texts_per_kind']} texts of each, seed {found['seed']}."
    )
    lines = ["| " + " | ".join(HEAD) + " |", "| --- |" + " ---: |" * (len(HEAD) - 1)]
    methods = found["methods"]
    served = {name: one for name, one in methods.items() if one["served"]["kinds"]}
    lines += ["| " + " | ".join(cells(name, one)) + " |" for name, one in served.items()]
    refusals = [line for name, one in methods.items() for line in refused(name, one)]
    libraries = [f"- {name}: {which}" for name, which in found.get("libraries", {}).items()]
    parts = [title, about, "\n".join(lines), FAMILIES, by_family(kinds, served)]
    parts += ["Refused:\n\n" + "\n".join(refusals)] if refusals else []
    parts += ["Libraries:\n\n" + "\n".join(libraries)] if libraries else []
    return "\n\n".join(parts)


def by_family(kinds, methods):
    """The mean top set over the kinds of each family."""
    families = list(dict.fromkeys(one["family"] for one in kinds.values()))
    lines = ["| method | " + " | ".join(families) + " |", "| --- |" + " ---: |" * len(families)]
    for name, one in methods.items():
        found = {family: [] for family in families}
        for kind, own in one["by_kind"].items():
            if own["top_set"] is not None:
                found[kinds[kind]["family"]].append(own["top_set"])
        means = [number(mean(own) if own else None) for own in found.values()]
        lines.append(f"| `{name}` | " + " | ".join(means) + " |")
    return "\n".join(lines)


def cells(name, one):
    """A row of the table."""
    cost, served = one["cost"], one["served"]
    return [
        f"`{name}`",
        interval(one["top_set"]),
        interval(one["top_set_above_chance"]),
        interval(one["top_word"]),
        interval(one["order"]),
        number(one["attention_right"]["top_set"]["value"]),
        number(one["attention_wrong"]["top_set"]["value"]),
        f"{1000 * cost['cpu_seconds']:.3g}",
        f"{cost['passes']:.3g}",
        str(served["kinds"]),
        str(served["texts"]),
    ]


def refused(name, one):
    """What a method refused and why; nothing where it served every text."""
    reasons = one["refused"]["reasons"]
    if reasons:
        why, *more = reasons
        others = f" ({len(more)} more reasons)" if more else ""
        yield f"- `{name}`: {one['refused']['texts']} texts. {why}{others}"


def number(value):
    """Two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}"


def interval(estimate):
    """A value with its interval, where there is one."""
    value, low, high = (number(estimate[key]) for key in ("value", "low", "high"))
    return value if low == "–" else f"{value} [{low}, {high}]"


INTRODUCTION = """# How often the top words of a method are the true ones

Measured by `heedful benchmark` and `make peers` on {today}; written by
`python -m benchmarks.benchmark_page`. [The benchmark](../benchmark.md) says what the columns mean.
Intervals (95 %) are over kinds; a method is scored on the kinds that it serves."""
FAMILIES = "Top set by family of kinds:"

if __name__ == "__main__":
    main()
