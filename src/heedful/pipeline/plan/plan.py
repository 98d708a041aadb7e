"""A plan is data: every setting of an audit, read from TOML, saved beside the results."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from annotated_types import Ge, Le

from heedful.checks import checks, default_checks
from heedful.checks.base import Check, FitsData
from heedful.checks.retraining_base import RetrainingCheck
from heedful.core.errors import ConfigError, shorten_name, show_message, show_value
from heedful.core.settings import (
    AnyRepeats,
    Ceiling,
    PositiveFraction,
    PositiveInt,
    Seed,
    check_setting,
    check_settings,
    setting_types,
)
from heedful.core.values import Example
from heedful.data.cleaning.presets import get_cleaning
from heedful.methods import Method, methods
from heedful.models.protocols import Subject
from heedful.pipeline.plan.method_settings import (
    complete_methods,
    expand_all_methods,
    quick_method_settings,
)

QUICK_LIMIT = 200
QUICK_TRAIN_LIMIT = 2000
NON_BINDING_KEYS = ("max_batch_tokens",)  # may change when a run is continued: results do not
NON_BINDING_RETRAINING = ("workers", "folder")
MOST_WORKERS = 4096  # processes at once: more than any machine has cores
LONGEST_PLAN = 2**17  # signs; with every check and every method a plan has some 10 000
MOST_DOTS = 1000  # in a line: reading a dotted key takes the square of the number of its parts
DEEPEST_TABLE = (
    16  # tables in tables; plans have two, a loader's settings in `subject` may have more
)
Table = Mapping[str, Any]


@dataclass(frozen=True)
class RetrainingSettings:
    """How models are retrained.

    On the first `limit` training texts, or all; by `workers` processes at once, 0 for one on each
    core; into `folder`, where runs can share them, or into the run's own. Transformers are
    fine-tuned again only if `transformers` is true, because it takes long; `encoder` is the model
    to start from, where the audited model does not record it.
    """

    limit: PositiveInt | None = None
    workers: Annotated[int, Ge(0), Le(MOST_WORKERS), Ceiling()] = 0
    folder: str | None = None
    transformers: bool = False
    encoder: str | None = None

    @classmethod
    def of(cls, raw: Table) -> "RetrainingSettings":
        """Read the table of a plan."""
        return cls(**check_settings(cls, raw, prefix="retraining."))

    def to_dict(self) -> dict[str, Any]:
        """The table of a plan; settings that are not set are left out."""
        return {name: one for name, one in asdict(self).items() if one is not None}

    def binding(self) -> dict[str, Any]:
        """The settings that results depend on."""
        given = self.to_dict()
        return {name: one for name, one in given.items() if name not in NON_BINDING_RETRAINING}


@dataclass(frozen=True)
class Plan:
    """What to audit, on what, by which checks with which settings.

    `subject` says how a transformers model is loaded and which of its attentions is audited:
    {"layer": -1, "dtype": "float32"}, see `heedful.load`. `settings` holds a table per check, such
    as {"adversarial": {"steps": 200}}, `methods` one per method that checks are asked to use,
    such as {"lime": {"samples": 200}}. `epsilon` is the change of output, in TVD, that counts as
    none, for all checks and rules. `cleaning` names what a paper did to the texts, `cluster` a
    column of ids of texts that resamples draw together. A plan is complete: settings not given are
    filled in from the defaults of the parts. Without `checks` those run that need no retraining and
    few passes; "all" are all. `retraining` is the table of `RetrainingSettings`.
    """

    model: str
    data: str
    split: str = "test"
    fields: Table = field(default_factory=dict)
    cleaning: str | None = None
    cluster: str | None = None
    checks: tuple[str, ...] = ()
    limit: PositiveInt | None = None
    min_words: PositiveInt = 1
    seed: Seed = 0
    max_batch_tokens: PositiveInt = 20_000
    instances_per_job: PositiveInt = 512
    resamples: AnyRepeats = 2000
    level: float = 0.95
    epsilon: float = 0.05
    subject: Table = field(default_factory=dict)
    settings: Table = field(default_factory=dict)
    methods: Table = field(default_factory=dict)
    retraining: Table = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        _complete_plan(complete := _check_plan(own))
        for name, value in complete.items():
            object.__setattr__(self, name, value)

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
        """Read a complete plan; an unknown key is an error."""
        raw = parse_plan(text)
        if missing := [key for key in ("model", "data") if key not in raw]:
            raise ConfigError(
                f"The plan names no {missing[0]}; a complete plan has model and data."
            )
        return cls(**raw)

    def quick(self) -> "Plan":
        """The same plan, cut to a first look: fewer texts, fewer steps."""
        limit = min(self.limit or QUICK_LIMIT, QUICK_LIMIT)
        most = {name: checks.spec(name).quick for name in self.checks}
        settings = _cap_settings(self.settings, most)
        asked = _cap_settings(self.methods, quick_method_settings())
        retraining = dict(self.retraining)
        if any(checks.spec(name).retrains for name in self.checks):
            few = retraining.get("limit", QUICK_TRAIN_LIMIT)
            retraining["limit"] = min(few, QUICK_TRAIN_LIMIT)
        return replace(self, limit=limit, settings=settings, methods=asked, retraining=retraining)

    def fitted(self, examples: Iterable[Example], subject: Subject) -> "Plan":
        """The same plan with the settings that are facts of data and model."""
        settings = dict(self.settings)
        for name, own in self.settings.items():
            check = _build(name, own)
            if isinstance(check, FitsData):
                settings[name] = asdict(check.fitted(examples, subject))
        return replace(self, settings=settings)

    def differences(self, other: "Plan") -> list[str]:
        """The settings in which two plans differ, those that cannot change results aside."""
        mine, theirs = (one._binding() for one in (self, other))
        return [key for key in mine if mine[key] != theirs[key]]

    def _binding(self) -> dict[str, Any]:
        bound = {key: one for key, one in asdict(self).items() if key not in NON_BINDING_KEYS}
        return bound | {"retraining": RetrainingSettings.of(self.retraining).binding()}


def read_plan_file(path: Path) -> str:
    """The text of a plan file; ConfigError where it cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(
                f"Cannot read the plan {path}: it is not a regular file. Give a file of TOML."
            )
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST_PLAN + 1)
    except (OSError, ValueError) as error:  # text that is not UTF-8 is a ValueError
        raise ConfigError(f"Cannot read the plan {path}: {error}.") from error


def parse_plan(text: str) -> dict[str, Any]:
    """The keys and values of a plan file, whole or in part."""
    _require_short(text)
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # deep nesting and long numbers raise them too
        raise ConfigError(f"The plan is not valid TOML: {show_message(error)}.") from error
    known = setting_types(Plan)
    if extra := sorted(raw.keys() - known.keys()):
        raise ConfigError(f"Unknown plan keys: {show_value(extra)}. Known: {', '.join(known)}.")
    _require_shallow(raw)
    raw = check_settings(Plan, raw)
    # older plans have epsilon with the adversarial check, and mean all checks by it
    older = raw.get("settings", {}).get("adversarial", {})
    if "epsilon" not in raw and isinstance(older, Mapping) and "epsilon" in older:
        raw["epsilon"] = older["epsilon"]
    return raw


def _require_short(text: str) -> None:
    """Raise ConfigError for a text that would take long to parse, and is no plan."""
    if len(text) > LONGEST_PLAN:
        raise ConfigError(
            f"The plan has more than {LONGEST_PLAN} signs; no plan needs as many. Give a file of "
            "settings as an audit writes it, plan.toml."
        )
    for number, line in enumerate(text.splitlines(), start=1):
        if (dots := line.count(".")) > MOST_DOTS:
            raise ConfigError(
                f"Line {number} of the plan has {dots} dots; a line may have {MOST_DOTS}. Keys "
                "have two or three parts, such as settings.permutation.draws."
            )


def _require_shallow(raw: Table) -> None:
    """Raise ConfigError for tables and lists that lie deeper in each other than in any plan."""
    level: list[Any] = [raw]
    for _ in range(DEEPEST_TABLE):
        level = [
            inner
            for one in level
            if isinstance(one, Mapping | list | tuple)
            for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
    if level:
        raise ConfigError(
            f"The plan has tables or lists in each other, more than {DEEPEST_TABLE} deep; a plan "
            "has tables such as [settings.permutation]. Write it flatter."
        )


def _check_plan(given: Table) -> dict[str, Any]:
    """The values of a plan, each of its type and in its range."""
    plan = check_settings(Plan, given)
    check_setting("epsilon", plan["epsilon"], PositiveFraction)  # a change of output in TVD
    if plan["resamples"] < 100 or not 0 < plan["level"] < 1:
        raise ConfigError("resamples must be at least 100 and level between 0 and 1.")
    for name, column in plan["fields"].items():
        check_setting(f"fields.{shorten_name(str(name))}", column, str)
    if plan["cleaning"] is not None:
        get_cleaning(plan["cleaning"])
    try:
        tomli_w.dumps({"subject": plan["subject"]})
    except (TypeError, ValueError, RecursionError) as error:
        shown = show_message(error)
        raise ConfigError(f"subject holds what a plan cannot keep: {shown}.") from error
    return plan


def _complete_plan(plan: dict[str, Any]) -> None:
    """Fill in the settings of checks, methods and retraining that are not given."""
    asked = plan["checks"]
    chosen = tuple(checks) if "all" in asked else tuple(dict.fromkeys(asked)) or default_checks()
    if extra := sorted(set(plan["settings"]) - set(chosen)):
        shown = show_value(extra[0])
        raise ConfigError(f"Settings for {shown}, which is not among the checks {chosen}.")
    expanded = expand_all_methods(plan["settings"], plan["methods"])
    given = _without_epsilon(expanded, plan["epsilon"])
    plan["checks"] = chosen
    plan["settings"] = {name: _complete_settings(name, given.get(name, {})) for name in chosen}
    used = [one for own in plan["settings"].values() for one in own.get("methods", ())]
    plan["methods"] = complete_methods(used, plan["methods"])
    plan["retraining"] = RetrainingSettings.of(plan["retraining"]).to_dict()


def _complete_settings(name: str, given: Table) -> dict[str, Any]:
    """All settings of a check; epsilon belongs to the whole plan."""
    complete: Any = asdict(_build(name, given))  # type: ignore[call-overload]
    return {key: value for key, value in complete.items() if key != "epsilon"}


def _without_epsilon(settings: Table, epsilon: float) -> dict[str, Any]:
    """Checks' settings without the epsilon of the plan; any other there is an error."""
    found = dict(settings)
    for name in filter(_uses_epsilon, settings):
        if not isinstance(own := found.get(name), Mapping) or "epsilon" not in own:
            continue
        if own["epsilon"] != epsilon:
            raise ConfigError(
                f"settings.{name}.epsilon is {show_value(own['epsilon'])}, but epsilon is one for "
                f"all checks of a plan, here {epsilon!r}. Set epsilon at the top of the plan, "
                f"not in {name}."
            )
        found[name] = {key: value for key, value in own.items() if key != "epsilon"}
    return found


def _uses_epsilon(name: str) -> bool:
    """Whether a check has the plan's epsilon as a setting."""
    return name in checks and "epsilon" in setting_types(checks[name])


def _build(
    name: str, settings: Table, parts: Mapping[str, Method] | None = None
) -> Check | RetrainingCheck:
    """The check, with the methods of `parts` where it names them."""
    if not isinstance(settings, Mapping):
        raise ConfigError(f"The settings of {name!r} must be a table, not {show_value(settings)}.")
    types = setting_types(checks[name])
    given = {
        key: check_setting(f"{name}.{shorten_name(str(key))}", value, types.get(key, Any))
        for key, value in settings.items()
    }
    if parts and "methods" in given:
        given["methods"] = tuple(parts.get(one, one) for one in given["methods"])
    built: Check | RetrainingCheck = checks.build(name, **given)
    return built


def _cap_settings(
    tables: Mapping[str, Table], most: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, Any]]:
    """The tables with some numbers at most as large, and some lists at most as long, as given."""
    found = {name: dict(own) for name, own in tables.items()}
    for name in found.keys() & most.keys():
        for key, limit in most[name].items():
            value = found[name][key]
            found[name][key] = value[:limit] if isinstance(value, tuple) else min(value, limit)
    return found
