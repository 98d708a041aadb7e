"""A run folder: measurements by job, written whole or not at all, so that a rerun resumes."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heedful.core.atomic_files import remove_drafts, save_atomic, write_atomic
from heedful.core.errors import RunError
from heedful.pipeline.audit.job import JobResult, JobSummary, MeasureColumn
from heedful.pipeline.audit.word_score_rows import WordScoreRow
from heedful.pipeline.plan.plan import Plan
from heedful.results.run_folder import (
    MAP_SCHEMA,
    MAPS,
    MEASUREMENT_SCHEMA,
    MEASUREMENTS,
    PLAN,
    TEXT_SCHEMA,
    TEXTS,
    RunFolder,
    damaged_file_error,
)
from heedful.results.tables import MeasuredValues, gather_measures, gather_settings

SEED_SETTING = re.compile(r"seed \d+")
DATASET_MEASURES = "whole"  # the file of measures that needed all instances
SUMMARY_KEY = b"heedful"  # Parquet metadata: what a job has to tell beside its rows


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
        content = json.dumps([settled, first, last], sort_keys=True)
        jobs.append(Job(first, last, blake2b(content.encode(), digest_size=10).hexdigest()))
    return jobs


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
    """The files of one run."""

    folder: Path

    def begin(self, plan: Plan, jobs: Sequence[AnyJob] = ()) -> None:
        """Claim the folder for this plan, or continue the run of the same plan and jobs."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is a file; --out must name a folder.")
        if (self.folder / PLAN).exists():
            before = Plan.from_toml((self.folder / PLAN).read_text(encoding="utf-8"))
            if different := before.differences(plan):
                raise RunError(
                    f"{self.folder} holds a run with another plan (different: "
                    f"{', '.join(different)}). Choose another --out, or remove the folder."
                )
        elif self.folder.exists() and (self.folder / MEASUREMENTS).exists():
            raise RunError(f"{self.folder} holds measurements but no {PLAN}; choose another --out.")
        ours = {job.name for job in jobs} | {DATASET_MEASURES}
        if jobs and any(path.stem not in ours for path in RunFolder(self.folder).files()):
            raise RunError(
                f"{self.folder} holds measurements of another model or of other data under the "
                "same names. Choose another --out, or remove the folder."
            )
        for kind in (".", MEASUREMENTS, TEXTS, MAPS):
            remove_drafts(self.folder / kind)
        write_atomic(self.folder / PLAN, plan.to_toml())

    def done(self, job: AnyJob) -> bool:
        """Whether the job's results are here."""
        return self._path(job.name).exists()

    def put(self, job: Job, result: JobResult, labels: Sequence[str]) -> None:
        """Keep a job's results; the measurements last, since they mean that the job is done."""
        texts = text_table(result.texts, labels)
        save_atomic(
            self.folder / TEXTS / f"{job.name}.parquet",
            lambda draft: pq.write_table(texts, draft),
        )
        if result.maps:
            maps = pa.Table.from_pylist([asdict(one) for one in result.maps], schema=MAP_SCHEMA)
            save_atomic(
                self.folder / MAPS / f"{job.name}.parquet",
                lambda draft: pq.write_table(maps, draft),
            )
        self._write(job.name, _table(result, labels), asdict(result.beside))

    def put_dataset_measures(
        self, whole: Mapping[str, Mapping[str, np.ndarray]], measured: MeasuredValues
    ) -> None:
        """Keep the measures that needed all instances, one row per instance of `measured`."""
        parts = [
            _dataset_rows(measured, check, measure, values)
            for check, measures in whole.items()
            for measure, values in measures.items()
        ]
        self._write(
            DATASET_MEASURES,
            pa.concat_tables(parts) if parts else MEASUREMENT_SCHEMA.empty_table(),
            {},
        )

    def put_dataset_job(self, job: DatasetJob, result: JobResult, labels: Sequence[str]) -> None:
        """Keep what a check found that looked at all instances."""
        self._write(job.name, _table(result, labels), asdict(result.beside))

    def by_seed(self, job: DatasetJob, measures: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """What was measured under several seeds: a row for each, in their order."""
        rows = RunFolder(self.folder).measurements([self._path(job.name)])
        found: dict[str, list[NDArray[np.float64]]] = {measure: [] for measure in measures}
        for measure, tables in found.items():
            for setting, values in gather_settings(rows, job.check, measure).items():
                if SEED_SETTING.fullmatch(setting):  # a measure may have rows of other settings too
                    tables.append(values)
        return {measure: np.stack(tables) for measure, tables in found.items() if tables}

    def measured(self, jobs: Sequence[AnyJob]) -> MeasuredValues:
        """What the jobs measured, every measure on every instance."""
        found = gather_measures(
            RunFolder(self.folder).measurements([self._path(job.name) for job in jobs])
        )
        if found.partial:
            raise RunError(
                f"{found.partial[0]} was not measured on every instance; "
                "the run folder is damaged. Remove it and run again."
            )
        return found

    def beside(self, jobs: Sequence[AnyJob]) -> JobSummary:
        """What the jobs told beside their rows, added up."""
        return sum((_read_summary(self._path(job.name)) for job in jobs), JobSummary())

    def write(self, name: str, content: str) -> None:
        """Write one of the run's text files."""
        write_atomic(self.folder / name, content)

    def _write(self, name: str, table: pa.Table, beside: Mapping[str, Any]) -> None:
        table = table.replace_schema_metadata({SUMMARY_KEY: json.dumps(beside).encode()})
        save_atomic(self._path(name), lambda draft: pq.write_table(table, draft))

    def _path(self, name: str) -> Path:
        return self.folder / MEASUREMENTS / f"{name}.parquet"


def _read_summary(path: Path) -> JobSummary:
    try:
        return JobSummary(**json.loads(pq.read_schema(path).metadata[SUMMARY_KEY]))
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise damaged_file_error(path, error) from error


def text_table(texts: Sequence[WordScoreRow], labels: Sequence[str]) -> pa.Table:
    """Rows of words and scores as a table."""
    plain = [
        {
            "instance": one.instance,
            "predicted": labels[one.predicted],
            "label": None if one.label < 0 else labels[one.label],
            "probability": one.probability,
            "words": one.words,
            **one.scores,
            "question": one.question,
        }
        for one in texts
    ]
    return pa.Table.from_pylist(plain, schema=TEXT_SCHEMA)


def _table(result: JobResult, labels: Sequence[str]) -> pa.Table:
    parts = [_rows(block, result, labels) for block in result.blocks]
    return pa.concat_tables(parts) if parts else MEASUREMENT_SCHEMA.empty_table()


def _rows(block: MeasureColumn, result: JobResult, labels: Sequence[str]) -> pa.Table:
    count = len(block.instances)
    names = pa.array(labels, pa.string())
    classes = [
        [which[i] for i in block.instances.tolist()] for which in (result.predicted, result.label)
    ]
    columns = [
        pa.array(block.instances),
        # a class of −1, of a text without a label, is kept as null
        *(
            names.take(pa.array([i if i >= 0 else None for i in one], pa.int64()))
            for one in classes
        ),
        *(
            pa.array([text] * count, pa.string())
            for text in (block.check, block.measure, block.setting)
        ),
        pa.array(block.values, from_pandas=True),  # NaN, undefined, is kept as null
    ]
    return pa.Table.from_arrays(columns, schema=MEASUREMENT_SCHEMA)


def _dataset_rows(
    measured: MeasuredValues, check: str, measure: str, values: NDArray[np.float64]
) -> pa.Table:
    count, classes = len(measured.instances), (measured.predicted, measured.label)
    columns = [
        pa.array(measured.instances),
        # no label is told apart from any name: it is null, as in the rows of the jobs
        *(pa.array([name or None for name in one], pa.string()) for one in classes),
        *(pa.array([text] * count, pa.string()) for text in (check, measure, None)),
        pa.array(values, from_pandas=True),
    ]
    return pa.Table.from_arrays(columns, schema=MEASUREMENT_SCHEMA)
