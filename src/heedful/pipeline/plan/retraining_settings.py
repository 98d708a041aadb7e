"""What a plan says about models that are made anew."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from heedful.core.errors import ConfigError

SETTING_TYPES: Mapping[str, tuple[type, str]] = {
    "limit": (int, "a whole number of at least 1"),
    "workers": (int, "a whole number of at least 0"),
    "folder": (str, "a folder's name"),
    "transformers": (bool, "true or false"),
    "encoder": (str, "a transformers folder or a hub id"),
}
NON_BINDING_SETTINGS = (
    "workers",
    "folder",
)  # may change between two sittings of one run: results do not


@dataclass(frozen=True)
class RetrainingSettings:
    """How models are made anew.

    On the first `limit` training texts, or all; by `workers` processes at once, 0 for one on each
    core; into `folder`, where runs can share them, or into the run's own. Transformers are tuned
    anew only if `transformers` is true: it takes long; `encoder` is what they are tuned from, where
    they do not say it themselves.
    """

    limit: int | None = None
    workers: int = 0
    folder: str | None = None
    transformers: bool = False
    encoder: str | None = None

    def __post_init__(self) -> None:
        if (self.limit is not None and self.limit < 1) or self.workers < 0:
            raise ConfigError("retraining.limit starts at 1, retraining.workers at 0.")

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "RetrainingSettings":
        """From a plan's table; an unknown key is an error, not a silence."""
        known = [one.name for one in fields(cls)]
        if extra := sorted(set(raw) - set(known)):
            raise ConfigError(f"retraining has no setting {extra[0]!r}. Known: {', '.join(known)}.")
        for name, value in raw.items():
            kind, words = SETTING_TYPES[name]
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise ConfigError(f"retraining.{name} must be {words}, not {value!r}.")
        return cls(**raw)

    def to_dict(self) -> dict[str, Any]:
        """As a plan's table; what is not set is left out."""
        return {name: one for name, one in asdict(self).items() if one is not None}

    def binding(self) -> dict[str, Any]:
        """What results depend on."""
        return {
            name: one for name, one in self.to_dict().items() if name not in NON_BINDING_SETTINGS
        }
