"""A published study as data: its sets, models, checks and claims, read from a TOML file.

The file says what to run. Published numbers are in separate CSV files, each with its source.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from heedful.core.errors import ConfigError, UnknownName

STUDIES_FOLDER = Path(__file__).parent / "studies"
ModelSpec = tuple[str, str]  # encoder and attention
RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class SetupDifference:
    """One difference between our set-up and the paper's."""

    what: str
    paper: str
    here: str


@dataclass(frozen=True)
class StudyDataset:
    """One data set of a study: where to find it, how it is cleaned, and how models are trained.

    `folders` are its usual names under the data root; `reader` is the reader for its distributed
    form, `part` selects one of several sets in a folder. `reader_first` tries the reader before
    heedful's own format, where the files of both look alike. `classes` maps each class number of
    the paper to the names that the class may have in the data. `limits` is the largest number of
    texts per split, where the paper took a sample. `recipe` overrides the study's recipe, `quick`
    the settings of a quick run. `absent` says why the data is hard to get.
    """

    name: str
    title: str
    folders: tuple[str, ...]
    reader: str = ""
    part: str = ""
    reader_first: bool = False
    cleaning: str = ""
    query: bool = False
    published_texts: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    absent: str = ""


@dataclass(frozen=True)
class StudyClaim:
    """A claim of a paper, in a form that can be tested on numbers.

    `kind` is one of: `measures`, one measure is higher than another in one model; `models`, one
    measure is higher in one model than in another; `share`, a measure is above `line` for most
    texts; `above` and `below`, its mean is above or below `line`. `except_` lists the sets on which
    the published numbers contradict the claim; `only` the sets it is about, all by default.
    """

    name: str
    says: str
    kind: Literal["measures", "models", "share", "above", "below"]
    measure: str
    than: str = ""
    model: ModelSpec | None = None
    than_model: ModelSpec | None = None
    line: float = 0.0
    published: tuple[str, str] | None = None  # measures whose published difference corresponds
    only: tuple[str, ...] = ()
    except_: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuickSettings:
    """Settings of a quick run: fewer texts and epochs, cheaper checks."""

    train: int
    test: int
    epochs: int
    dev: int = 300
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A published study: everything needed to run it.

    `published_as` is the model of the published numbers, if it is not among ours; they are then
    compared with our main model.
    """

    name: str
    title: str
    reference: str
    question: str
    encoders: tuple[str, ...]
    attentions: tuple[str, ...]
    checks: tuple[str, ...]
    main: ModelSpec
    seeds: int
    quick: QuickSettings
    sets: tuple[StudyDataset, ...]
    claims: tuple[StudyClaim, ...] = ()
    differs: tuple[SetupDifference, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    transformers: Mapping[str, Any] = field(default_factory=dict)
    published_as: ModelSpec | None = None

    @property
    def renamed(self) -> dict[ModelSpec, ModelSpec]:
        """The model of the published numbers that is not among ours, and the one in its place."""
        return {} if self.published_as is None else {self.published_as: self.main}

    @classmethod
    def read(cls, name: str) -> "Study":
        """Read the study of this name."""
        if name not in (known := list_studies()):
            raise UnknownName.among("study", name, known)
        raw = tomllib.loads((STUDIES_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        raw["quick"] = _build_record(QuickSettings, raw["quick"])
        parts = {"sets": StudyDataset, "claims": StudyClaim, "differs": SetupDifference}
        for key, kind in parts.items():
            raw[key] = tuple(_build_record(kind, one) for one in raw.get(key, ()))
        return _build_record(cls, {"name": name, **raw})

    def select(
        self,
        *,
        sets: Sequence[str] = (),
        encoders: Sequence[str] = (),
        attentions: Sequence[str] = (),
    ) -> tuple[tuple[StudyDataset, ...], tuple[ModelSpec, ...]]:
        """The named sets and models; all of them by default."""
        known = {one.name: one for one in self.sets}
        selected = tuple(known[one] for one in select_known("set", sets, tuple(known)))
        models = tuple(
            (encoder, attention)
            for encoder in select_known("encoder", encoders, self.encoders)
            for attention in select_known("attention", attentions, self.attentions)
        )
        return selected, models


def list_studies() -> tuple[str, ...]:
    """The names of all studies.

    >>> "jain-wallace-2019" in list_studies()
    True
    """
    return tuple(sorted(one.stem for one in STUDIES_FOLDER.glob("*.toml")))


def select_known(kind: str, names: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """The names in the study's order, all known ones if empty; an unknown name is an error."""
    for one in names:
        if one not in known:
            raise UnknownName(f"This study has no {kind} {one!r}. It has: {', '.join(known)}.")
    return tuple(one for one in known if one in names) if names else known


def _build_record(kind: type[RecordT], raw: Mapping[str, Any]) -> RecordT:
    """Build a dataclass from a TOML table; lists become tuples, an unknown key is an error."""
    given = {("except_" if key == "except" else key): _freeze(value) for key, value in raw.items()}
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if extra := sorted(given.keys() - known):
        names = ", ".join(sorted(known))
        raise ConfigError(f"A {kind.__name__} of a study has no {extra[0]!r}; it has {names}.")
    return kind(**given)


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _freeze(one) for key, one in value.items()}
    return tuple(_freeze(one) for one in value) if isinstance(value, list | tuple) else value
