"""Put what `heedful reproduce` wrote into the documentation: pages, figures, a gallery of them.

    python -m benchmarks.gallery RUN [RUN ...] [--docs docs]

For each folder RUN the page goes to docs/studies/NAME.md, its table to NAME.csv and its figures to
docs/studies/NAME/; docs/gallery.md shows every figure with its caption, the date and the versions
it was made with. Nothing is drawn or counted here.
"""

import argparse
import re
import shutil
from pathlib import Path

from heedful.core.atomic_files import write_atomic

FIGURE = re.compile(r"!\[(?P<title>[^\]]*)\]\((?P<path>[^)]+)\)\n\n\*(?P<caption>.*)\*")
TOP = """# Gallery

Figures of published studies, run again by `heedful reproduce` ([how](reproduce.md)). Numbers are
those of the runs named above each part; made by `python -m benchmarks.gallery`.
"""


def main() -> None:
    """Copy the pages and write the gallery."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("runs", nargs="+", type=Path)
    asked.add_argument("--docs", type=Path, default=Path("docs"))
    given = asked.parse_args()
    parts = [TOP, *(study_in(run, given.docs) for run in given.runs)]
    write_atomic(given.docs / "gallery.md", "\n".join(parts))


def study_in(run: Path, docs: Path) -> str:
    """The study's page in its place, and its part of the gallery."""
    name, page = run.name, (run / "study.md").read_text(encoding="utf-8")
    studies = docs / "studies"
    shutil.rmtree(studies / name, ignore_errors=True)
    shutil.copytree(run / "figures", studies / name)
    shutil.copy(run / "study.csv", studies / f"{name}.csv")
    write_atomic(studies / f"{name}.md", page.replace("](figures/", f"]({name}/"))
    title, line, *_ = page.split("\n\n")
    shown = [
        f"![{one['title']}]({Path('studies', name, Path(one['path']).name)})\n\n{one['title']}. "
        f"{one['caption'].removeprefix(one['title']).lstrip('. ')}\n"
        for one in FIGURE.finditer(page)
    ]
    head = f"## {title.removeprefix('# ')} ({name})\n"
    return "\n".join([head, f"{line} [All numbers](studies/{name}.md).\n", *shown])


if __name__ == "__main__":
    main()
