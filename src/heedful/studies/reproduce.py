"""`heedful.reproduce`: run a published study again and compare its numbers with ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.core.errors import ConfigError, DataError
from heedful.core.files.folder_lock import lock_folder
from heedful.core.timing import Progress, no_progress
from heedful.report.figures.draw import render_svg, write_svg
from heedful.report.pages.section_page import render_page_html, render_page_markdown
from heedful.results.outputs import (
    HTML_MARK,
    MARKDOWN_MARK,
    SVG_MARK,
    is_output,
    output_path,
    require_output,
    write_markdown,
    write_output,
)
from heedful.studies.cell_results import collect_results
from heedful.studies.claims import ClaimFinding, evaluate_claims
from heedful.studies.figures import build_study_figures
from heedful.studies.find_data import find_data
from heedful.studies.grid import OWN_ATTENTION, StudyRequest, build_cells, describe_model, run_cells
from heedful.studies.page import StudyOutcome, build_heading, build_sections, pluralise
from heedful.studies.published_numbers import (
    CSV_COLUMNS,
    PublishedNumbers,
    ReplicatedNumber,
    compare_numbers,
    render_csv,
)
from heedful.studies.study import Study, select_known

PAGE, MARKDOWN, NUMBERS, FIGURES = "study.html", "study.md", "study.csv", "figures"


@dataclass(frozen=True)
class Reproduction:
    """The results of a study; `absent` and `failed` give the reasons for missing sets and cells."""

    folder: Path
    rows: Sequence[ReplicatedNumber]
    claims: Sequence[ClaimFinding]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> Path:
        """The page, one self-contained HTML file."""
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
    page_only: bool = False,
    progress: Progress = no_progress,
    announce: Callable[[str], None] = lambda _: None,
) -> Reproduction:
    """Run a study on every data set found under `data_root`, and write its page to `out`.

    Each model on each set with each seed is a cell, run once: the same call again continues where
    the last one stopped. The study's main model may have more seeds than the others
    (`main_seeds`). `quick` takes a sample of the texts; `train` and `test` limit the number of
    texts by set. `transformers` are "minilm", folders or hub ids of models that are fine-tuned and
    audited in the same way. `page_only` runs no cell: the page shows the finished cells and lists
    the others.
    """
    read = Study.read(study)
    limits = {"train": dict(train or {}), "test": dict(test or {})}
    _require_valid(read, transformers, limits, least=(workers, 1 if seeds is None else seeds))
    selected, models = read.select(sets=sets, encoders=encoders, attentions=attentions)
    found = find_data(selected, Path(data_root))
    if not found.data:
        reasons = "; ".join(f"{name}: {why}" for name, why in found.absent.items())
        raise DataError(f"None of the study's data is under {data_root}: {reasons}")
    count = seeds or (1 if quick else read.seeds)
    request = StudyRequest(models, count, quick, tuple(transformers), limits, main_seeds)
    cells = build_cells(read, selected, found.data, request)
    folder = output_path(out)
    for name, why in found.absent.items():
        announce(f"{name}: {why}")
    done = sum(one.done(folder) for one in cells)
    announce(f"{pluralise(len(cells), 'cells')}, {done} done.")
    left_out = {one.name: "not selected" for one in read.sets if one not in selected}
    with lock_folder(folder):
        require_outputs(folder)
        to_run = () if page_only else cells
        failed = run_cells(to_run, folder, workers=workers, progress=progress)
        results = collect_results(cells, folder, read.sets)
        missing = tuple(one.name for one in cells if not one.done(folder))
        known = PublishedNumbers.of(read.name, read.renamed)
        rows, claims = compare_numbers(results, known), evaluate_claims(read, results, known)
        figures, absent = build_study_figures(read, results, claims, rows), found.absent | left_out
        outcome = StudyOutcome(
            read, results, rows, claims, figures, absent, failed, quick=quick, missing=missing
        )
        return _write_outputs(outcome, folder)


def _require_valid(
    study: Study,
    transformers: Sequence[str],
    limits: Mapping[str, Mapping[str, int]],
    *,
    least: Sequence[int],
) -> None:
    """Raise an error for an invalid request before any cell runs."""
    if min(least) < 1:
        raise ConfigError(f"workers and seeds must be at least 1; got {least[0]} and {least[1]}.")
    for most in limits.values():
        select_known("set", tuple(most), tuple(one.name for one in study.sets))
    if transformers and not study.transformers:
        raise ConfigError(f"{study.name} trains its models from scratch; it takes no transformers.")
    names = [describe_model((one, OWN_ATTENTION)) for one in dict.fromkeys(transformers)]
    if twice := [one for one in names if names.count(one) > 1]:
        raise ConfigError(
            f"Two transformers are named {twice[0]!r}, so their numbers could not be "
            "distinguished; rename one of the folders."
        )


def require_outputs(folder: Path) -> None:
    """Refuse a folder that has files of the names of our pages which are not ours."""
    marks = {NUMBERS: ",".join(CSV_COLUMNS), MARKDOWN: MARKDOWN_MARK, PAGE: HTML_MARK}
    for name, mark in marks.items():
        require_output(folder / name, mark)


def _write_outputs(outcome: StudyOutcome, folder: Path) -> Reproduction:
    """Write page, Markdown, CSV and figures; delete the figures of an earlier page."""
    rows, heading, sections = list(outcome.rows), build_heading(outcome), build_sections(outcome)
    require_outputs(folder)
    write_output(folder / NUMBERS, render_csv(rows), ",".join(CSV_COLUMNS))
    drawn = {folder / FIGURES / f"{one.name}.svg": one for one in outcome.figures}
    for old in (folder / FIGURES).glob("*.svg"):
        if old not in drawn and is_output(old, SVG_MARK):
            old.unlink()
    for path, figure in drawn.items():
        write_svg(path, render_svg(figure))
    write_markdown(folder / MARKDOWN, render_page_markdown(heading, sections, figures=FIGURES))
    write_output(folder / PAGE, render_page_html(heading, sections, kind="reproduced"), HTML_MARK)
    return Reproduction(folder, rows, outcome.claims, outcome.absent, outcome.failed)
