"""A run folder: measurements by job, written whole or not at all, so that a rerun resumes."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heedful.core.atomic_files import remove_drafts, remove_file, save_atomic, write_atomic
from heedful.core.errors import ConfigError, RunError
from heedful.core.records import SCHEMA, MeasureKey
from heedful.core.values import Example
from heedful.pipeline.audit.job import JobResult, JobSummary
from heedful.pipeline.audit.text_rows import text_id_table
from heedful.pipeline.plan.plan import Plan, read_plan_file
from heedful.results.kept_files import KeptFiles, digest_text
from heedful.results.run_folder import (
    FILES,
    KINDS,
    MANIFEST,
    MAPS,
    MEASUREMENTS,
    PLAN,
    TEXT_IDS,
    TEXTS,
    VERDICT,
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

    @cached_property
    def damaged(self) -> dict[str, str]:
        """The files that were missing or changed when this process began, and what was wrong."""
        return self.kept.damaged()

    def begin(self, plan: Plan, jobs: Sequence[AnyJob] = ()) -> None:
        """Claim the folder for this plan, or continue the run of the same plan and jobs."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is a file; --out must name a folder.")
        self._require_same_plan(plan)
        self._require_digests()
        for kind in (".", *KINDS):
            remove_drafts(self.folder / kind)
        if jobs:
            self._require_own_files(jobs)
        self.write(PLAN, plan.to_toml())

    def _require_same_plan(self, plan: Plan) -> None:
        if os.path.lexists(self.folder / PLAN):
            try:
                before = Plan.from_toml(read_plan_file(self.folder / PLAN))
            except ConfigError as error:
                raise RunError(
                    f"{self.folder / PLAN} is damaged: {error} Choose another --out, or remove the "
                    "folder."
                ) from error
            if different := before.differences(plan):
                raise RunError(
                    f"{self.folder} holds a run with another plan (different: "
                    f"{', '.join(different)}). Choose another --out, or remove the folder."
                )
        elif (self.folder / MEASUREMENTS).exists():
            raise RunError(f"{self.folder} holds measurements but no {PLAN}; choose another --out.")

    def _require_digests(self) -> None:
        """Refuse measurements of which nobody recorded what they held."""
        if self.kept.digests or not RunFolder(self.folder).files():
            return
        if RunFolder(self.folder).schema == 1:
            raise RunError(
                f"{self.folder} holds a run of an earlier version (schema 1), which can be read "
                "and compared but not continued. Choose another --out, or remove the folder."
            )
        raise RunError(
            f"{self.folder} holds measurements but no digests of them ({FILES} is missing or "
            "empty, or the run is of an earlier version), so that none can be trusted to be "
            "whole. Choose another --out, or remove the folder to measure everything again."
        )

    def _require_own_files(self, jobs: Sequence[AnyJob]) -> None:
        """Refuse files of other jobs and files that joined a finished one; forget their records."""
        ours = {job.name for job in jobs} | {DATASET_MEASURES}
        if any(path.stem not in ours for path in RunFolder(self.folder).files()):
            raise RunError(
                f"{self.folder} holds measurements of another model, of this model in another "
                "precision (dtype), or of other data under the same names. Choose another --out, "
                "or remove the folder."
            )
        names = {file_name(kind, job) for kind in KINDS for job in ours}
        self.kept.keep_only(names | {PLAN, MANIFEST, VERDICT})
        done = {job for job in ours if file_name(MEASUREMENTS, job) in self.kept.digests}
        for name in self.kept.unrecorded():
            kind, _, job = name.removesuffix(".parquet").partition("/")
            if job and (job not in ours or (job in done and kind in RESULTS)):
                raise RunError(f"{self.folder / name} is no file of this run. Remove it.")

    def done(self, job: AnyJob) -> bool:
        """Whether the job's results are here, whole and unchanged."""
        names = [file_name(kind, job.name) for kind in RESULTS]
        return names[0] in self.kept.digests and self.damaged.keys().isdisjoint(names)

    def dtype(self, jobs: Sequence[AnyJob]) -> str:
        """The precision in which the jobs that are done were computed; "" where none says so."""
        done = (_read_summary(self._path(job.name)).dtype for job in jobs if self.done(job))
        return next(filter(None, done), "")

    def put(self, job: AnyJob, result: JobResult, labels: Sequence[str]) -> None:
        """Keep a job's results; its record last, since it means that the job is done."""
        kept = {MEASUREMENTS: _with_summary(_table(result, labels), asdict(result.summary))}
        if isinstance(job, Job):
            kept[TEXTS] = pa.Table.from_pylist(result.texts, TEXT_SCHEMA)
        if result.maps:
            kept[MAPS] = pa.Table.from_pylist(result.maps, MAP_SCHEMA)
        for kind in RESULTS:
            self.kept.digests.pop(file_name(kind, job.name), None)
            if kind not in kept:
                remove_file(self.folder / file_name(kind, job.name))
        self._write_tables(job.name, kept)

    def put_text_ids(self, job: Job, examples: Sequence[Example]) -> None:
        """Keep the ids of a job's texts, unless they are there and whole."""
        name = file_name(TEXT_IDS, job.name)
        if name not in self.kept.digests or name in self.damaged:
            self._write_tables(job.name, {TEXT_IDS: text_id_table(examples)})

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
        self._write_tables(DATASET_MEASURES, {MEASUREMENTS: _with_summary(table, {})})

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

    def seal(self, coming: Mapping[str, str]) -> dict[str, Any]:
        """What the manifest says of the digests of all other files, also of those still coming."""
        return self.kept.seal({name: digest_text(text) for name, text in coming.items()})

    def _write_tables(self, job: str, tables: Mapping[str, pa.Table]) -> None:
        """Write a job's files of some kinds, then record them."""
        names = [file_name(kind, job) for kind in tables]
        for name, table in zip(names, tables.values(), strict=True):
            save_atomic(self.folder / name, partial(pq.write_table, table))
        self.kept.record(*names)
        for name in names:
            self.damaged.pop(name, None)

    def _path(self, name: str) -> Path:
        return self.folder / MEASUREMENTS / f"{name}.parquet"


def file_name(kind: str, job: str) -> str:
    """The name of a job's file of one kind, in the run folder."""
    return f"{kind}/{job}.parquet"


def _with_summary(table: pa.Table, summary: Mapping[str, Any]) -> pa.Table:
    return table.replace_schema_metadata({SUMMARY_KEY: json.dumps(summary).encode()})


def _read_summary(path: Path) -> JobSummary:
    try:
        return JobSummary.from_dict(json.loads(pq.read_schema(path).metadata[SUMMARY_KEY]))
    except (
        *(pa.ArrowException, OSError, RecursionError),
        *(ValueError, TypeError, KeyError, AttributeError),
    ) as error:
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
