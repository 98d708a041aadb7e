"""A run folder: measurements by job, written whole or not at all, so that a rerun resumes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heedful.core.atomic_files import remove_drafts, remove_file, save_atomic, write_atomic
from heedful.core.errors import RunError
from heedful.core.records import SCHEMA, MeasureKey
from heedful.core.values import Example
from heedful.pipeline.audit.job import JobResult, JobSummary
from heedful.pipeline.audit.text_rows import text_id_table
from heedful.pipeline.plan.plan import Plan, read_plan_file
from heedful.results.kept_files import KeptFiles
from heedful.results.run_folder import (
    MANIFEST,
    MAPS,
    MEASUREMENTS,
    PLAN,
    TEXT_IDS,
    TEXTS,
    RunFolder,
    damaged_file_error,
)
from heedful.results.tables import (
    MAP_SCHEMA,
    MEASUREMENT_SCHEMA,
    TEXT_SCHEMA,
    MeasurementColumns,
    TextValues,
    gather_columns,
)
from heedful.results.text_ids import TextIds, read_text_ids

DATASET_MEASURES = "whole"  # the file of measures that need all texts
RESULTS = (MEASUREMENTS, TEXTS, MAPS)  # the kinds of files that a job writes
SUMMARY_KEY = b"heedful"  # Parquet metadata: the summary of a job


@dataclass(frozen=True)
class Job:
    """Instances first … last − 1, under a key that names everything its results depend on."""

    first: int
    last: int
    key: str

    @property
    def name(self) -> str:
        """File name without ending; sorts by instance."""
        return f"{self.first:09d}-{self.key}"


def make_jobs(plan: Plan, total: int, *, origin: Mapping[str, str | None]) -> list[Job]:
    """Cut a data set into jobs; `origin` holds the fingerprints of model and data."""
    settled = {
        "schema": SCHEMA,
        "checks": {name: plan.settings_of(name) for name in plan.settings},
        "seed": plan.seed,
        "min_words": plan.min_words,
        **origin,
    }
    if plan.methods:
        settled["methods"] = {name: dict(one) for name, one in plan.methods.items()}
    jobs = []
    for first in range(0, total, plan.instances_per_job):
        last = min(first + plan.instances_per_job, total)
        jobs.append(Job(first, last, job_key([settled, first, last])))
    return jobs


def job_key(content: Any) -> str:
    """The digest of everything that the results of a job depend on."""
    text = json.dumps(content, sort_keys=True)
    return blake2b(text.encode(), digest_size=10).hexdigest()


@dataclass(frozen=True)
class DatasetJob:
    """A check that looks at all instances at once, under a key as for a job."""

    check: str
    key: str

    @property
    def name(self) -> str:
        """File name without ending; sorts behind the jobs."""
        return f"retrained-{self.check}-{self.key}"


AnyJob = Job | DatasetJob


@dataclass(frozen=True)
class RunStore:
    """The files of one run; each is recorded with the digest of its content."""

    folder: Path

    @cached_property
    def kept(self) -> KeptFiles:
        """The files that are recorded, also those of an earlier process."""
        return KeptFiles.read(self.folder)

    def begin(self, plan: Plan, jobs: Sequence[AnyJob] = ()) -> None:
        """Claim the folder for this plan, or continue the run of the same plan and jobs."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is a file; --out must name a folder.")
        if (self.folder / PLAN).exists():
            before = Plan.from_toml(read_plan_file(self.folder / PLAN))
            if different := before.differences(plan):
                raise RunError(
                    f"{self.folder} holds a run with another plan (different: "
                    f"{', '.join(different)}). Choose another --out, or remove the folder."
                )
        elif self.folder.exists() and (self.folder / MEASUREMENTS).exists():
            raise RunError(f"{self.folder} holds measurements but no {PLAN}; choose another --out.")
        if RunFolder(self.folder).schema == 1:
            raise RunError(
                f"{self.folder} holds a run of an earlier version (schema 1), which can be read "
                "and compared but not continued. Choose another --out, or remove the folder."
            )
        ours = {job.name for job in jobs} | {DATASET_MEASURES}
        if jobs and any(path.stem not in ours for path in RunFolder(self.folder).files()):
            raise RunError(
                f"{self.folder} holds measurements of another model, of this model in another "
                "precision (dtype), or of other data under the same names. Choose another --out, "
                "or remove the folder."
            )
        for kind in (TEXTS, MAPS, TEXT_IDS) if jobs else ():
            for path in RunFolder(self.folder).files(kind):
                if path.stem not in ours:
                    raise RunError(f"{path} is no file of this run. Remove it and run again.")
        for kind in (".", MEASUREMENTS, TEXTS, MAPS, TEXT_IDS):
            remove_drafts(self.folder / kind)
        self.write(PLAN, plan.to_toml())

    def done(self, job: AnyJob) -> bool:
        """Whether the job's results are here, whole and unchanged."""
        return job.name in self._whole_jobs

    @cached_property
    def _whole_jobs(self) -> set[str]:
        """The jobs of which no file is missing or changed."""
        found = set()
        for path in self.kept.digests:
            kind, _, name = path.removesuffix(".parquet").partition("/")
            if kind == MEASUREMENTS and not self.damaged_files(name, RESULTS):
                found.add(name)
        return found

    def damaged_files(
        self, job: str, kinds: Sequence[str] = (MEASUREMENTS, TEXTS, MAPS, TEXT_IDS)
    ) -> list[str]:
        """The files of a finished job that are missing or changed."""
        names = [f"{kind}/{job}.parquet" for kind in kinds]
        if f"{MEASUREMENTS}/{job}.parquet" not in self.kept.digests:
            return []
        return [one for one in names if one in self.kept.digests and not self.kept.is_whole(one)]

    def digests(self) -> dict[str, str]:
        """The digest of every kept file, by its name in the folder; but that of the manifest."""
        return {name: one for name, one in sorted(self.kept.digests.items()) if name != MANIFEST}

    def dtype(self, jobs: Sequence[AnyJob]) -> str:
        """The precision in which the jobs that are done were computed; "" where none says so."""
        done = (_read_summary(self._path(job.name)).dtype for job in jobs if self.done(job))
        return next(filter(None, done), "")

    def put(self, job: AnyJob, result: JobResult, labels: Sequence[str]) -> None:
        """Keep a job's results; the measurements last, since they mean that the job is done."""
        self._forget(job)
        if isinstance(job, Job):
            self._write_rows(TEXTS, job.name, pa.Table.from_pylist(result.texts, TEXT_SCHEMA))
        if result.maps:
            self._write_rows(MAPS, job.name, pa.Table.from_pylist(result.maps, MAP_SCHEMA))
        self._write(job.name, _table(result, labels), asdict(result.summary))
        self._record(job.name)
        self._whole_jobs.add(job.name)

    def _forget(self, job: AnyJob) -> None:
        """Drop the record of a job that is measured again, before its files change."""
        for kind in RESULTS:
            if self.kept.digests.pop(f"{kind}/{job.name}.parquet", None) and kind == MAPS:
                remove_file(self.folder / kind / f"{job.name}.parquet")

    def _record(self, job: str, *kinds: str) -> None:
        """Record the files of a job, those of all kinds by default."""
        names = (f"{kind}/{job}.parquet" for kind in kinds or RESULTS)
        self.kept.record(*(name for name in names if (self.folder / name).exists()))

    def put_text_ids(self, job: Job, examples: Sequence[Example]) -> None:
        """Keep the ids of a job's texts, unless they are there and whole."""
        if not self.kept.is_whole(f"{TEXT_IDS}/{job.name}.parquet"):
            self._write_rows(TEXT_IDS, job.name, text_id_table(examples))
            self._record(job.name, TEXT_IDS)

    def text_ids(self, instances: NDArray[np.int64]) -> TextIds | None:
        """The ids of some texts; None where the run kept none."""
        return read_text_ids(RunFolder(self.folder).text_ids(), instances)

    def put_dataset_measures(
        self, values: Mapping[MeasureKey, TextValues], texts: MeasurementColumns
    ) -> None:
        """Keep the measures that need all texts, one row per text."""
        named = [[name or None for name in one] for one in (texts.predicted, texts.label)]
        parts = [_rows(key, texts.instances, named, one) for key, one in values.items()]
        table = pa.concat_tables(parts) if parts else MEASUREMENT_SCHEMA.empty_table()
        self._write(DATASET_MEASURES, table, {})
        self._record(DATASET_MEASURES, MEASUREMENTS)

    def columns(self, jobs: Sequence[AnyJob]) -> MeasurementColumns:
        """The values that the jobs measured, every measure on every text."""
        paths = [self._path(job.name) for job in jobs]
        found = gather_columns(RunFolder(self.folder).measurements(paths))
        if found.partial:
            raise RunError(
                f"{found.partial[0]} was not measured on every text; the run folder is damaged. "
                "Remove it and run again."
            )
        return found

    def summary(self, jobs: Sequence[AnyJob]) -> JobSummary:
        """The summaries of the jobs, added up."""
        return sum((_read_summary(self._path(job.name)) for job in jobs), JobSummary())

    def write(self, name: str, content: str) -> None:
        """Write one of the run's text files."""
        write_atomic(self.folder / name, content)
        self.kept.record(name)

    def _write(self, name: str, table: pa.Table, summary: Mapping[str, Any]) -> None:
        table = table.replace_schema_metadata({SUMMARY_KEY: json.dumps(summary).encode()})
        self._write_rows(MEASUREMENTS, name, table)

    def _write_rows(self, kind: str, name: str, table: pa.Table) -> None:
        path = self.folder / kind / f"{name}.parquet"
        save_atomic(path, lambda draft: pq.write_table(table, draft))

    def _path(self, name: str) -> Path:
        return self.folder / MEASUREMENTS / f"{name}.parquet"


def _read_summary(path: Path) -> JobSummary:
    try:
        return JobSummary.from_dict(json.loads(pq.read_schema(path).metadata[SUMMARY_KEY]))
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise damaged_file_error(path, error) from error


def _table(result: JobResult, labels: Sequence[str]) -> pa.Table:
    names = [*labels, None]  # a class of −1, of a text without a label, is null
    parts = []
    for column in result.columns:
        classes = [
            [names[which[i]] for i in column.instances.tolist()]
            for which in (result.predicted, result.label)
        ]
        parts.append(_rows(column.key, column.instances, classes, column.values))
    return pa.concat_tables(parts) if parts else MEASUREMENT_SCHEMA.empty_table()


def _rows(
    key: MeasureKey,
    instances: NDArray[np.int64],
    classes: Sequence[Sequence[str | None]],
    values: TextValues,
) -> pa.Table:
    """The rows of one key; NaN, undefined, is kept as null."""
    columns: dict[str, Any] = {
        "instance": pa.array(instances),
        "predicted": pa.array(classes[0], pa.string()),
        "label": pa.array(classes[1], pa.string()),
        "value": pa.array(values, from_pandas=True),
    }
    for field in MEASUREMENT_SCHEMA:
        if field.name not in columns:
            value = getattr(key, field.name)
            columns[field.name] = pa.array([value] * len(instances), field.type)
    return pa.table(columns).select(MEASUREMENT_SCHEMA.names).cast(MEASUREMENT_SCHEMA)
