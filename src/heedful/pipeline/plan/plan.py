"""A plan is data: every setting of an audit, read from TOML, saved beside the results."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import tomli_w

from heedful.checks import checks, default_checks
from heedful.checks.base import Check, FitsData
from heedful.checks.interventions.base import require_epsilon
from heedful.checks.retraining_base import RetrainingCheck
from heedful.core.errors import ConfigError
from heedful.core.values import Example
from heedful.data.cleaning.presets import get_cleaning
from heedful.methods import Method, methods
from heedful.pipeline.plan.method_settings import (
    complete_methods,
    expand_all_methods,
    quick_method_settings,
)
from heedful.pipeline.plan.retraining_settings import RetrainingSettings

QUICK_LIMIT = 200
QUICK_TRAIN_LIMIT = 2000
TABLE_KEYS = ("fields", "settings", "subject", "methods", "retraining")
NON_BINDING_KEYS = (
    "max_batch_tokens",
)  # may change between two sittings of one run: results do not


@dataclass(frozen=True)
class Plan:
    """What to audit, on what, by which checks with which settings.

    `subject` says how a transformers model is loaded and which of its attentions is audited:
    {"layer": -1, "dtype": "float32"}, see `heedful.load`. `settings` holds a table per check, such
    as {"adversarial": {"steps": 200}}, `methods` one per method that checks are asked to use,
    such as {"lime": {"samples": 200}}. `epsilon` is the change of output, in TVD, that counts as
    none, for all checks and rules. `cleaning` names what a paper did to the texts. A plan is
    complete: settings not given are filled in from the parts' own defaults. Without `checks` the
    usual ones are run, which need no retraining and few passes; "all" are all.
    `retraining` says how models are made anew for those that do, see `Retraining`.
    """

    model: str
    data: str
    split: str = "test"
    fields: Mapping[str, str] = field(default_factory=dict)
    cleaning: str | None = None
    checks: tuple[str, ...] = ()
    limit: int | None = None
    min_words: int = 1
    seed: int = 0
    max_batch_tokens: int = 20_000
    instances_per_job: int = 512
    resamples: int = 2000
    level: float = 0.95
    epsilon: float = 0.05
    subject: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    retraining: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_types(self)
        chosen = _resolve_checks(self.checks)
        if extra := sorted(set(self.settings) - set(chosen)):
            raise ConfigError(f"Settings for {extra[0]!r}, which is not among the checks {chosen}.")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        given = _without_epsilon(expand_all_methods(self.settings, self.methods), self.epsilon)
        complete = {name: _complete(name, given.get(name, {})) for name in chosen}
        object.__setattr__(self, "checks", chosen)
        object.__setattr__(self, "settings", complete)
        asked = [one for own in complete.values() for one in own.get("methods", ())]
        object.__setattr__(self, "methods", complete_methods(asked, self.methods))
        object.__setattr__(self, "retraining", RetrainingSettings.of(self.retraining).to_dict())
        for name in ("min_words", "max_batch_tokens", "instances_per_job", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}.")
        if self.resamples < 100 or not 0 < self.level < 1:
            raise ConfigError("resamples must be at least 100 and level between 0 and 1.")

    def build_checks(self) -> dict[str, Check | RetrainingCheck]:
        """The checks, made with their settings."""
        parts = {name: methods.build(name, **own) for name, own in self.methods.items()}
        return {name: _build(name, self.settings_of(name), parts) for name in self.checks}

    def settings_of(self, name: str) -> dict[str, Any]:
        """All settings that a check is made with, those of the whole plan among them."""
        shared = {"epsilon": self.epsilon} if _uses_epsilon(name) else {}
        return {**self.settings[name], **shared}

    def to_toml(self) -> str:
        """The plan as TOML; settings that are not set are left out."""
        raw = {key: value for key, value in asdict(self).items() if value is not None}
        return tomli_w.dumps(raw)

    @classmethod
    def from_toml(cls, text: str) -> "Plan":
        """Read a complete plan; an unknown key is an error, not a silence."""
        raw = parse_plan(text)
        if missing := [key for key in ("model", "data") if key not in raw]:
            raise ConfigError(
                f"The plan names no {missing[0]}; a complete plan has model and data."
            )
        return cls(**raw)

    def quick(self) -> "Plan":
        """The same plan, cut to a first look: fewer texts, fewer steps."""
        limit = min(self.limit or QUICK_LIMIT, QUICK_LIMIT)
        settings, asked = (
            _cap_settings(self.settings, {name: checks.spec(name).quick for name in self.checks}),
            _cap_settings(self.methods, quick_method_settings()),
        )
        trained = RetrainingSettings.of(self.retraining)
        if any(checks.spec(name).retrains for name in self.checks):
            few = min(trained.limit or QUICK_TRAIN_LIMIT, QUICK_TRAIN_LIMIT)
            trained = replace(trained, limit=few)
        fewer = replace(self, limit=limit, settings=settings, methods=asked)
        return replace(fewer, retraining=trained.to_dict())

    def fitted(self, examples: Iterable[Example]) -> "Plan":
        """The same plan with the settings that are facts of the data."""
        settings = dict(self.settings)
        for name, own in self.settings.items():
            check = _build(name, own)
            if isinstance(check, FitsData):
                settings[name] = asdict(check.fitted(examples))
        return replace(self, settings=settings)

    def differences(self, other: "Plan") -> list[str]:
        """The settings in which two plans differ, those that cannot change results aside."""
        mine, theirs = (one._binding() for one in (self, other))
        return [key for key in mine if mine[key] != theirs[key]]

    def _binding(self) -> dict[str, Any]:
        bound = {key: one for key, one in asdict(self).items() if key not in NON_BINDING_KEYS}
        return bound | {"retraining": RetrainingSettings.of(self.retraining).binding()}


def _resolve_checks(asked: tuple[str, ...]) -> tuple[str, ...]:
    """Each check once; the usual ones where none is named, or all."""
    if "all" in asked:
        return tuple(checks)
    return tuple(dict.fromkeys(asked)) or default_checks()


def _cap_settings(
    tables: Mapping[str, Mapping[str, Any]], most: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, Any]]:
    """The tables with some of their numbers held down."""
    found = {name: dict(own) for name, own in tables.items()}
    for name in found.keys() & most.keys():
        found[name] |= {key: _cap(found[name][key], n) for key, n in most[name].items()}
    return found


def _cap(value: Any, most: int) -> Any:
    return value[:most] if isinstance(value, tuple) else min(value, most)


def parse_plan(text: str) -> dict[str, Any]:
    """The keys and values of a plan file, whole or in part."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Python's own, of depth and of digits, too
        raise ConfigError(f"The plan is not valid TOML: {error}.") from error
    known = {f.name: f for f in fields(Plan)}
    if extra := sorted(raw.keys() - known.keys()):
        raise ConfigError(f"Unknown plan keys: {extra}. Known: {', '.join(known)}.")
    for key in TABLE_KEYS:
        if not isinstance(raw.get(key, {}), dict):
            raise ConfigError(f"{key} must be a table, not {raw[key]!r}.")
    names = raw.get("checks", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"checks must be a list of names, not {names!r}.")
    if "checks" in raw:
        raw["checks"] = tuple(names)
    return _with_epsilon(raw)


def _with_epsilon(raw: dict[str, Any]) -> dict[str, Any]:
    """Older plans have epsilon with the adversarial check, and mean all checks by it."""
    older = raw.get("settings", {}).get("adversarial", {})
    if "epsilon" in raw or not isinstance(older, Mapping) or "epsilon" not in older:
        return raw
    return {**raw, "epsilon": older["epsilon"]}


def _without_epsilon(
    settings: Mapping[str, Mapping[str, Any]], epsilon: float
) -> dict[str, Mapping[str, Any]]:
    """Checks' settings without the epsilon of the plan; any other there is an error."""
    found = dict(settings)
    for name in filter(_uses_epsilon, settings):
        if not isinstance(own := found.get(name), Mapping) or "epsilon" not in own:
            continue
        if own["epsilon"] != epsilon:
            raise ConfigError(
                f"settings.{name}.epsilon is {own['epsilon']!r}, but epsilon is one for all checks "
                f"of a plan, here {epsilon!r}. Set epsilon at the top of the plan, not in {name}."
            )
        found[name] = {key: value for key, value in own.items() if key != "epsilon"}
    return found


def _require_types(plan: Plan) -> None:
    """Values from a file may be of any type; say so here, not in a traceback later."""
    for name in TABLE_KEYS:
        _require(name, getattr(plan, name), Mapping, "a table")
    _require("checks", plan.checks, (list, tuple), "a list of names")
    for one in plan.checks:
        _require("each of checks", one, str, "a name")
    for name in ("model", "data", "split"):
        _require(name, getattr(plan, name), str, "a text")
    _require("seed", plan.seed, int, "a whole number")
    for name in ("min_words", "max_batch_tokens", "instances_per_job", "resamples"):
        _require(name, getattr(plan, name), int, "a whole number of at least 1")
    if plan.cleaning is not None:
        _require("cleaning", plan.cleaning, str, "a name")
        get_cleaning(plan.cleaning)
    if plan.limit is not None:
        _require("limit", plan.limit, int, "a whole number of at least 1")
    _require("level", plan.level, (int, float), "a number")
    _require("epsilon", plan.epsilon, (int, float), "a number")
    require_epsilon(plan.epsilon)
    for name, column in plan.fields.items():
        _require(f"fields.{name}", column, str, "a column's name")
    try:
        tomli_w.dumps({"subject": dict(plan.subject)})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"subject holds what a plan cannot keep: {error}.") from error


def _require(name: str, value: Any, kind: type | tuple[type, ...], words: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):  # True is an int to Python
        raise ConfigError(f"{name} must be {words}, not {value!r}.")


def _uses_epsilon(name: str) -> bool:
    """Whether a check has the plan's epsilon as a setting."""
    return name in checks and any(one.name == "epsilon" for one in fields(checks[name]))


def _complete(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    check: Any = _build(name, settings)
    complete = asdict(check)
    if _uses_epsilon(name):
        del complete["epsilon"]
    return complete


def _build(
    name: str, settings: Mapping[str, Any], parts: Mapping[str, Method] | None = None
) -> Check | RetrainingCheck:
    """The check, its methods those of `parts` where it has some."""
    if not isinstance(settings, Mapping):
        raise ConfigError(f"The settings of {name!r} must be a table, not {settings!r}.")
    given = {key: tuple(one) if isinstance(one, list) else one for key, one in settings.items()}
    usual = {one.name: one.default for one in fields(checks[name])}
    for key, value in given.items():
        if key in usual and not _has_default_type(value, usual[key]):
            wanted = f"like {usual[key]!r}" if usual[key] != () else "a list of names"
            raise ConfigError(f"{name}.{key} must be {wanted}, not {value!r}.")
        if key in usual:
            given[key] = _as_default_type(value, usual[key])
    if parts and "methods" in given:
        given["methods"] = tuple(parts.get(one, one) for one in given["methods"])
    built: Check | RetrainingCheck = checks.build(name, **given)
    return built


def _as_default_type(value: Any, usual: object) -> Any:
    """A whole number as a fraction where that is usual, so that 1 and 1.0 are one setting."""
    if isinstance(usual, float):
        return float(value)
    if isinstance(usual, tuple) and usual:
        return tuple(_as_default_type(one, usual[0]) for one in value)
    return value


def _has_default_type(value: object, usual: object) -> bool:
    """The same type, but a whole number may stand for a fraction; tuples are like part by part."""
    if isinstance(usual, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(usual, tuple):
        one = usual[0] if usual else ""
        return isinstance(value, tuple) and all(_has_default_type(each, one) for each in value)
    return type(value) is type(usual)
