"""What `heedful.explain` and `heedful.explain_all` give back."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.auditing.explain_data import Counts
from heedful.core.errors import RunError
from heedful.core.explained import Explained
from heedful.core.files import write_atomic
from heedful.report.words import print_words

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Explanations:
    """What several methods say of one text; `record` holds the numbers.

    At the end of a notebook's cell it shows itself.
    """

    record: Explained
    model: str = ""

    def show(self, *, numbers: bool = False) -> None:
        """Print the words coloured by their scores, a line per method, or a table of numbers."""
        print_words(self.record, numbers=numbers)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as `heedful explain --json` prints it."""
        return self.record.to_dict()

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per word, one column per method."""
        try:
            import pandas as pd
        except ImportError:
            raise RunError("to_dataframe needs pandas: pip install pandas.") from None
        columns = {name: one.scores for name, one in self.record.methods.items()}
        return pd.DataFrame({"token": self.record.tokens, **columns})

    def to_html(self, path: str | Path) -> Path:
        """Write one page that opens offline; gives its path."""
        from heedful.report.explained_html import explained_page

        write_atomic(Path(path), explained_page(self.record, model=self.model))
        return Path(path)

    def _repr_html_(self) -> str:
        from heedful.report.explained_html import explained_fragment

        return explained_fragment(self.record, model=self.model)


@dataclass(frozen=True)
class DataExplanations:
    """Where the scores of a data set lie, and what became of its texts."""

    path: Path
    counts: Counts
    bad_rows: str
    left_out: str = ""

    def to_dataframe(self) -> "pd.DataFrame":
        """The rows of the file, one per text and method, in the order of the data."""
        try:
            import pandas as pd
        except ImportError:
            raise RunError("to_dataframe needs pandas: pip install pandas.") from None
        frame = pd.read_parquet(self.path)
        return frame.sort_values("instance", kind="stable", ignore_index=True)

    def __str__(self) -> str:
        """What was written, and every text that is not in it, told."""
        counts = self.counts
        size = f"{self.path.stat().st_size / 1e6:.1f} MB"
        told = [f"{_texts(counts.texts)} explained, {counts.rows} rows: {self.path} ({size})"]
        if counts.no_words:
            told.append(f"{_texts(counts.no_words)} without any word left out")
        if counts.truncated:
            told.append(f"{_texts(counts.truncated)} cut at the model's limit")
        if counts.halved:
            told.append(f"batches halved because memory ran out: {counts.halved}")
        for name, (count, reason) in counts.refused.items():
            told.append(f"{name} refused {count} of {_texts(counts.texts)}: {reason}")
        if self.bad_rows != "no bad rows":
            told.append(self.bad_rows)
        if self.left_out:
            told.append(self.left_out)
        return "\n".join(told)


def _texts(count: int) -> str:
    return f"{count} text{'' if count == 1 else 's'}"
