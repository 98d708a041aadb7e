"""The result of `heedful.explain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.report.terminal.coloured_words import print_words
from heedful.results.explanation import TextExplanation
from heedful.results.outputs import HTML_MARK, output_path, write_output
from heedful.results.tables import import_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Explanations:
    """One text explained by several methods; `record` holds the numbers.

    A notebook displays it at the end of a cell.
    """

    record: TextExplanation
    model: str = ""

    def show(self, *, numbers: bool = False) -> None:
        """Print the words coloured by their scores, a line per method, or a table of numbers."""
        print_words(self.record, numbers=numbers)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as `heedful explain --json` prints it."""
        return self.record.to_dict()

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per word, one column per method."""
        columns = {name: one.scores for name, one in self.record.methods.items()}
        frame: pd.DataFrame = import_pandas().DataFrame({"token": self.record.tokens, **columns})
        return frame

    def to_html(self, path: str | Path) -> Path:
        """Write one page that opens offline; gives its path."""
        from heedful.report.pages.explanation import render_explanation_html

        page = render_explanation_html(self.record, model=self.model)
        return write_output(output_path(path), page, HTML_MARK)

    def _repr_html_(self) -> str:
        from heedful.report.pages.explanation import render_explanation_fragment

        return render_explanation_fragment(self.record, model=self.model)
