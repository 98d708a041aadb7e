"""The cells of a study: one model on one data set under one seed, each a job of its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.data.read import digest_data
from heedful.studies.study import ModelSpec, Study, StudyDataset

OWN_ATTENTION = "own"  # stands in the place of an attention's name where a model brings its own
CELL_FILE = "cell.json"


@dataclass(frozen=True)
class StudyCell:
    """All that decides what comes out of one model on one set; two that are equal are one.

    `recipe` are the choices of its training, `limits` how many texts of which split are used,
    `settings` those of the checks. `sha256` names the rows of the data; where they lie does not
    matter.
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
        """For people: set, model and seed."""
        return f"{self.texts} {describe_model(self.model)} seed {self.seed}"

    def place(self, out: Path) -> Path:
        """Its folder; another one wherever a choice is another."""
        choices = {name: one for name, one in asdict(self).items() if name != "data"}
        content = json.dumps(choices, sort_keys=True)
        key = blake2b(content.encode(), digest_size=5).hexdigest()
        what = describe_model(self.model).replace(" ", "-")
        return out / "cells" / f"{self.texts}-{what}-{self.seed}-{key}"

    def done(self, out: Path) -> bool:
        """Whether all of it is there."""
        return (self.place(out) / CELL_FILE).exists()

    @classmethod
    def from_json(cls, text: str) -> "StudyCell":
        """The cell that was written."""
        raw = json.loads(text)
        return cls(**{**raw, "checks": tuple(raw["checks"])})


@dataclass(frozen=True)
class StudyRequest:
    """What of a study is wanted: models, seeds, quick or whole.

    The study's main model, which its main tables are of, may be made under more seeds.
    """

    models: tuple[ModelSpec, ...]
    seeds: int
    quick: bool = False
    transformers: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by split and set
    main_seeds: int = 0


def describe_model(model: ModelSpec) -> str:
    """Encoder and attention in words; of a transformer the name of its folder.

    >>> model_name(("bilstm", "additive")), model_name(("models/minilm", "own"))
    ('bilstm additive', 'minilm')
    """
    encoder, attention = model
    if attention == OWN_ATTENTION:
        whole = Path(encoder)
        return f"{whole.parent.name}" if whole.name == "model" else whole.name
    return f"{encoder} {attention}"


def build_cells(
    study: Study, sets: Sequence[StudyDataset], data: Mapping[str, str], asked: StudyRequest
) -> list[StudyCell]:
    """Every cell, first seeds and main model first, so that a page cut short says most."""
    models = sorted(asked.models, key=lambda one: one != study.main)
    models += [(one, OWN_ATTENTION) for one in dict.fromkeys(asked.transformers)]
    known = {name: digest_data(one) for name, one in data.items()}
    return [
        replace(
            _build_cell(study, one, model, asked),
            seed=seed,
            data=data[one.name],
            sha256=known[one.name],
        )
        for seed in range(max(asked.seeds, asked.main_seeds))
        for model in models
        if seed < asked.seeds or (model == study.main and seed < asked.main_seeds)
        for one in sets
        if one.name in data
    ]


def _build_cell(
    study: Study, texts: StudyDataset, model: ModelSpec, asked: StudyRequest
) -> StudyCell:
    """A model on a set, whatever its seed, wherever its data."""
    recipe, limits = (_transformer_recipe if model[1] == OWN_ATTENTION else _recurrent_recipe)(
        study, texts, asked
    )
    for split, most in asked.limits.items():
        if texts.name in most:
            limits[split] = min(most[texts.name], limits.get(split, most[texts.name]))
    settings = {name: dict(study.settings.get(name, {})) for name in study.checks}
    if asked.quick:
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
    study: Study, texts: StudyDataset, asked: StudyRequest
) -> tuple[dict[str, Any], dict[str, int]]:
    """Recipe and limits of a model of the papers."""
    recipe, limits = {**study.recipe, **texts.recipe}, dict(texts.limits)
    if asked.quick:
        quick = {**asdict(study.quick), **texts.quick}
        recipe["epochs"] = min(recipe["epochs"], quick["epochs"])
        limits = {split: quick[split] for split in ("train", "dev", "test")}
    return recipe, limits


def _transformer_recipe(
    study: Study, _: StudyDataset, asked: StudyRequest
) -> tuple[dict[str, Any], dict[str, int]]:
    """Recipe and limits of a transformer, which costs a hundred times as much a text."""
    own = dict(study.transformers["quick"] if asked.quick else study.transformers["whole"])
    limits = {"train": own.pop("train"), "dev": own.pop("dev"), "test": own.pop("test")}
    return own, limits
