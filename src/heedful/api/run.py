"""A finished run: a folder of records, its verdict and its rows."""

import os
import shutil
import weakref
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.atomic_files import save_output
from heedful.core.errors import ConfigError, RunError, file_errors
from heedful.core.records import Verdict
from heedful.report.terminal.verdict_card import print_card
from heedful.results.kept_files import verify_run
from heedful.results.outputs import (
    HTML_MARK,
    MARKDOWN_MARK,
    output_path,
    require_output,
    write_markdown,
    write_output,
)
from heedful.results.run_folder import PLAN, REPORT, VERDICT, RunFolder
from heedful.results.run_records import RunRecords
from heedful.results.tables import import_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """What an audit left behind. Holds no model."""

    folder: Path

    @cached_property
    def verdict(self) -> Verdict:
        """The answer, with the claims and estimates it rests on."""
        return RunFolder(self.folder).verdict()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, fingerprints, seeds, counts and cost."""
        return RunFolder(self.folder).manifest()

    def to_dataframe(self) -> "pd.DataFrame":
        """All measurements as tidy rows; undefined values are NaN."""
        import_pandas()  # pyarrow makes the frame
        frame: pd.DataFrame = RunFolder(self.folder).measurements().whole().to_pandas()
        return frame

    def show(self, *, details: bool = False) -> None:
        """Print the verdict on one screen; with `details`, also the estimates of every check."""
        print_card(self.verdict, RunFolder(self.folder).whole_manifest(), details=details)

    def verify(self) -> list[str]:
        """What is missing, changed or unknown among the kept files; empty where all is well."""
        return verify_run(self.folder)

    @property
    def records(self) -> RunRecords:
        """All that a report is made from."""
        folder = RunFolder(self.folder)
        return RunRecords(
            self.verdict,
            folder.whole_manifest(),
            folder.measurements(),
            folder.texts(),
            folder.text(PLAN),
            folder.maps(),
            source=self,
            text_ids=folder.text_ids(),
        )

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page, one file that opens offline; RUN/report.html by default."""
        from heedful.report.pages.run_html import render_html

        target = output_path(path) if path else self.folder / REPORT
        require_output(target, HTML_MARK if path else None)
        return write_output(target, render_html(self.records), HTML_MARK, ours=not path)

    def markdown(self) -> str:
        """A section for a model card."""
        from heedful.report.pages.run_markdown import render_markdown

        return render_markdown(self.records)

    def write_markdown(self, path: str | Path) -> Path:
        """Write this section below a mark that says whose it is; gives the path."""
        require_output(target := output_path(path), MARKDOWN_MARK)
        return write_markdown(target, self.markdown())

    def card(self) -> str:
        """A model card's section on attention in plain words, with its block of figures on top."""
        from heedful.report.pages.model_card import render_model_card

        return render_model_card(self.verdict, RunFolder(self.folder).whole_manifest())

    def write_card(self, path: str | Path) -> Path:
        """Write the card; a file that is not one of ours is never written over."""
        from heedful.report.pages.model_card import CARD_MARK

        require_output(target := output_path(path), None)
        there = RunFolder(target.parent).text(target.name) if target.exists() else ""
        if there and CARD_MARK not in there:
            raise RunError(
                f"{target} exists and was not written by this command. Write to another file and "
                "copy the section and its figures from there."
            )
        card = self.card()
        save_output(target, lambda draft: Path(draft).write_text(card, encoding="utf-8"))
        return target

    def reviewer_page(self, path: str | Path) -> Path:
        """Write a page for whoever has to sign: data, method, results, limits, sign-off fields.

        Its ending says whether it is HTML (.html) or Markdown (.md).
        """
        from heedful.report.pages.review import render_review_html, render_review_markdown

        target = output_path(path)
        kinds = {".html": render_review_html, ".md": render_review_markdown}
        if target.suffix not in kinds:
            raise ConfigError(f"A reviewer's page ends in .html or .md, not {target.name!r}.")
        digest = sha256(RunFolder(self.folder).text(VERDICT).encode()).hexdigest()
        html = target.suffix == ".html"
        require_output(target, HTML_MARK if html else MARKDOWN_MARK)
        page = kinds[target.suffix](self.records, digest=digest)
        return write_output(target, page, HTML_MARK) if html else write_markdown(target, page)

    def figures(self, folder: str | Path | None = None) -> list[Path]:
        """Write every figure as SVG and PNG, to figures/ in the run folder by default."""
        from heedful.report.figures.draw import write_figures

        target = output_path(folder) if folder else self.folder / "figures"
        return write_figures(self.records, target, ours=not folder)

    def save(self, folder: str | Path) -> "Run":
        """Copy the run to a folder that does not exist yet."""
        target = output_path(folder)
        if os.path.lexists(target):
            raise RunError(f"{folder} exists already; save to a new folder.")
        with file_errors(f"Cannot write {folder}"):
            shutil.copytree(self.folder, target)
        return Run(target)


def temporary_run(folder: Path) -> Run:
    """A run whose folder is removed when the run is no longer referenced, or at exit."""
    found = Run(folder)
    weakref.finalize(found, _remove, folder, os.getpid())
    return found


def _remove(folder: Path, process: int) -> None:
    """Remove the folder, but not in a process that was forked from the one that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
