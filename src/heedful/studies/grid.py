"""The cells of a study: one model, one data set, one seed each, run side by side in processes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.core.process_pool import ReportProgress, Worker, WorkerDied, run_tasks
from heedful.core.timing import Progress
from heedful.data.read import digest_data
from heedful.studies.study import ModelSpec, Study, StudyDataset

OWN_ATTENTION = "own"  # the attention of transformers
CELL_FILE = "cell.json"
SPLITS = ("train", "dev", "test")
LOG_TAIL = 2000  # characters at the end of a log that are searched for the last line


@dataclass(frozen=True)
class StudyCell:
    """Everything that determines the result of one model on one set.

    `recipe` holds the settings of the training, `limits` the number of texts used of each split,
    `settings` those of the checks. `sha256` identifies the rows of the data; their location does
    not matter.
    """

    study: str
    texts: str
    data: str
    encoder: str
    attention: str
    seed: int
    checks: tuple[str, ...]
    cleaning: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sha256: str = ""

    @property
    def model(self) -> ModelSpec:
        """Encoder and attention."""
        return self.encoder, self.attention

    @property
    def name(self) -> str:
        """Set, model and seed, for display."""
        return f"{self.texts} {describe_model(self.model)} seed {self.seed}"

    def place(self, out: Path) -> Path:
        """Its folder, named by a hash of all settings except the location of the data."""
        settings = {name: one for name, one in asdict(self).items() if name != "data"}
        content = json.dumps(settings, sort_keys=True)
        key = blake2b(content.encode(), digest_size=5).hexdigest()
        model = describe_model(self.model).replace(" ", "-")
        return out / "cells" / f"{self.texts}-{model}-{self.seed}-{key}"

    def done(self, out: Path) -> bool:
        """Whether its results are complete."""
        return (self.place(out) / CELL_FILE).exists()

    @classmethod
    def from_json(cls, text: str) -> "StudyCell":
        """Read a cell from JSON."""
        raw = json.loads(text)
        return cls(**{**raw, "checks": tuple(raw["checks"])})


@dataclass(frozen=True)
class StudyRequest:
    """Which part of a study to run: models, number of seeds, quick or in full.

    The study's main model may have more seeds than the others (`main_seeds`).
    """

    models: tuple[ModelSpec, ...]
    seeds: int
    quick: bool = False
    transformers: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by split and set
    main_seeds: int = 0


def describe_model(model: ModelSpec) -> str:
    """Encoder and attention; for a transformer the name of its folder.

    >>> describe_model(("bilstm", "additive")), describe_model(("models/minilm", "own"))
    ('bilstm additive', 'minilm')
    """
    encoder, attention = model
    if attention == OWN_ATTENTION:
        path = Path(encoder)
        return path.parent.name if path.name == "model" else path.name
    return f"{encoder} {attention}"


def build_cells(
    study: Study, sets: Sequence[StudyDataset], data: Mapping[str, str], request: StudyRequest
) -> list[StudyCell]:
    """All cells, first seeds and the main model first, so that partial results are most useful."""
    models = sorted(request.models, key=lambda one: one != study.main)
    models += [(one, OWN_ATTENTION) for one in dict.fromkeys(request.transformers)]
    found: dict[str, Any] = {
        name: {"data": one, "sha256": digest_data(one)} for name, one in data.items()
    }
    return [
        replace(_build_cell(study, one, model, request), seed=seed, **found[one.name])
        for seed in range(max(request.seeds, request.main_seeds))
        for model in models
        if seed < request.seeds or (model == study.main and seed < request.main_seeds)
        for one in sets
        if one.name in found
    ]


def _build_cell(
    study: Study, texts: StudyDataset, model: ModelSpec, request: StudyRequest
) -> StudyCell:
    """The cell of a model on a set, without seed and data."""
    if model[1] == OWN_ATTENTION:  # which costs a hundred times as much per text
        recipe = dict(study.transformers["quick" if request.quick else "whole"])
        limits = {split: recipe.pop(split) for split in SPLITS}
    else:
        recipe, limits = {**study.recipe, **texts.recipe}, dict(texts.limits)
        if request.quick:
            quickly = {**asdict(study.quick), **texts.quick}
            recipe["epochs"] = min(recipe["epochs"], quickly["epochs"])
            limits = {split: quickly[split] for split in SPLITS}
    for split, most in request.limits.items():
        if texts.name in most:
            limits[split] = min(most[texts.name], limits.get(split, most[texts.name]))
    quick = study.quick.settings if request.quick else {}
    settings = {
        name: {**study.settings.get(name, {}), **quick.get(name, {})}
        for name in dict.fromkeys((*study.checks, *quick))
    }
    settings = {name: own for name, own in settings.items() if own}
    checks, cleaning = study.checks, texts.cleaning
    return StudyCell(
        study.name, texts.name, "", *model, 0, checks, cleaning, recipe, limits, settings
    )


@dataclass(eq=False)
class _CellRunner:
    """Runs cells by name, each in a new process: a crash harms no other cell."""

    cells: dict[str, StudyCell]
    out: Path
    worker: Worker | None = None

    def __call__(self, name: str, report_progress: ReportProgress) -> str | None:
        folder = self.cells[name].place(self.out)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "log.txt"
        self.worker = Worker("heedful.studies.run_cell", [str(self.out)], log=log)
        try:
            return self.worker(asdict(self.cells[name]), report_progress)
        except WorkerDied as error:
            if self.worker.process.returncode <= 0:
                return str(error)
            text = log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace").strip()
            return text.splitlines()[-1] if text else "its process ended without a message"
        finally:
            self.end()

    def end(self) -> None:
        """Kill the running process, if any."""
        if self.worker is not None:
            self.worker.end()


def run_cells(
    cells: Sequence[StudyCell], out: Path, *, workers: int, progress: Progress
) -> dict[str, str]:
    """Run the cells that are not done; return why some failed, by name."""
    waiting = {cell.name: cell for cell in cells if not cell.done(out)}
    done = len(cells) - len(waiting)
    runners = [_CellRunner(waiting, out) for _ in range(min(workers, len(waiting)))]

    def report(finished: int, total: int, message: str) -> None:  # noqa: ARG001
        progress(done + finished, len(cells), message)

    try:
        return run_tasks(list(waiting), runners, report, title="cells")
    finally:
        for runner in runners:
            runner.end()
