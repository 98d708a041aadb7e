"""The cells of a study: one model on one data set with one seed, each an independent job."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.data.read import digest_data
from heedful.studies.study import ModelSpec, Study, StudyDataset

OWN_ATTENTION = "own"  # the attention of transformers
CELL_FILE = "cell.json"


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
    digests = {name: digest_data(one) for name, one in data.items()}
    return [
        replace(
            _build_cell(study, one, model, request),
            seed=seed,
            data=data[one.name],
            sha256=digests[one.name],
        )
        for seed in range(max(request.seeds, request.main_seeds))
        for model in models
        if seed < request.seeds or (model == study.main and seed < request.main_seeds)
        for one in sets
        if one.name in data
    ]


def _build_cell(
    study: Study, texts: StudyDataset, model: ModelSpec, request: StudyRequest
) -> StudyCell:
    """The cell of a model on a set, without seed and data."""
    if model[1] == OWN_ATTENTION:
        recipe, limits = _transformer_recipe(study, request)
    else:
        recipe, limits = _recurrent_recipe(study, texts, request)
    for split, most in request.limits.items():
        if texts.name in most:
            limits[split] = min(most[texts.name], limits.get(split, most[texts.name]))
    settings = {name: dict(study.settings.get(name, {})) for name in study.checks}
    if request.quick:
        for name, own in study.quick.settings.items():
            settings[name] = {**settings.get(name, {}), **own}
    return StudyCell(
        study.name,
        texts.name,
        "",
        *model,
        0,
        study.checks,
        texts.cleaning,
        recipe,
        limits,
        {name: own for name, own in settings.items() if own},
    )


def _recurrent_recipe(
    study: Study, texts: StudyDataset, request: StudyRequest
) -> tuple[dict[str, Any], dict[str, int]]:
    """Recipe and limits of a recurrent model of the papers."""
    recipe, limits = {**study.recipe, **texts.recipe}, dict(texts.limits)
    if request.quick:
        quick = {**asdict(study.quick), **texts.quick}
        recipe["epochs"] = min(recipe["epochs"], quick["epochs"])
        limits = {split: quick[split] for split in ("train", "dev", "test")}
    return recipe, limits


def _transformer_recipe(
    study: Study, request: StudyRequest
) -> tuple[dict[str, Any], dict[str, int]]:
    """Recipe and limits of a transformer, which costs a hundred times as much per text."""
    own = dict(study.transformers["quick"] if request.quick else study.transformers["whole"])
    limits = {split: own.pop(split) for split in ("train", "dev", "test")}
    return own, limits
