"""The files of a run folder, and how to read them. Needs no torch."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.core.errors import RunError
from heedful.core.files.regular_files import read_document, require_regular
from heedful.core.records import Verdict
from heedful.results import schema1, tables
from heedful.results.manifest import manifest_fault, missing_from_manifest

PLAN, MANIFEST, VERDICT, REPORT = "plan.toml", "manifest.json", "verdict.json", "report.html"
FILES = "files.jsonl"  # the digests of all others
MEASUREMENTS, TEXTS, MAPS, TEXT_IDS = "measurements", "texts", "maps", "text_ids"
KINDS = (MEASUREMENTS, TEXTS, MAPS, TEXT_IDS)


@dataclass(frozen=True)
class RunFolder:
    """Reads the files of one run."""

    path: Path

    def files(self, kind: str = MEASUREMENTS) -> list[Path]:
        """The finished Parquet files, in the order of their instances."""
        return sorted((self.path / kind).glob("[!.]*.parquet"))

    def measurements(self, paths: Sequence[Path] | None = None) -> tables.PartitionedTable:
        """All rows, or those of the given files, in order, to be read file by file."""
        chosen = self.files() if paths is None else paths
        if not chosen:
            raise RunError(f"{self.path} holds no measurements; is it a run folder?")
        return tables.PartitionedTable(tuple(partial(read_measurements, one) for one in chosen))

    @property
    def schema(self) -> int | None:
        """The schema of the measurements: 1 without the columns of schema 2; None without any."""
        paths = self.files()
        return measurement_schema(paths[0]) if paths else None

    def verdict(self) -> Verdict:
        """The verdict; of a run of schema 1, upgraded and with all its estimates."""
        verdict = schema1.read_verdict(self.text(VERDICT))
        if self.schema != 1:
            return verdict
        manifest, columns = self.manifest(), tables.gather_columns(self.measurements())
        level, seed = manifest.get("level", 0.95), manifest.get("seed", 0)
        return schema1.add_estimates(verdict, columns, level=level, seed=seed)

    def manifest(self) -> dict[str, Any]:
        """Versions, fingerprints, seeds, counts and cost."""
        try:
            found: Any = json.loads(self.text(MANIFEST))
        except (ValueError, RecursionError) as error:
            raise self._damage(MANIFEST, error) from error
        if fault := manifest_fault(found):
            raise self._damage(MANIFEST, fault)
        known: dict[str, Any] = found
        return known

    def whole_manifest(self) -> dict[str, Any]:
        """The manifest, with all that a report cannot do without."""
        if missing := missing_from_manifest(found := self.manifest()):
            raise self._damage(MANIFEST, f"it lacks {missing}")
        return found

    def plan(self) -> dict[str, Any]:
        """The content of plan.toml."""
        try:
            found = tomllib.loads(self.text(PLAN))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self._damage(PLAN, error) from error
        settings = found.get("settings", {})
        parts = {name: found.get(name, {}) for name in ("fields", "settings")}
        if isinstance(settings, dict):
            parts |= {f"settings.{name}": own for name, own in settings.items()}
        for name, table in parts.items():
            if not isinstance(table, dict):
                raise self._damage(PLAN, f"{name} is no table")
        return found

    def texts(self) -> tables.PartitionedTable | None:
        """The words and scores of every text, or None where the run kept none."""
        return self._read_all(TEXTS, tables.TEXT_SCHEMA)

    def text_ids(self) -> tables.PartitionedTable | None:
        """The ids of every text and its cluster, or None where the run kept none."""
        return self._read_all(TEXT_IDS, tables.TEXT_ID_SCHEMA)

    def maps(self) -> tables.PartitionedTable | None:
        """Every layer's and head's attention of a few texts, or None where the run kept none."""
        return self._read_all(MAPS, tables.MAP_SCHEMA)

    def _read_all(self, kind: str, schema: pa.Schema) -> tables.PartitionedTable | None:
        readers = tuple(partial(read_parquet, one, schema) for one in self.files(kind))
        return tables.PartitionedTable(readers) if readers else None

    def _damage(self, name: str, reason: object) -> RunError:
        return RunError(f"{self.path / name} is damaged: {reason}.")

    def text(self, name: str) -> str:
        """One of the run's text files."""
        try:
            return read_document(self.path / name)
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(
                f"{self.path} has no {name}: not a run folder, or a run that was interrupted. "
                "The same `heedful audit` command again finishes it."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise RunError(f"{self.path / name} cannot be read: {why}.") from error


def measurement_schema(path: Path) -> int:
    """The schema of one file of measurements."""
    try:
        require_regular(path)
        return 2 if "method" in pq.read_schema(path).names else 1
    except (pa.ArrowException, OSError) as error:
        raise damaged_file_error(path, error) from error


def read_measurements(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of one file of measurements, in the columns of schema 2."""
    if measurement_schema(path) == 2:
        return read_parquet(path, tables.MEASUREMENT_SCHEMA, columns)
    table = schema1.upgrade_measurements(read_parquet(path, schema1.SCHEMA_1))
    return table if columns is None else table.select(list(columns))


def read_parquet(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file's rows under a schema, all of its columns or the given ones."""
    try:
        require_regular(path)
        return pq.read_table(path, schema=schema, columns=columns and list(columns))
    except (pa.ArrowException, OSError) as error:
        raise damaged_file_error(path, error) from error


def damaged_file_error(path: Path, error: Exception) -> RunError:
    """The error that says what to do: only a run that knows its files by content measures again."""
    advice = "Remove that file; the same `heedful audit` command measures it again."
    if not (path.parent.parent / FILES).exists():
        advice = "Its run keeps no digests and cannot be mended; audit again, with another --out."
    why = getattr(error, "strerror", None) or error
    return RunError(f"{path} is damaged: {why}. {advice}")
