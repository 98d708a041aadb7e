"""Results of finished cells: the numbers of every model on a set, by text and seed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from heedful.api.run import Run
from heedful.core.errors import RunError
from heedful.core.records import Estimate
from heedful.results.run_folder import RunFolder
from heedful.results.tables import MeasurementColumns, gather_columns
from heedful.studies.grid import CELL_FILE, StudyCell
from heedful.studies.study import ModelSpec, StudyDataset

SeedTable = Float64[np.ndarray, "S n"]  # one row per seed, one column per text


@dataclass(frozen=True, eq=False)
class CellResults:
    """The finished cells of one model on one set, one per seed, in the folder `out`.

    `class_names` maps each class number of the paper to the names it may have in the data.
    """

    cells: tuple[StudyCell, ...]
    out: Path
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the finished cells."""
        return tuple(one.seed for one in self.cells)

    @cached_property
    def summaries(self) -> tuple[dict[str, Any], ...]:
        """The summary file of each cell."""
        return tuple(_read_cell_summary(one.place(self.out) / CELL_FILE) for one in self.cells)

    @cached_property
    def measured(self) -> tuple[MeasurementColumns, ...]:
        """All measures of all texts, for each seed."""
        runs = (RunFolder(one.place(self.out) / "run") for one in self.cells)
        return tuple(gather_columns(run.measurements()) for run in runs)

    @cached_property
    def instances(self) -> NDArray[np.int64]:
        """The texts measured for all seeds."""
        common = self.measured[0].instances
        for one in self.measured[1:]:
            common = np.intersect1d(common, one.instances)
        return common

    def table(self, measure: str, of_class: str = "all") -> SeedTable:
        """A measure such as "agreement.tau_gradient"; NaN for texts of another predicted class."""
        check, name = measure.split(".", 1)
        wanted = self.class_names.get(of_class, (of_class,))
        rows = []
        for one in self.measured:
            kept = np.isin(one.instances, self.instances)
            values = derive_measure(one, check, name)[kept]
            if of_class != "all":
                values = np.where(np.isin(one.predicted[kept], wanted), values, np.nan)
            rows.append(values)
        return np.stack(rows)

    def verdict_estimates(self, measure: str) -> tuple[Estimate, ...]:
        """The estimate of a measure in each run's verdict; empty if no run has it."""
        check, name = measure.split(".", 1)
        verdicts = (Run(one.place(self.out) / "run").verdict for one in self.cells)
        found = (one.checks[check].estimates.get(name) for one in verdicts if check in one.checks)
        return tuple(one for one in found if one is not None)

    def performance(self, name: str) -> Float64[np.ndarray, "S"]:
        """One score on the test texts per seed; NaN where it is missing."""
        return np.array([one["performance"].get(name, np.nan) for one in self.summaries])


StudyResults = Mapping[tuple[str, ModelSpec], CellResults]  # by set and model


def collect_results(
    cells: Sequence[StudyCell], out: Path, sets: Sequence[StudyDataset] = ()
) -> dict[tuple[str, ModelSpec], CellResults]:
    """The finished cells by set and model."""
    names = {one.name: one.classes for one in sets}
    found: dict[tuple[str, ModelSpec], list[StudyCell]] = {}
    for cell in cells:
        if cell.done(out):
            found.setdefault((cell.texts, cell.model), []).append(cell)
    return {
        key: CellResults(tuple(some), out, names.get(key[0], {})) for key, some in found.items()
    }


def derive_measure(measured: MeasurementColumns, check: str, name: str) -> Float64[np.ndarray, "n"]:
    """A recorded measure, or one derived from `flip_top` and `flip_random`."""
    top, random = (measured.column(check, f"flip_{one}") for one in ("top", "random"))
    derived = {
        "flip_both": top * random,
        "flip_only_top": top * (1 - random),
        "flip_only_random": (1 - top) * random,
        "flip_neither": (1 - top) * (1 - random),
    }
    return derived[name] if name in derived else measured.column(check, name)


def _read_cell_summary(path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(summary, dict):
            raise ValueError("it must hold a JSON object")
    except (OSError, ValueError) as error:
        advice = f"Remove {path.parent} and run the study again."
        raise RunError(f"{path} is damaged: {error}. {advice}") from error
    return summary
