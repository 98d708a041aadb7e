"""A run folder as it lies on disk: names, columns, and how to read them. Needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.errors import RunError
from heedful.core.records import WORD_SCORES
from heedful.results.tables import PartitionedTable

PLAN, MANIFEST, VERDICT, REPORT = "plan.toml", "manifest.json", "verdict.json", "report.html"
MEASUREMENTS, TEXTS, MAPS = "measurements", "texts", "maps"
MEASUREMENT_SCHEMA = pa.schema(
    [
        ("instance", pa.int64()),
        ("predicted", pa.string()),
        ("label", pa.string()),
        ("check", pa.string()),
        ("measure", pa.string()),
        ("setting", pa.string()),
        ("value", pa.float64()),
    ]
)
TEXT_SCHEMA = pa.schema(
    [
        ("instance", pa.int64()),
        ("predicted", pa.string()),
        ("label", pa.string()),
        ("probability", pa.float64()),
        ("words", pa.list_(pa.string())),
        *((name, pa.list_(pa.float64())) for name in WORD_SCORES),
        ("question", pa.string()),  # of runs that are older than this column it is null
    ]
)

MAP_SCHEMA = pa.schema(
    [
        ("instance", pa.int64()),
        ("layer", pa.int64()),
        ("head", pa.int64()),
        ("queries", pa.list_(pa.string())),
        ("keys", pa.list_(pa.string())),
        ("weights", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class RunFolder:
    """Reads the files of one run."""

    path: Path

    def files(self, kind: str = MEASUREMENTS) -> list[Path]:
        """The finished Parquet files, in the order of their instances."""
        return sorted((self.path / kind).glob("[!.]*.parquet"))

    def measurements(self, paths: Sequence[Path] | None = None) -> PartitionedTable:
        """All rows, or those of the given files, in order, to be read file by file."""
        chosen = self.files() if paths is None else paths
        if not chosen:
            raise RunError(f"{self.path} holds no measurements; is it a run folder?")
        return PartitionedTable(
            tuple(partial(read_parquet, one, MEASUREMENT_SCHEMA) for one in chosen)
        )

    def texts(self) -> PartitionedTable | None:
        """The words and scores of every text, or None where the run kept none."""
        paths = self.files(TEXTS)
        return (
            PartitionedTable(tuple(partial(read_parquet, one, TEXT_SCHEMA) for one in paths))
            if paths
            else None
        )

    def maps(self) -> PartitionedTable | None:
        """Every layer's and head's attention of a few texts, or None where the run kept none."""
        paths = self.files(MAPS)
        return (
            PartitionedTable(tuple(partial(read_parquet, one, MAP_SCHEMA) for one in paths))
            if paths
            else None
        )

    def text(self, name: str) -> str:
        """One of the run's text files."""
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(
                f"{self.path} has no {name}: not a run folder, or a run that was interrupted. "
                "The same `heedful audit` command again finishes it."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{self.path / name} cannot be read: {error}.") from error


def read_parquet(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file's rows under a schema, all of its columns or those asked for."""
    try:
        return pq.read_table(path, schema=schema, columns=columns and list(columns))
    except (pa.ArrowException, OSError) as error:
        raise damaged_file_error(path, error) from error


def damaged_file_error(path: Path, error: Exception) -> RunError:
    """The error that says which file to remove."""
    return RunError(
        f"{path} is damaged: {error}. Remove that file; the same `heedful audit` command measures "
        "it again."
    )
