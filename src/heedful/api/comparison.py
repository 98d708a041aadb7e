"""`heedful.compare`: runs, or methods of one run, held side by side from their records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.run import Run
from heedful.comparison.compare import ComparisonSettings, compare_records
from heedful.comparison.records import ComparisonRecord
from heedful.comparison.requirements import RequirementResult, check_requirement, parse_requirement
from heedful.comparison.sides import ComparedRun
from heedful.core.errors import RunError
from heedful.numerics.stats.bootstrap import RESAMPLES
from heedful.report.pages.comparison import (
    COMPARISON_COLUMNS,
    flatten_rows,
    render_comparison_html,
    render_comparison_markdown,
    render_csv,
)
from heedful.report.terminal.comparison import print_comparison
from heedful.results.outputs import HTML_MARK, output_path, write_markdown, write_output
from heedful.results.run_folder import RunFolder
from heedful.results.tables import gather_columns, import_pandas

if TYPE_CHECKING:
    import pandas as pd

CSV_MARK = ",".join(COMPARISON_COLUMNS)  # its head tells that a file is ours


@dataclass(frozen=True)
class Comparison:
    """Two or more runs, or methods of one, side by side; `record` holds the numbers."""

    record: ComparisonRecord
    required: tuple[RequirementResult, ...] = ()

    @property
    def met(self) -> bool:
        """Whether all that was required holds."""
        return all(one.met for one in self.required)

    def require(self, *rules: str) -> "Comparison":
        """The same comparison held against further requirements, such as "degree>=-0.05"."""
        gates = [parse_requirement(one) for one in rules]
        more = tuple(check_requirement(one, self.record) for one in gates)
        return replace(self, required=(*self.required, *more))

    def show(self) -> None:
        """Print answers, claims and differences as tables."""
        print_comparison(self.record, self.required)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as `heedful compare --json` prints it."""
        required = [{"rule": one.rule, "met": one.met, "found": one.found} for one in self.required]
        return {**self.record.to_dict(), "required": required}

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per pair and measure; what does not exist is NaN."""
        rows, columns = list(flatten_rows(self.record)), list(COMPARISON_COLUMNS)
        frame: pd.DataFrame = import_pandas().DataFrame(rows, columns=columns)
        return frame

    def to_csv(self, path: str | Path) -> Path:
        """Write these rows as CSV; gives the path."""
        return write_output(output_path(path), render_csv(self.record), CSV_MARK)

    def to_markdown(self, path: str | Path) -> Path:
        """Write the tables as Markdown; gives the path."""
        page = render_comparison_markdown(self.record, self.required)
        return write_markdown(output_path(path), page)

    def to_html(self, path: str | Path) -> Path:
        """Write one page that opens offline; gives the path."""
        page = render_comparison_html(self.record, self.required)
        return write_output(output_path(path), page, HTML_MARK)


def compare(
    *runs: Run | str | Path,
    methods: Sequence[str] = (),
    paired: bool = True,
    correction: str = "holm",
    level: float | None = None,
    resamples: int = RESAMPLES,
    seed: int | None = None,
) -> Comparison:
    """Hold runs against the first of them, text by text; or, of one run, methods.

    Every measure both have comes with the paired difference, its bootstrap interval, and a p-value
    by exchanging the two, corrected over all of them. Runs on other texts are refused unless
    `paired` is False. No model is needed.
    """
    question = ComparisonSettings(paired, correction, level, resamples, seed)
    records = [read_run(one if isinstance(one, Run) else Run(Path(one))) for one in runs]
    return Comparison(compare_records(records, question, methods=tuple(methods)))


def read_run(run: Run) -> ComparedRun:
    """The records of a run that a comparison reads."""
    folder = RunFolder(run.folder)
    manifest = run.manifest
    try:
        verdict = run.verdict
    except RunError as error:  # name the run: there are several
        raise RunError(f"{run.folder}: {error}") from error
    plan, columns = folder.plan(), gather_columns(folder.measurements())
    return ComparedRun(str(run.folder), verdict, manifest, columns, plan)
