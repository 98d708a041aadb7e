"""`python -m benchmarks.memory`: peak memory and time of an audit as its data grow.

Audits the same small model on 1 000 … 50 000 made-up texts of 8 to 24 words, each in a process of
its own, report page included, and writes what it saw to `docs/memory.csv` and, as a picture, to
`docs/memory.svg`.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import heedful
from heedful.data.corpora.word_lists import FILLERS, NEGATIVE, POSITIVE
from heedful.models.recurrent.model_folder import save_model

SIZES = (1_000, 5_000, 10_000, 20_000, 50_000)
DOCS = Path(__file__).parent.parent / "docs"


def write_texts(path, count):
    """Texts with one telling word each; every row drawn anew, so that no two runs share caches."""
    draw = np.random.default_rng(0)
    with path.open("w") as stream:
        for number in range(count):
            words = draw.choice(FILLERS, size=int(draw.integers(8, 25))).tolist()
            words[int(draw.integers(len(words)))] = str(
                draw.choice(POSITIVE if number % 2 else NEGATIVE)
            )
            row = {"text": " ".join(words), "label": ("negative", "positive")[number % 2]}
            stream.write(json.dumps(row) + "\n")


def audit(model, texts, out):
    """(peak MiB, CPU seconds, wall seconds, MB of report) of one audit in its own process."""
    command = [sys.executable, "-m", "heedful", "audit", model, texts, "--out", out, "--quiet"]
    start = os.times().elapsed
    child = subprocess.Popen(
        [str(part) for part in command], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"The audit ended with exit code {child.returncode}.")
    page = (out / "report.html").stat().st_size / 1e6
    seconds = used.ru_utime + used.ru_stime
    return used.ru_maxrss / 1024, seconds, os.times().elapsed - start, page


def picture(rows):
    """Peak memory and CPU seconds over the number of texts."""
    import altair as alt

    data = alt.Data(values=rows)
    base = alt.Chart(data, width=300, height=220).encode(x=alt.X("texts:Q", title="texts audited"))

    def panel(name, title):
        y = alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=True))
        return base.mark_line(point=True, color="#0072b2").encode(y=y)

    both = panel("peak_mib", "peak memory, MiB") | panel("cpu_seconds", "CPU seconds")
    both.save(DOCS / "memory.svg")


def main():
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        train, dev = (heedful.read("synthetic:needle", split=s) for s in ("train", "dev"))
        subject = heedful.fit(train, dev, heedful.Recipe(embedding=50, hidden=32, epochs=4))
        save_model(subject, home / "model")
        for size in sizes:
            texts = home / f"{size}.jsonl"
            write_texts(texts, size)
            peak, cpu, wall, page = audit(home / "model", texts, home / f"run{size}")
            row = {"texts": size, "peak_mib": round(peak), "cpu_seconds": round(cpu, 1)}
            rows.append(row | {"wall_seconds": round(wall, 1), "report_mb": round(page, 2)})
            print(rows[-1], flush=True)
    with (DOCS / "memory.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    picture(rows)


if __name__ == "__main__":
    main()
