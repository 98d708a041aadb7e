"""Retrained subjects by content: a folder each, made once, shared by all that ask for the same."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from heedful.core.atomic_files import write_atomic
from heedful.core.errors import RunError
from heedful.core.timing import Progress, silent
from heedful.models.protocols import Subject
from heedful.models.recurrent.model_folder import load, save
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.loop.checkpoint import drop
from heedful.training.variants.context import Desk, Room, Taught, Texts, one_thread
from heedful.training.variants.serialisation import to_dict
from heedful.training.variants.variants import Lesson

DONE = "lesson.json"  # written last: its folder holds a finished model


@dataclass(frozen=True, eq=False)
class School:
    """The folders of retrained subjects; `origin` is what all of them depend on.

    `tuning` is the recipe by which a transformer came about.
    """

    folder: Path
    base: Subject
    train: Texts
    dev: Texts
    origin: Mapping[str, Any]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    loaded: dict[str, Taught] = field(default_factory=dict)

    def key(self, lesson: Lesson) -> str:
        """Names the lesson and everything else its outcome depends on."""
        made_by = {name: version(name) for name in ("heedful", "torch")}
        content = json.dumps([to_dict(lesson), dict(self.origin), made_by], sort_keys=True)
        return blake2b(content.encode(), digest_size=10).hexdigest()

    def place(self, lesson: Lesson) -> Path:
        """The lesson's folder."""
        return self.folder / self.key(lesson)

    def done(self, lesson: Lesson) -> bool:
        """Whether the subject is there."""
        return (self.place(lesson) / DONE).exists()

    def teach(self, lesson: Lesson, progress: Progress = silent) -> None:
        """Make the subject in this process, or go on where its making was cut off."""
        key, place = self.key(lesson), self.place(lesson)
        room = Room(
            self.base, self.train, self.dev, lambda one: self.taught(one).subject, self.tuning
        )
        with one_thread():
            taught = lesson.teach(room, Desk.at(place, key, progress))
        _save(taught, place)
        told = {"key": key, "name": str(lesson), "lesson": to_dict(lesson), **taught.told}
        write_atomic(place / DONE, json.dumps(told, indent=1))
        drop(place)

    def taught(self, lesson: Lesson) -> Taught:
        """The subject, read from its folder once."""
        key = self.key(lesson)
        if key not in self.loaded:
            self.loaded[key] = _load(self.place(lesson), self.base)
        return self.loaded[key]


def in_order(asked: Sequence[Lesson]) -> list[Lesson]:
    """Each lesson once, after those it needs."""
    found: dict[Lesson, None] = {}

    def add(lesson: Lesson) -> None:
        for one in lesson.needs:
            add(one)
        found[lesson] = None

    for one in asked:
        add(one)
    return list(found)


def _save(taught: Taught, place: Path) -> None:
    if isinstance(taught.subject, RecurrentSubject):
        save(taught.subject, place)
        return
    from heedful.training.variants.transformer_variants import save_tuned

    save_tuned(taught.subject, place)


def _load(place: Path, base: Subject) -> Taught:
    try:
        told = json.loads((place / DONE).read_text(encoding="utf-8"))
        if not isinstance(told, dict):
            raise ValueError("it must hold a JSON object")
    except (OSError, ValueError) as error:
        raise RunError(f"{place / DONE} cannot be read: {error}. Remove {place}.") from error
    if (place / "heedful.json").exists():
        return Taught(load(place), told)
    from heedful.training.variants.transformer_variants import load_tuned

    return Taught(load_tuned(place, told["lesson"], base), told)
