"""A finished run: a folder of records, its verdict and its rows."""

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.errors import RunError
from heedful.core.records import Verdict
from heedful.report.card import print_card
from heedful.runner.store import MANIFEST, VERDICT, Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """What an audit left behind. Holds no model."""

    folder: Path

    @cached_property
    def verdict(self) -> Verdict:
        """The answer, with the claims and estimates it rests on."""
        return Verdict.from_json(self._read(VERDICT))

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, fingerprints, seeds, counts and cost."""
        try:
            found: dict[str, Any] = json.loads(self._read(MANIFEST))
        except ValueError as error:
            raise RunError(f"{self.folder / MANIFEST} is damaged: {error}.") from error
        return found

    def to_dataframe(self) -> "pd.DataFrame":
        """All measurements as tidy rows; undefined values are NaN."""
        try:
            import pandas  # noqa: F401 - pyarrow makes the frame
        except ImportError:
            raise RunError("to_dataframe needs pandas: pip install pandas.") from None
        frame: pd.DataFrame = Store(self.folder).measurements().to_pandas()
        return frame

    def show(self) -> None:
        """Print the verdict card."""
        print_card(self.verdict, self.manifest)

    def save(self, folder: str | Path) -> "Run":
        """Copy the run to a folder that does not exist yet."""
        if Path(folder).exists():
            raise RunError(f"{folder} exists already; save to a new folder.")
        try:
            shutil.copytree(self.folder, folder)
        except OSError as error:
            raise RunError(f"Cannot write {folder}: {error.strerror or error}.") from error
        return Run(Path(folder))

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(
                f"{self.folder} has no {name}: not a run folder, or a run that was interrupted. "
                "The same `heedful audit` command again finishes it."
            ) from None
