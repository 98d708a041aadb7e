"""`heedful.reproduce`: a published study run again, its numbers beside ours."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path

from heedful.core.errors import DataError
from heedful.core.files import write_atomic
from heedful.core.progress import Progress, silent
from heedful.reproducing.cells import Asked, Cell, cells_of
from heedful.reproducing.claims import Judged, judged
from heedful.reproducing.figures import figures_of
from heedful.reproducing.finding import find
from heedful.reproducing.made import made_of
from heedful.reproducing.page import sections_of
from heedful.reproducing.parts import Outcome
from heedful.reproducing.published import Published
from heedful.reproducing.rendering import Heading, html_of, markdown_of, write_svgs
from heedful.reproducing.rows import Row, csv_of, rows_of
from heedful.reproducing.study import Study
from heedful.reproducing.working import work_all
from heedful.runner.lock import locked

PAGE, MARKDOWN, NUMBERS, FIGURES = "study.html", "study.md", "study.csv", "figures"


@dataclass(frozen=True)
class Reproduction:
    """What came of a study; `failed` says of cells without numbers why."""

    folder: Path
    rows: Sequence[Row]
    claims: Sequence[Judged]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> Path:
        """The page, one file that opens offline."""
        return self.folder / PAGE


def reproduce(
    study: str,
    *,
    data_root: str | Path,
    out: str | Path,
    quick: bool = False,
    seeds: int | None = None,
    main_seeds: int = 0,
    sets: Sequence[str] = (),
    encoders: Sequence[str] = (),
    attentions: Sequence[str] = (),
    transformers: Sequence[str] = (),
    train: Mapping[str, int] | None = None,
    test: Mapping[str, int] | None = None,
    workers: int = 2,
    progress: Progress = silent,
    announce: Callable[[str], None] = lambda _: None,
) -> Reproduction:
    """Run a study on every data set found under `data_root`, and write its page to `out`.

    Every model on every set under every seed is a cell of its own, made once: the same call again
    goes on where the last one stopped. The study's main model may have more seeds (`main_seeds`)
    than the others. `quick` takes a sample of the texts, `train` and `test` at
    most so many texts of a set, `transformers` are "minilm", folders or hub ids of models to be
    tuned and asked the same.
    """
    read = Study.read(study)
    picked, models = read.chosen(sets=sets, encoders=encoders, attentions=attentions)
    found = find(picked, Path(data_root))
    if not found.data:
        told = "; ".join(f"{name}: {why}" for name, why in found.absent.items())
        raise DataError(f"None of the study's data is under {data_root}: {told}")
    many = seeds or (1 if quick else read.seeds)
    limits = {"train": dict(train or {}), "test": dict(test or {})}
    asked = Asked(models, many, quick, tuple(transformers), limits, main_seeds)
    cells = cells_of(read, picked, found.data, asked)
    folder = Path(out)
    for name, why in found.absent.items():
        announce(f"{name}: {why}")
    announce(f"{len(cells)} cells, {sum(one.done(folder) for one in cells)} of them done.")
    left = {one.name: "not asked for" for one in read.sets if one not in picked}
    with locked(folder):
        failed = work_all(cells, folder, workers=workers, progress=progress)
        return _written(read, cells, folder, {**found.absent, **left}, failed, asked)


def _written(
    study: Study,
    cells: Sequence[Cell],
    folder: Path,
    absent: Mapping[str, str],
    failed: Mapping[str, str],
    asked: Asked,
) -> Reproduction:
    """Page, Markdown, CSV and figures from the cells that are done."""
    made, known = made_of(cells, folder, study.sets), Published.of(study.name)
    rows, claims = rows_of(made, known), judged(study, made, known)
    drawn = figures_of(study, made, claims, rows)
    missing = tuple(one.name for one in cells if not one.done(folder))
    outcome = Outcome(
        study, made, rows, claims, drawn, absent, failed, quick=asked.quick, missing=missing
    )
    sections, heading = sections_of(outcome), Heading(study, _line(asked), _warnings(outcome))
    write_atomic(folder / NUMBERS, csv_of(rows))
    write_svgs(sections, folder / FIGURES)
    write_atomic(folder / MARKDOWN, markdown_of(heading, sections, figures=FIGURES))
    write_atomic(folder / PAGE, html_of(heading, sections))
    return Reproduction(folder, rows, claims, absent, failed)


def _line(asked: Asked) -> str:
    """When, by what, how often."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("heedful", "torch"))
    seeds = "one seed" if asked.seeds == 1 else f"{asked.seeds} seeds"
    if asked.main_seeds > asked.seeds:
        seeds += f", of the main model {asked.main_seeds}"
    return f"{date.today().isoformat()}, {libraries}, Python {platform.python_version()}; {seeds}."


def _warnings(outcome: Outcome) -> tuple[str, ...]:
    found = []
    if outcome.quick:
        found.append(
            "A quick run: models are trained on samples for a few epochs and audited on a few "
            "texts. Its numbers show that everything runs, not what the paper found."
        )
    if outcome.failed:
        found.append(f"{len(outcome.failed)} cells failed; see Set-up for why.")
    if untried := [one for one in outcome.missing if one not in outcome.failed]:
        found.append(f"{len(untried)} cells are not made yet: {', '.join(untried)}.")
    return tuple(found)
