"""Lessons as plain data, for workers and for the names of what they make."""

from dataclasses import asdict, fields
from typing import Any

from heedful.training.variants.hidden_words import HiddenWords
from heedful.training.variants.masked_copy import RandomMasks
from heedful.training.variants.variants import AdversaryVariant, EpochLimits, Variant, variants

NESTED_TYPES = {
    "adversary": AdversaryVariant,
    "hidden": HiddenWords,
    "holes": RandomMasks,
    "pace": EpochLimits,
}


def variant_to_dict(variant: Variant) -> dict[str, Any]:
    """A lesson as plain data."""
    part: Any = variant
    return {"lesson": variants.name_of(variant), **asdict(part)}


def variant_from_dict(raw: dict[str, Any]) -> Variant:
    """A lesson from plain data."""
    kind: Any = variants[raw["lesson"]]
    given = {one.name: raw[one.name] for one in fields(kind)}
    for name, part in NESTED_TYPES.items():
        if isinstance(given.get(name), dict):
            given[name] = part(**_read_nested(given[name]))
    made: Variant = kind(**given)
    return made


def _read_nested(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        key: EpochLimits(**one) if key == "pace" else _lists_to_tuples(one)
        for key, one in raw.items()
    }


def _lists_to_tuples(value: Any) -> Any:
    """JSON knows lists only."""
    return tuple(map(_lists_to_tuples, value)) if isinstance(value, list) else value
