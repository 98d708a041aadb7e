"""A published study as data: its sets, models, checks and claims, read from a TOML file.

A study says what to run; nothing of what came out of it in the paper stands here: published numbers
are in CSV files of their own, with where each was read.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from heedful.core.errors import ConfigError, UnknownName

STUDIES_FOLDER = Path(__file__).parent / "studies"
ModelSpec = tuple[str, str]  # encoder and attention
RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class SetupDifference:
    """One way in which our set-up is not the paper's."""

    what: str
    paper: str
    here: str


@dataclass(frozen=True)
class StudyDataset:
    """One data set of a study: where it may lie, how it is cleaned, and how models are trained.

    `recipe` stands over the study's own; `absent` says why few people have the data; `quick` what
    is other in a quick run. `classes` gives for each class as the paper numbers it the names that
    it may have in data. `limits` are texts of a split at most, where the paper took a sample.
    `part` names which of several sets in a folder it is, as its reader wants it; `reader_first`
    says that the reader is asked before our own form, whose files look alike.
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
    """What a paper says, in a form that can be held against numbers.

    `measures`: in one model one measure is higher than another. `models`: one measure is higher in
    one model than in another. `share`: of most texts a measure is above a line. `above`
    and `below`: its mean is. Where the published numbers themselves say otherwise the set is in
    `except_`; where they are silent, not in `only`.
    """

    name: str
    says: str
    kind: Literal["measures", "models", "share", "above", "below"]
    measure: str
    than: str = ""
    model: ModelSpec | None = None
    than_model: ModelSpec | None = None
    line: float = 0.0
    published: tuple[str, str] | None = None  # measures whose difference the paper's numbers give
    only: tuple[str, ...] = ()
    except_: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuickSettings:
    """A first look: fewer texts and epochs, and checks with less work."""

    train: int
    test: int
    epochs: int
    dev: int = 300
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """All of a published study that can be run.

    `published_as` is the model that its numbers are of, where that is not one of ours; they stand
    beside those of our main model.
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

    @classmethod
    def read(cls, name: str) -> "Study":
        """The study of this name."""
        if name not in (known := list_studies()):
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownName(f"No study is named {name!r}.{hint} Known: {', '.join(known)}.")
        raw = tomllib.loads((STUDIES_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        raw["quick"] = _build_record(QuickSettings, raw["quick"])
        for key, kind in (
            ("sets", StudyDataset),
            ("claims", StudyClaim),
            ("differs", SetupDifference),
        ):
            raw[key] = tuple(_build_record(kind, one) for one in raw.get(key, ()))
        return _build_record(cls, {"name": name, **raw})

    def chosen(
        self,
        *,
        sets: Sequence[str] = (),
        encoders: Sequence[str] = (),
        attentions: Sequence[str] = (),
    ) -> tuple[tuple[StudyDataset, ...], tuple[ModelSpec, ...]]:
        """The sets and models asked for, all of them where none are named."""
        known = {one.name: one for one in self.sets}
        picked = tuple(known[one] for one in select_known("set", sets, tuple(known)))
        models = tuple(
            (encoder, attention)
            for encoder in select_known("encoder", encoders, self.encoders)
            for attention in select_known("attention", attentions, self.attentions)
        )
        return picked, models


def list_studies() -> tuple[str, ...]:
    """The names of all studies.

    >>> "jain-wallace-2019" in studies()
    True
    """
    return tuple(sorted(one.stem for one in STUDIES_FOLDER.glob("*.toml")))


def select_known(kind: str, asked: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Those asked for, in the study's order, all where none are; others are an error."""
    for one in asked:
        if one not in known:
            raise UnknownName(f"This study has no {kind} {one!r}. It has: {', '.join(known)}.")
    return tuple(one for one in known if one in asked) if asked else known


def _build_record(kind: type[RecordT], raw: Mapping[str, Any]) -> RecordT:
    """A dataclass from a table; lists are tuples, and a key nobody knows is an error."""
    given = {("except_" if key == "except" else key): _freeze(value) for key, value in raw.items()}
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if extra := sorted(given.keys() - known):
        raise ConfigError(f"A {kind.__name__} of a study has no {extra[0]!r}; it has {known}.")
    return kind(**given)


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _freeze(one) for key, one in value.items()}
    return tuple(_freeze(one) for one in value) if isinstance(value, list | tuple) else value
