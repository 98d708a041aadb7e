"""Files of a model folder: regular, inside of it, and of a size that can be read."""

import json
import re
from pathlib import Path
from typing import Any

from heedful.core.errors import ModelError
from heedful.models.loading.errors import cause, shortened, shown

READ_ENDINGS = (".json", ".txt", ".model", ".jinja")  # beside weights
TEMPLATES_FOLDER = "additional_chat_templates"  # the one folder in a folder that is read
MOST_BYTES = 2**27  # of any file but weights; tokenizers of 900 000 words have half of it
MOST_VALUES = 8_000_000  # in one JSON file: lists and objects take far more memory than their text
VALUE_SIGNS = (b",", b"[", b"{")


def check_files(folder: Path) -> None:
    """Require all that is read beside weights to be regular files of the folder, and bounded."""
    for path in (*folder.iterdir(), *folder.glob(f"{TEMPLATES_FOLDER}/*")):
        if path.suffix in READ_ENDINGS:
            require_inside(path, folder)
            _require_bounded(path)


def require_inside(path: Path, folder: Path) -> None:
    """Require a regular file of the folder.

    A link is followed where it stays in the folder; in a snapshot of the hub's cache, where it
    stays in the cache of that model.
    """
    require_regular(path)
    home = folder.parent.parent if folder.parent.name == "snapshots" else folder
    target = path.resolve()
    if not target.is_relative_to(home.resolve()):
        raise ModelError(
            f"{shown(path)} is a link out of the folder, to {shortened(target)}; the files of a "
            "model must lie in its folder. Copy the file into it."
        )


def require_regular(path: Path) -> None:
    """Refuse folders, devices, pipes and broken links; they are not even opened."""
    if not path.is_file():
        what = "missing" if not path.is_symlink() and not path.exists() else "not a regular file"
        raise ModelError(f"{shown(path)} is {what}; a model folder holds regular files.")


def _require_bounded(path: Path) -> None:
    if (size := path.stat().st_size) > MOST_BYTES:
        raise ModelError(
            f"{shown(path)} has {size:,} bytes; files beside the weights may have {MOST_BYTES:,}."
        )


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of bounded size."""
    require_regular(path)
    _require_bounded(path)
    content = parse_json(path.read_bytes(), shown(path))
    if not isinstance(content, dict):
        raise ModelError(f"{shown(path)} must hold a JSON object, not {type(content).__name__}.")
    return content


def parse_json(raw: bytes, name: str) -> Any:
    """Parse JSON of a bounded number of values."""
    if (count := sum(map(raw.count, VALUE_SIGNS))) > MOST_VALUES:
        raise ModelError(f"{name} holds about {count:,} values; it may hold {MOST_VALUES:,}.")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:  # recursion: brackets nested too deeply
        raise ModelError(f"{name} is not readable JSON: {cause(error)}.") from error


def is_plain_name(name: object) -> bool:
    """Whether this is the name of a safetensors file, without a way to anywhere else.

    >>> [is_plain_name(one) for one in ("a-1.safetensors", "../a.safetensors", "w.bin", 7)]
    [True, False, False, False]
    """
    return isinstance(name, str) and re.fullmatch(r"[^/\\:\0]+\.safetensors", name) is not None
