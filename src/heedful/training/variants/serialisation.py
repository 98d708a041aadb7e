"""Lessons as plain data, for workers and for the names of what they make."""

from dataclasses import asdict, fields
from typing import Any

from heedful.training.variants.hidden_words import Hidden
from heedful.training.variants.masked_copy import Holes
from heedful.training.variants.variants import Adversary, Lesson, Pace, lessons

PARTS = {"adversary": Adversary, "hidden": Hidden, "holes": Holes, "pace": Pace}


def to_dict(lesson: Lesson) -> dict[str, Any]:
    """A lesson as plain data."""
    part: Any = lesson
    return {"lesson": lessons.name_of(lesson), **asdict(part)}


def from_dict(raw: dict[str, Any]) -> Lesson:
    """A lesson from plain data."""
    kind: Any = lessons[raw["lesson"]]
    given = {one.name: raw[one.name] for one in fields(kind)}
    for name, part in PARTS.items():
        if isinstance(given.get(name), dict):
            given[name] = part(**_nested(given[name]))
    made: Lesson = kind(**given)
    return made


def _nested(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: Pace(**one) if key == "pace" else _tupled(one) for key, one in raw.items()}


def _tupled(value: Any) -> Any:
    """JSON knows lists only."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
