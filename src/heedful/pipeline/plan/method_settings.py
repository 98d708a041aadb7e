"""The methods that a plan's checks ask for: their settings, what they are, what they cost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from heedful.checks.requested_methods import (
    ALL,
    ALWAYS_COMPUTED,
    method_kind,
    method_name,
    registry_order,
)
from heedful.core.errors import ConfigError
from heedful.methods import methods
from heedful.methods.prerequisites import missing_prerequisite, ready_methods
from heedful.pipeline.explain.request import resolve_methods

SettingsTables = Mapping[str, Mapping[str, Any]]
QUICK_SAMPLES = 200  # samples, for a first look
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"


def expand_all_methods(settings: SettingsTables, given: SettingsTables) -> dict[str, Any]:
    """The checks' settings, "all" with the methods that serve by what is `given` of them."""
    made = {name for name, table in given.items() if name in methods and isinstance(table, Mapping)}
    made -= set(ready_methods())
    made = {
        name for name in made if missing_prerequisite(methods.build(name, **given[name])) is None
    }
    found: dict[str, Any] = dict(settings)
    for check, own in settings.items():
        asked = own.get("methods") if isinstance(own, Mapping) else None
        if isinstance(asked, list | tuple) and ALL in asked:
            found[check] = {**own, "methods": (*asked, *sorted(made))}
    return found


def complete_methods(asked: Iterable[str], given: SettingsTables) -> dict[str, dict[str, Any]]:
    """A table of all settings for each method asked for; those not given are the method's own."""
    names = tuple(map(method_name, registry_order(asked)))
    for name, table in given.items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"The settings of {name!r} must be a table, not {table!r}.")
    if not names:
        if given:
            raise ConfigError(
                f"Settings for the method {next(iter(given))!r}, but no check asks for methods; "
                "give --methods."
            )
        return {}
    chosen = resolve_methods(names, given)
    for name in ALWAYS_COMPUTED:
        if _complete(name, chosen.get(name, {})) != _complete(name, {}):
            raise ConfigError(
                f"[methods.{name}] cannot be set: the check has {name} as it was published. "
                "Which attention is audited is set by --subject."
            )
    return {name: _complete(name, chosen[name]) for name in names}


def _complete(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    part = methods.build(name, **given)
    whole = asdict(part) if is_dataclass(part) and not isinstance(part, type) else dict(given)
    return {key: value for key, value in whole.items() if value is not None}


def describe_methods(tables: SettingsTables) -> dict[str, dict[str, str]]:
    """What each of the methods means, for whoever has the records alone; those of the check too."""
    found: dict[str, dict[str, str]] = {}
    for name in methods if tables else ():
        if name in tables or name in ALWAYS_COMPUTED:
            limit = _text_limit(methods.build(name, **tables.get(name, {})))
            found[name] = {"kind": method_kind(name), **({"at_most": limit} if limit else {})}
    return found


def _text_limit(part: object) -> str:
    """How long a text the method takes, in words; nothing where any will do."""
    if most := getattr(part, "most_players", None):
        return f"{most} {getattr(part, 'players', 'tokens')}"
    most = getattr(part, "most_tokens", None)
    return f"{most} tokens" if most else ""


def describe_method_cost(tables: SettingsTables) -> str:
    """One line on the methods that take more passes than a text has words; else nothing."""
    costs = [*_describe_samples(tables)]
    many = any(own.get("samples", 0) > QUICK_SAMPLES for own in tables.values())
    if "shapley" in tables:
        costs.append(f"shapley 2^T where a text has T ≤ {_text_limit(methods.build('shapley'))}")
    if not costs:
        return ""
    fewer = f" In a plan, [methods.NAME] samples = {QUICK_SAMPLES} takes fewer." if many else ""
    return f"Slow methods, in passes for each text: {'; '.join(costs)}.{fewer}"


def _describe_samples(tables: SettingsTables) -> Iterator[str]:
    """Methods that hide many words at once; those with equal settings share their passes."""
    drawn: dict[tuple[Any, Any], list[str]] = {}
    for name in ("lime", "kernel_shap"):
        if name in tables:
            own = tables[name]
            drawn.setdefault((own["samples"], own["players"]), []).append(name)
    for (samples, _), names in drawn.items():
        together = " together" if len(names) > 1 else ""
        yield f"{' and '.join(names)} {samples:,}{together}".replace(",", NARROW_SPACE)
