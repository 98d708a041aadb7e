"""Load a subject by name: a heedful model folder, a transformers folder, or a hub id."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.errors import ConfigError, ModelError
from heedful.models.attention_access.scope import Scope
from heedful.models.protocols import Subject
from heedful.models.recurrent.model_folder import MODEL_SETTINGS_FILE
from heedful.models.recurrent.model_folder import load_model as load_own

if TYPE_CHECKING:
    from heedful.models.transformer.subject import TransformerSubject

HUB_ID_PATTERN = re.compile(r"[\w.-]+/[\w.-]+")
SCOPE_OPTIONS = ("layer", "head", "position")
LOADING_OPTIONS = ("dtype", "device", "revision")
MODEL_OPTIONS = ("answers", "prefix", "chat", "max_length")


def load_subject(name: str | Path, **choices: Any) -> Subject:
    """Load the model in a folder, or from the hub if there is no such folder."""
    folder = Path(name)
    if _exists(folder / "config.json") and not _exists(folder / MODEL_SETTINGS_FILE):
        return _load_transformer(folder, choices)
    if not _exists(folder) and HUB_ID_PATTERN.fullmatch(str(name)):
        try:
            return _load_transformer(name, choices)
        except ModelError as error:
            raise ModelError(
                f"{name} is not a folder, and loading it as a hub id failed: {error}"
            ) from error
    if choices:
        raise ConfigError(
            f"{', '.join(choices)} can be set for transformers models only; {name} is not one."
        )
    return load_own(folder)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name too long for a file
        return False


def load_in_memory(model: Any, tokenizer: Any, **choices: Any) -> "TransformerSubject":
    """Make a subject of a transformers model in memory."""
    from heedful.models.transformer.from_pretrained import from_model

    if refused := [name for name in choices if name in LOADING_OPTIONS]:
        raise ConfigError(f"A model in memory is used as it is; {refused[0]} cannot be set.")
    return from_model(model, tokenizer, **_validate_choices(choices))


def _load_transformer(name: str | Path, choices: dict[str, Any]) -> "TransformerSubject":
    from heedful.models.transformer.from_pretrained import load_pretrained

    return load_pretrained(name, **_validate_choices(choices))


def _validate_choices(choices: dict[str, Any]) -> dict[str, Any]:
    """Collect the options of the scope into a `Scope`; refuse unknown options."""
    known = (*SCOPE_OPTIONS, *LOADING_OPTIONS, *MODEL_OPTIONS)
    if unknown := sorted(choices.keys() - set(known)):
        raise ConfigError(f"No model option is named {unknown[0]!r}. Known: {', '.join(known)}.")
    scope = {name: choices[name] for name in SCOPE_OPTIONS if name in choices}
    rest = {name: value for name, value in choices.items() if name not in SCOPE_OPTIONS}
    return {**rest, "scope": Scope(**scope)}
