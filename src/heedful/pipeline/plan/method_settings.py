"""The methods that the checks of a plan use: their settings, descriptions and costs."""

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
from heedful.core.errors import ConfigError, show_value
from heedful.methods import methods
from heedful.methods.base import missing_prerequisite, ready_methods
from heedful.pipeline.explain.request import resolve_methods

SettingsTables = Mapping[str, Mapping[str, Any]]
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"


def expand_all_methods(settings: SettingsTables, given: SettingsTables) -> dict[str, Any]:
    """The settings of checks; "all" includes methods whose prerequisites are among the `given`."""
    known = {name for name, own in given.items() if name in methods and isinstance(own, Mapping)}
    prepared = {
        name
        for name in known - set(ready_methods())
        if missing_prerequisite(methods.build(name, **given[name])) is None
    }
    expanded: dict[str, Any] = dict(settings)
    for check, own in settings.items():
        names = own.get("methods") if isinstance(own, Mapping) else None
        if isinstance(names, list | tuple) and ALL in names:
            expanded[check] = {**own, "methods": (*names, *sorted(prepared))}
    return expanded


def complete_methods(requested: Iterable[str], given: SettingsTables) -> dict[str, dict[str, Any]]:
    """All settings of each requested method; those not given have their defaults."""
    names = tuple(map(method_name, registry_order(requested)))
    for name, table in given.items():
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"The settings of {show_value(name)} must be a table, not {show_value(table)}."
            )
    if not names:
        if given:
            raise ConfigError(
                f"Settings for the method {show_value(next(iter(given)))}, but no check uses "
                "methods; give --methods."
            )
        return {}
    chosen = resolve_methods(names, given)
    for name in ALWAYS_COMPUTED:
        if _complete(name, chosen.get(name, {})) != _complete(name, {}):
            raise ConfigError(
                f"[methods.{name}] cannot be set: the check uses {name} as it was published. "
                "Choose the audited attention by --subject."
            )
    return {name: _complete(name, chosen[name]) for name in names}


def _complete(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    part = methods.build(name, **given)
    settings = asdict(part) if is_dataclass(part) and not isinstance(part, type) else dict(given)
    return {key: value for key, value in settings.items() if value is not None}


def quick_method_settings() -> dict[str, Mapping[str, int]]:
    """For each method that has some, the upper bounds of its settings for `--quick`."""
    bounds = {name: methods.trait(name, "quick") for name in methods}
    return {name: own for name, own in bounds.items() if own}


def describe_methods(tables: SettingsTables) -> dict[str, dict[str, str]]:
    """The kind and the text limit of each method, also of those that are always computed."""
    described: dict[str, dict[str, str]] = {}
    for name in methods if tables else ():
        if name in tables or name in ALWAYS_COMPUTED:
            limit = _text_limit(methods.build(name, **tables.get(name, {})))
            described[name] = {"kind": method_kind(name), **({"at_most": limit} if limit else {})}
    return described


def _text_limit(part: object) -> str:
    """The longest text that the method takes, in words; empty where there is no limit."""
    if most := getattr(part, "most_players", None):
        return f"{most} {getattr(part, 'players', 'tokens')}"
    most = getattr(part, "most_tokens", None)
    return f"{most} tokens" if most else ""


def describe_method_cost(tables: SettingsTables) -> str:
    """One line on methods that take more passes than a text has words; empty if there are none."""
    built = {name: methods.build(name) for name in tables if methods.trait(name, "most_players")}
    limits = (f"{name} 2^T where a text has T ≤ {_text_limit(one)}" for name, one in built.items())
    costs = [*_describe_samples(tables), *limits]
    if not costs:
        return ""
    few = {name: own["samples"] for name, own in quick_method_settings().items()}
    many = [name for name in tables if name in few and tables[name]["samples"] > few[name]]
    fewer = f" In a plan, [methods.NAME] samples = {few[many[0]]} takes fewer." if many else ""
    return f"Slow methods, in passes for each text: {'; '.join(costs)}.{fewer}"


def _describe_samples(tables: SettingsTables) -> Iterator[str]:
    """Methods that sample coalitions; those with equal settings share their passes."""
    shared: dict[tuple[Any, Any], list[str]] = {}
    for name, own in tables.items():
        if methods.trait(name, "erases") == "many" and "samples" in own:
            shared.setdefault((own["samples"], own["players"]), []).append(name)
    for (samples, _), names in shared.items():
        together = " together" if len(names) > 1 else ""
        yield f"{' and '.join(names)} {samples:,}{together}".replace(",", NARROW_SPACE)
